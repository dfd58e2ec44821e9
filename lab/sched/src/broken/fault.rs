//! The faults: each breaks one property that a decent scheduler has.

use warmq_config::{Chosen, Setting};

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    IgnoresWeights,
    IgnoresGroups,
    IgnoresChanges,
    ForgivesSleepers,
    LosesWakeups,
    LosesHeld,
    NeverPreempts,
    NoSlices,
    NoBalance,
    Stays,
    PacksCores,
    IgnoresHints,
    IgnoresCaches,
    WokenFirst,
    Lifo,
    StrictPriority,
    StaysInGroup,
}

/// The name of each in `--set fault=...`, and what it does.
pub(super) const FAULTS: &[(&str, Fault, &str)] = &[
    ("none", Fault::None, "nothing is broken"),
    (
        "ignores-weights",
        Fault::IgnoresWeights,
        "every task and group has the same weight",
    ),
    (
        "ignores-groups",
        Fault::IgnoresGroups,
        "every task is in the root group",
    ),
    (
        "ignores-changes",
        Fault::IgnoresChanges,
        "weight, group and affinity stay what they were at fork, as far as the kernel lets them",
    ),
    (
        "forgives-sleepers",
        Fault::ForgivesSleepers,
        "whoever has slept, however briefly, has used nothing so far",
    ),
    (
        "loses-wakeups",
        Fault::LosesWakeups,
        "every tenth wakeup is found only after a second",
    ),
    (
        "loses-held",
        Fault::LosesHeld,
        "a task that was frozen or out of quota is found only after a second",
    ),
    (
        "never-preempts",
        Fault::NeverPreempts,
        "a woken task waits for the end of a slice",
    ),
    (
        "no-slices",
        Fault::NoSlices,
        "a task keeps its CPU until it sleeps or is preempted by a wakeup",
    ),
    (
        "no-balance",
        Fault::NoBalance,
        "no CPU takes what is queued at another",
    ),
    (
        "stays",
        Fault::Stays,
        "a woken task waits for its last CPU; others take it after 50 ms",
    ),
    (
        "packs-cores",
        Fault::PacksCores,
        "a task goes to the idle sibling of a busy CPU rather than to an idle core",
    ),
    (
        "ignores-hints",
        Fault::IgnoresHints,
        "tasks of one fragment are strangers",
    ),
    (
        "ignores-caches",
        Fault::IgnoresCaches,
        "each wakeup goes to another CPU than the last one, whatever the caches have",
    ),
    (
        "woken-first",
        Fault::WokenFirst,
        "a woken task goes before all that have not slept",
    ),
    ("lifo", Fault::Lifo, "who became runnable last goes first"),
    (
        "strict-priority",
        Fault::StrictPriority,
        "the larger weight always goes first",
    ),
    (
        "stays-in-group",
        Fault::StaysInGroup,
        "a CPU goes on with the group that it ran last while anybody of it waits",
    ),
];

/// The setting that chooses one.
pub(super) fn setting() -> Setting {
    let names: Vec<&str> = FAULTS.iter().map(|(name, _, _)| *name).collect();
    let each = FAULTS
        .iter()
        .map(|(name, _, what)| format!("{name}: {what}"));
    let all: Vec<String> = each.collect();
    Setting::choice("fault", &names).says(
        &format!("the one thing that is broken ({})", all.join("; ")),
        "a plain fair scheduler unless it is set",
    )
}

/// The chosen one.
pub(super) fn chosen(chosen: &Chosen) -> Fault {
    let name = chosen.choice("fault");
    let known = FAULTS.iter().find(|(fault, _, _)| *fault == name);
    known.map_or(Fault::None, |(_, fault, _)| *fault)
}
