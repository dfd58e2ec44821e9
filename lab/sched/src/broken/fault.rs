//! The faults: each breaks one property that a decent scheduler has.

use warmq_config::{Chosen, Setting};

/// Declares the faults: each with its name in `--set fault=...`, and what it does.
macro_rules! faults {
    ($($fault:ident $name:literal $what:literal;)*) => {
        /// What is broken.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Fault {
            $($fault,)*
        }

        /// The name of each, and what it does.
        pub(super) const FAULTS: &[(&str, Fault, &str)] = &[$(($name, Fault::$fault, $what)),*];
    };
}

faults! {
    None "none" "nothing is broken";
    IgnoresWeights "ignores-weights" "every task and group has the same weight";
    IgnoresGroups "ignores-groups" "every task is in the root group";
    IgnoresChanges "ignores-changes" "weight, group and affinity stay what they were at fork, as far as the kernel lets them";
    ForgivesSleepers "forgives-sleepers" "whoever has slept, however briefly, has used nothing so far";
    LosesWakeups "loses-wakeups" "every tenth wakeup is found only after a second";
    LosesHeld "loses-held" "a task that was frozen or out of quota is found only after a second";
    NeverPreempts "never-preempts" "a woken task waits for the end of a slice";
    NoSlices "no-slices" "a task keeps its CPU until it sleeps or is preempted by a wakeup";
    NoBalance "no-balance" "no CPU takes what is queued at another";
    Stays "stays" "a woken task waits for its last CPU; others take it after 50 ms";
    PacksCores "packs-cores" "a task goes to the idle sibling of a busy CPU rather than to an idle core";
    IgnoresHints "ignores-hints" "tasks of one fragment are strangers";
    IgnoresCaches "ignores-caches" "each wakeup goes to another CPU than the last one, whatever the caches have";
    WokenFirst "woken-first" "a woken task goes before all that have not slept";
    Lifo "lifo" "who became runnable last goes first";
    StrictPriority "strict-priority" "the larger weight always goes first";
    StaysInGroup "stays-in-group" "a CPU goes on with the group that it ran last while anybody of it waits";
}

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
