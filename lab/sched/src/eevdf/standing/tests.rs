use super::*;
use crate::eevdf::balance::Idleness;

const ALONE: Terms = Terms {
    imbalance_pct: 117,
    shares_cache: true,
    unlike: false,
    nodes: None,
};

fn of(running: u64, load: u64) -> Standing {
    let standing = Standing {
        cpus: 1,
        cores: 1,
        capacity: CAPACITY,
        load,
        util: running.min(1) * CAPACITY,
        runnable: running * CAPACITY,
        running,
        fair: running,
        idle: u64::from(running == 0),
        idles: true,
        ..Standing::default()
    };
    standing.classify(117)
}

/// A core of `threads` on which `running` hogs run, one on each thread.
fn core(threads: u64, running: u64) -> Standing {
    let standing = Standing {
        cpus: threads,
        cores: 1,
        capacity: threads * CAPACITY,
        load: running * CAPACITY,
        util: running * CAPACITY,
        runnable: running * CAPACITY,
        running,
        fair: running,
        idle: threads - running,
        idles: true,
        is_smt: threads > 1,
        prefers_siblings: threads > 1,
        ..Standing::default()
    };
    standing.classify(117)
}

fn amount(local: Standing, busiest: Standing, idleness: Idleness) -> Option<Amount> {
    moved(local, busiest, idleness, ALONE)
}

fn moved(local: Standing, busiest: Standing, idleness: Idleness, terms: Terms) -> Option<Amount> {
    let idles = idleness != Idleness::Busy;
    let busiest = Standing { idles, ..busiest }.classify(117);
    let local = Standing {
        is_own: true,
        ..local
    };
    let local = local.classify(117);
    imbalance(&local, &busiest, &[local, busiest], terms)
}

/// A core whose threads are all busy gives one task to an idle core, and none where that would
/// only turn the difference round.
#[test]
fn an_idle_core_relieves_one_with_several_busy_threads() {
    let one = Some(Amount::Tasks(1));
    assert_eq!(moved(core(2, 0), core(2, 2), Idleness::Idle, ALONE), one);
    assert_eq!(moved(core(4, 0), core(4, 2), Idleness::Idle, ALONE), one);
    assert_eq!(moved(core(4, 1), core(4, 3), Idleness::Idle, ALONE), one);
    assert_eq!(moved(core(2, 1), core(2, 2), Idleness::Idle, ALONE), None);
    assert_eq!(moved(core(2, 0), core(2, 1), Idleness::Idle, ALONE), None);
    assert_eq!(moved(core(2, 0), core(2, 2), Idleness::Busy, ALONE), None);
    assert_eq!(moved(core(1, 0), core(2, 2), Idleness::Idle, ALONE), one);
}

/// Groups with unlike numbers of cores are even where each has as many tasks a core.
#[test]
fn tasks_are_counted_by_cores() {
    let caches = |cores: u64, running: u64| Standing {
        cores,
        ..core(cores, running)
    };
    assert_eq!(
        caches(8, 8).more_than(&caches(4, 4)),
        1,
        "rounded, and not enough"
    );
    assert_eq!(caches(8, 8).more_than(&caches(4, 1)), 5);
    assert_eq!(caches(8, 2).more_than(&caches(4, 0)), 2);
    assert_eq!(caches(4, 3).more_than(&caches(4, 1)), 2);
}

/// Of cores with a thread to spare the one is busiest that has most tasks; a core of one thread
/// comes before one of several that would be left empty.
#[test]
fn which_core_is_the_busiest() {
    assert!(core(2, 2).is_busier_than(&core(2, 1)));
    assert!(core(4, 3).is_busier_than(&core(4, 2)));
    assert!(
        !core(2, 2).is_busier_than(&core(2, 2)),
        "the first of equals"
    );
    assert!(core(1, 1).is_busier_than(&core(1, 1)), "the last of equals");
    assert!(!core(4, 1).is_busier_than(&core(4, 1)));
}

/// A task of which real-time tasks take a part is moved to a CPU that idles.
#[test]
fn a_task_with_too_little_of_its_cpu_may_go() {
    let squeezed = Standing {
        misfit: 1_024,
        ..of(1, 1_024)
    };
    assert_eq!(
        amount(of(0, 0), squeezed, Idleness::Idle),
        Some(Amount::Load(1_024))
    );
}

/// A CPU of four little ones (446), four big ones (1024) beside them, with so many hogs.
fn four(each: u64, running: u64) -> Standing {
    Standing {
        cpus: 4,
        cores: 4,
        capacity: 4 * each,
        least: each,
        most: each,
        load: running * CAPACITY,
        util: running.min(4) * each,
        runnable: running * CAPACITY,
        running,
        fair: running,
        idle: 4u64.saturating_sub(running),
        idles: true,
        ..Standing::default()
    }
    .classify(117)
}

