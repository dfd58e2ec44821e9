//! scx_warmq as it was before some of its races were cured: its source with lines changed.

use warmq_race::{Fault, Race};
use warmq_sched_ext::{Loaded, Source};
use warmq_units::Seed;

use crate::stage::{CPUS, first, fit, race};
use crate::warmq::object::{Change, as_it_is, changed};

/// A CPU that goes idle while a task is on its way into its queue is not kicked any more.
const LOSES_WAKEUPS: &[Change] = &[
    (
        "main.bpf.c",
        "\tif (comes)\n\t\tscx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);\n",
        "",
    ),
    ("main.bpf.c", "\t\tkick_searching(p, entity);\n", ""),
];

/// Two that take a task out of its group at the same time both take a member off it.
const LEAVES_TWICE: &[Change] = &[(
    "group.bpf.h",
    "\tremove_member(__sync_lock_test_and_set(&t->group, add_member(number)), now);\n",
    "\tu32 joined = add_member(number);\n\n\tremove_member(t->group, now);\n\tt->group = joined;\n",
)];

/// A CPU that was kicked for one task and takes another, or finds none, kicks nobody else.
const PASSES_NOTHING_ON: &[Change] = &[
    (
        "main.bpf.c",
        "\t\tif (c->idle && entity_of(domain_of_cpu(cpu))->queued)\n\t\t\tpass_on(cpu, true);\n",
        "",
    ),
    (
        "main.bpf.c",
        "\t\tif (c->idle)\n\t\t\tpass_on(cpu, c->batch_entity == WARMQ_PINNED_BASE + cpu);\n",
        "",
    ),
    (
        "main.bpf.c",
        "\tif (c->idle)\n\t\tpass_on(cpu, false);\n",
        "",
    ),
];

/// A task that comes to an idle CPU while that looks for another is left there.
const FORGETS_WHO_CAME: &[Change] = &[
    (
        "main.bpf.c",
        "if (pull(cpu) || take_found(cpu))",
        "if (pull(cpu))",
    ),
    (
        "main.bpf.c",
        "else if (!pull(cpu))\n\t\t\ttake_found(cpu);",
        "else\n\t\t\tpull(cpu);",
    ),
    (
        "main.bpf.c",
        "waits_at(cpu) || found_waits(cpu)",
        "waits_at(cpu)",
    ),
];

/// Seeds of plans in which these faults come: 4 CPUs, 8 tasks, 200 steps. One plan in thousands
/// has them.
const RARE: [(&[Change], u64); 2] = [(PASSES_NOTHING_ON, 675), (FORGETS_WHO_CAME, 4_907)];

/// Plans that are played of one that should have no fault.
const PLANS: u64 = 200;

/// Plans that are played of a mutant at most.
const MOST_PLANS: u64 = 3_000;

/// With few groups, which are then checked in no time.
const FEW_GROUPS: (&str, i128) = ("nr_groups", 64);

/// With groups by cgroup.
fn loaded(source: &Source) -> Loaded {
    const BY_CGROUP: i128 = 3;
    fit(CPUS, source, &[FEW_GROUPS, ("group_by", BY_CGROUP)])
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn the_wakeup_that_was_lost_is_found() {
    let Some(source) = changed(LOSES_WAKEUPS) else {
        return;
    };
    let loaded = loaded(&source);
    let only = words(&["wake", "sleep", "pass"]);
    let found = first(&race(&loaded, &only), MOST_PLANS).expect("it is found");
    assert!(
        matches!(found.fault, Fault::Asleep { raced: true, .. }),
        "{found:?}"
    );
}

#[test]
fn the_task_that_left_its_group_twice_is_found() {
    let Some(source) = changed(LEAVES_TWICE) else {
        return;
    };
    let loaded = loaded(&source);
    let only = words(&["wake", "hint", "move"]);
    let found = first(&race(&loaded, &only), MOST_PLANS).expect("it is found");
    // RACE_GROUPS of race.bpf.h.
    assert!(
        matches!(&found.fault, Fault::Ejected(why) if why == "race_check returns 3"),
        "{found:?}"
    );
}

#[test]
fn as_it_is_it_has_neither() {
    let Some(source) = as_it_is() else { return };
    let loaded = loaded(source);
    for only in [
        words(&["wake", "sleep", "pass"]),
        words(&["wake", "hint", "move"]),
    ] {
        assert_eq!(first(&race(&loaded, &only), PLANS), None);
    }
}

#[test]
fn a_cpu_that_sleeps_beside_a_task_that_came_meanwhile_is_found() {
    let only = "wake sleep tick yield nice affinity move weigh pass";
    let only = words(&only.split(' ').collect::<Vec<_>>());
    let fault = |source: &Source, seed: u64| {
        let loaded = fit(4, source, &[FEW_GROUPS]);
        let race = Race {
            cpus: 4,
            tasks: 8,
            steps: 200,
            ..race(&loaded, &only)
        };
        race.run(Seed(seed)).expect("it is attached")
    };
    let Some(cured) = as_it_is() else { return };
    for (changes, seed) in RARE {
        let Some(mutant) = changed(changes) else {
            return;
        };
        let found = fault(&mutant, seed).expect("it is found");
        assert!(matches!(found.fault, Fault::Asleep { .. }), "{found:?}");
        assert_eq!(fault(cured, seed), None, "{seed}");
    }
}
