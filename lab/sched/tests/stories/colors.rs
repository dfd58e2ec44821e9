//! Cache coloring and its relatives: what they do to the walk's misses on a machine of round
//! numbers (L2 64 KB, 4 ways: hot lines of 8 KB blocks share 2 of 512 sets).

use warmq_config::Value;
use warmq_kernel::*;
use warmq_units::Cycles;

use crate::stage::*;

/// What the walks of one run cost.
#[derive(Clone, Copy, Debug)]
struct Walked {
    visits: u64,
    /// Accesses that went to memory, of a thousand.
    missed: u64,
    /// Picoseconds that the run-queue lock was held for each visit.
    held_each: u64,
}

/// Tasks that compute a little and yield, on one CPU.
fn walked(name: &str, set: &[(&str, Value)], tasks: u32) -> Walked {
    let workload = move |boot: &mut Boot<'_>| -> Started {
        for _ in 0..tasks {
            boot.task(called("yielder"), |task: Task| async move {
                loop {
                    task.compute(Cycles(1_000)).await;
                    task.yield_now().await;
                }
            })?;
        }
        Ok(())
    };
    let stage = stage(1).real().worn(8);
    let (_, kernel) = stage.plays(scheduler(name, set), 300, workload);
    let accesses = kernel.accesses(Within::RunQueueWalk);
    let (walks, lock) = (kernel.walks(), &kernel.locks()[0]);
    assert!(walks.visits > 1_000);
    Walked {
        visits: walks.visits,
        missed: 1_000 * accesses.by_memory / accesses.total(),
        held_each: lock.held.0 / walks.visits,
    }
}

fn colors(colors: i64) -> (&'static str, Value) {
    ("colors", Value::Integer(colors))
}

#[test]
fn colors_turn_misses_of_the_walk_into_hits() {
    let (vanilla, colored) = (
        walked("linux24", &[], 100),
        walked("linux24", &[colors(32)], 100),
    );
    assert!(vanilla.missed > 900, "{vanilla:?}");
    assert!(colored.missed < 300, "{colored:?}");
    assert!(colored.held_each < vanilla.held_each);
    assert!(
        colored.visits > vanilla.visits,
        "shorter walks, more of them"
    );
}

#[test]
fn few_tasks_need_no_colors() {
    let (vanilla, colored) = (
        walked("linux24", &[], 4),
        walked("linux24", &[colors(32)], 4),
    );
    assert!(
        vanilla.missed < 100 && colored.missed < 100,
        "{vanilla:?} {colored:?}"
    );
}

#[test]
fn bits_that_choose_the_set_anyway_gain_nothing() {
    // One way of 16 KB: bit 13 is the only one of a block's address that is below b = 14.
    let wrong = [colors(2), ("first_bit", Value::Integer(13))];
    let right = [colors(2), ("first_bit", Value::Integer(14))];
    let (vanilla, wrong) = (walked("linux24", &[], 14), walked("linux24", &wrong, 14));
    let right = walked("linux24", &right, 14);
    assert!(
        wrong.missed.abs_diff(vanilla.missed) < 30,
        "{wrong:?} {vanilla:?}"
    );
    assert!(right.missed + 200 < vanilla.missed, "{right:?} {vanilla:?}");
}

#[test]
fn coloring_works_under_each_scheduler() {
    for name in ["linux24", "mq", "elsc", "pls"] {
        let (vanilla, colored) = (walked(name, &[], 100), walked(name, &[colors(32)], 100));
        assert!(
            colored.missed < vanilla.missed,
            "{name}: {colored:?} {vanilla:?}"
        );
    }
}

#[test]
fn slabs_spread_structures_too() {
    let slab = [colors(32), ("layout", Value::from("slab"))];
    let (vanilla, slab) = (walked("linux24", &[], 100), walked("linux24", &slab, 100));
    assert!(slab.missed * 2 < vanilla.missed, "{slab:?} {vanilla:?}");
}

#[test]
fn prefetch_makes_no_walk_slower() {
    for (tasks, layout) in [(100, 1), (100, 32), (20, 1)] {
        let plain = walked("linux24", &[colors(layout)], tasks);
        let set = [colors(layout), ("prefetch", Value::Bool(true))];
        let ahead = walked("linux24", &set, tasks);
        assert!(
            ahead.held_each <= plain.held_each,
            "{tasks} tasks: {ahead:?} {plain:?}"
        );
    }
    let set = [("prefetch", Value::Bool(true))];
    let (plain, ahead) = (walked("linux24", &[], 100), walked("linux24", &set, 100));
    assert!(
        ahead.held_each * 10 < plain.held_each * 9,
        "where all misses, it shows"
    );
}