/// Of unlike CPUs, larger ones take what needs them, and smaller ones only what has to wait.
#[test]
fn who_pulls_from_whom_among_unlike_cpus() {
    let needs_larger = |running| Standing {
        misfit: CAPACITY,
        ..four(446, running)
    };
    let (little, big) = (four(446, 0), four(1_024, 0));
    let at = |capacity: u64, core_idles: bool| Puller {
        capacity,
        core_idles,
    };
    for (case, from, local, puller, expected) in [
        (
            "what needs a larger CPU",
            needs_larger(1),
            big,
            at(1_024, true),
            true,
        ),
        (
            "to an equal one",
            needs_larger(1),
            little,
            at(446, true),
            false,
        ),
        (
            "to a hardly larger one",
            needs_larger(1),
            little,
            at(469, true),
            false,
        ),
        (
            "to one with a busy sibling",
            needs_larger(1),
            big,
            at(1_024, false),
            false,
        ),
        (
            "to one that is squeezed",
            needs_larger(1),
            big,
            at(400, true),
            false,
        ),
        (
            "to a full group",
            needs_larger(1),
            four(1_024, 4),
            at(1_024, true),
            false,
        ),
        (
            "one of a big CPU",
            four(1_024, 1),
            little,
            at(446, true),
            false,
        ),
        (
            "all big ones busy",
            four(1_024, 4),
            little,
            at(446, true),
            false,
        ),
        (
            "one waits on a big one",
            four(1_024, 5),
            little,
            at(446, true),
            true,
        ),
        (
            "one that fits a little CPU",
            four(446, 1),
            big,
            at(1_024, true),
            true,
        ),
    ] {
        let from = from.classify(117);
        assert_eq!(from.is_within_reach(&local, puller), expected, "{case}");
    }
}

#[test]
fn what_needs_a_larger_cpu_is_asked_for_by_itself() {
    let from = Standing {
        misfit: 446,
        ..four(446, 1)
    };
    let terms = Terms {
        unlike: true,
        ..ALONE
    };
    let found = moved(four(1_024, 0), from, Idleness::Idle, terms);
    assert_eq!(found, Some(Amount::Misfit(1)));
    let busy = moved(four(1_024, 1), from, Idleness::Busy, terms);
    assert_eq!(busy, Some(Amount::Misfit(1)), "by a busy CPU, too");
}

/// Section 12 of the specification: an idle CPU takes half of the difference of the numbers of
/// tasks; two CPUs with two and one equal hogs differ by half a hog each.
#[test]
fn an_idle_cpu_counts_tasks_and_a_busy_one_load() {
    let idle = amount(of(0, 0), of(2, 2_048), Idleness::Idle);
    assert_eq!(idle, Some(Amount::Tasks(1)));
    assert_eq!(amount(of(0, 0), of(1, 1_024), Idleness::Idle), None);
    let busy = amount(of(1, 1_024), of(2, 2_048), Idleness::Busy);
    assert_eq!(busy, Some(Amount::Load(512)));
    assert_eq!(amount(of(2, 2_048), of(1, 1_024), Idleness::Busy), None);
}

/// A CPU that a real-time task keeps has next to no capacity. Nobody gives it a second task, as
/// it has room for what runs there, which is nothing; and what waits there is taken away.
#[test]
fn a_real_time_task_is_not_relieved_of_others() {
    let urgent = |fair: u64| {
        let standing = Standing {
            capacity: 1,
            util: 0,
            ..of(1 + fair, fair * 1_024)
        };
        let runnable = fair * CAPACITY;
        Standing {
            runnable,
            fair,
            ..standing
        }
        .classify(117)
    };
    assert_eq!(amount(urgent(0), of(2, 2_048), Idleness::Busy), None);
    assert!(amount(of(1, 1_024), urgent(1), Idleness::Busy).is_some());
}

/// The odd hog of three does not fit at first, and does after one failure.
#[test]
fn a_task_that_is_too_heavy_fits_after_a_failure() {
    let mut left = Amount::Load(512);
    assert!(!left.takes(1_024, 0, 0));
    assert!(left.takes(1_024, 0, 1) && left.is_nothing());
}

/// A group of `cpus` on which `running` hogs run, of CPUs without siblings.
fn group(cpus: u64, running: u64) -> Standing {
    Standing {
        cpus,
        cores: cpus,
        capacity: cpus * CAPACITY,
        load: running * CAPACITY,
        util: running.min(cpus) * CAPACITY,
        runnable: running * CAPACITY,
        running,
        fair: running,
        idle: cpus.saturating_sub(running),
        idles: true,
        prefers_siblings: true,
        ..Standing::default()
    }
    .classify(117)
}

const NODES: Terms = Terms {
    shares_cache: false,
    nodes: Some(2),
    ..ALONE
};

/// Nodes may differ by two tasks while the one that pulls would have two at most.
#[test]
fn nodes_with_few_tasks_need_not_be_even() {
    for (case, local, busiest, expected) in [
        ("a pair", 0, 2, None),
        ("one more than a pair", 0, 3, Some(Amount::Tasks(1))),
        ("one here, three there", 1, 3, None),
        ("two here, four there", 2, 4, Some(Amount::Tasks(1))),
        ("even", 4, 4, None),
        ("all there", 0, 8, Some(Amount::Tasks(4))),
    ] {
        let (local, busiest) = (group(8, local), group(8, busiest));
        let pulled = moved(local, busiest, Idleness::Idle, NODES);
        assert_eq!(pulled, expected, "{case}");
    }
}

/// What may not run everywhere, and what should be on a better CPU, moves whatever the numbers
/// say.
#[test]
fn pinned_tasks_and_priorities_force_a_move() {
    let pinned = Standing {
        is_imbalanced: true,
        ..group(4, 4)
    };
    let packed = Standing {
        is_packed: true,
        ..group(4, 1)
    };
    for (case, local, busiest, expected) in [
        ("even, without reason", group(4, 4), group(4, 4), None),
        (
            "even, but pinned",
            group(4, 4),
            pinned,
            Some(Amount::Tasks(1)),
        ),
        (
            "one on a lesser CPU",
            group(4, 0),
            packed,
            Some(Amount::Tasks(1)),
        ),
        (
            "to a group that has more",
            group(4, 3),
            packed,
            Some(Amount::Tasks(1)),
        ),
    ] {
        assert_eq!(
            moved(local, busiest, Idleness::Idle, ALONE),
            expected,
            "{case}"
        );
    }
}

/// The order of kinds (`enum group_type`), each with all that comes before it.
#[test]
fn the_most_pressing_kind_of_a_group_counts() {
    let spare = Standing {
        idles: true,
        ..group(4, 2)
    };
    let full = group(4, 4);
    let misfit = Standing { misfit: 1, ..full };
    let smt = Standing {
        is_smt: true,
        ..misfit
    };
    let packed = Standing {
        is_packed: true,
        ..smt
    };
    let imbalanced = Standing {
        is_imbalanced: true,
        ..packed
    };
    let drawn = Standing {
        is_drawn: true,
        ..imbalanced
    };
    let overloaded = Standing {
        running: 5,
        runnable: 5 * CAPACITY,
        ..drawn
    };
    let kinds = [
        spare, full, misfit, smt, packed, imbalanced, drawn, overloaded,
    ];
    let kinds = kinds.map(|standing| standing.classify(117).fullness);
    assert_eq!(
        kinds,
        [
            Fullness::HasSpare,
            Fullness::FullyBusy,
            Fullness::Misfit,
            Fullness::SmtBusy,
            Fullness::AsymPacking,
            Fullness::Imbalanced,
            Fullness::Drawn,
            Fullness::Overloaded,
        ]
    );
    assert!(kinds.is_sorted());
}

/// Of groups whose tasks should be packed elsewhere that of the least priority is the first.
#[test]
fn the_least_cpu_is_relieved_first() {
    let of = |priority: u16| {
        let standing = Standing {
            is_packed: true,
            priority,
            ..group(1, 1)
        };
        standing.classify(117)
    };
    assert!(of(10).is_busier_than(&of(20)));
    assert!(!of(20).is_busier_than(&of(10)));
    assert!(!of(10).is_busier_than(&of(10)), "the first of equals");
}

/// A full group takes load off an overloaded one only, and where that is below the average, as
/// others take its time, as much as brings itself there.
#[test]
fn load_is_pulled_up_to_the_average() {
    let squeezed = Standing {
        capacity: CAPACITY / 8,
        load: CAPACITY / 16,
        running: 2,
        fair: 2,
        ..group(1, 1)
    };
    let third = group(1, 8);
    let (local, busiest) = (group(1, 1), squeezed.classify(117));
    let less = Standing {
        load: CAPACITY / 4,
        ..local
    };
    assert_eq!(busiest.fullness, Fullness::Overloaded);
    for (case, local, busiest, all, expected) in [
        (
            "two of three",
            group(2, 2),
            group(2, 4),
            vec![group(2, 2), group(2, 4)],
            1_024,
        ),
        (
            "full and full",
            group(2, 2),
            group(2, 2),
            vec![group(2, 2), group(2, 2)],
            0,
        ),
        ("more here", local, busiest, vec![local, busiest, third], 0),
        (
            "less here",
            less,
            busiest,
            vec![less, busiest, third],
            3_749,
        ),
    ] {
        let mean = mean_load(&all);
        assert_eq!(load_to_pull(&local, &busiest, mean), expected, "{case}");
    }
}
