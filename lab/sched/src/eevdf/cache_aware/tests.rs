//! Decision cases of cache-aware balancing, on the decisions alone.
//!
//! The numbers are worked out by hand from what Linux 7.2's functions do, which are named.

use std::collections::BTreeMap;

use proptest::prelude::*;

use warmq_config::Chosen;
use warmq_units::{Address, CpuId, TaskId};

use super::knobs::{Knobs, Sharing, settings};
use super::occupancy::{Window, epoch_at};
use super::policy::{Fill, Verdict};
use super::scan::Had;
use super::sharers::{Member, Sharers};
use super::{Cache, CacheAware, CpuPart};

use Verdict::{Drawn, Forbidden, Free};

fn knobs(threads: u64) -> Knobs {
    let chosen = Chosen::new(settings("process"), BTreeMap::new()).expect("its own defaults");
    Knobs::new(&chosen, threads)
}

/// A cache of 16 CPUs that is so full, in parts of a hundred.
fn full(pct: u64) -> Fill {
    let capacity = 16 * 1_024;
    Fill {
        util: capacity * pct / 100,
        capacity,
    }
}

/// `can_migrate_llc()` for a task that uses nothing, where the other cache is 30, 40, 50 and 60 %
/// full.
///
/// The table in the comment above that function has six other cells: to the preferred cache, 30 to
/// 50, 40 to 50 and 40 to 60 are said to be drawn; away from it, 50 to 30, 50 to 40 and 60 to 40 to
/// be forbidden. It takes the 20 % as points of the capacity; the code, as here, as a ratio.
#[test]
fn between_caches_with_smt_by_how_full_they_are() {
    let table = [
        (true, 30, [Drawn, Drawn, Forbidden, Forbidden]),
        (true, 40, [Drawn, Drawn, Forbidden, Forbidden]),
        (true, 50, [Drawn, Drawn, Free, Free]),
        (true, 60, [Drawn, Drawn, Free, Free]),
        (false, 30, [Forbidden, Forbidden, Forbidden, Forbidden]),
        (false, 40, [Forbidden, Forbidden, Forbidden, Forbidden]),
        (false, 50, [Drawn, Drawn, Free, Free]),
        (false, 60, [Drawn, Drawn, Free, Free]),
    ];
    for (to_preferred, from, expected) in table {
        let verdict = |to| knobs(2).verdict(full(from), full(to), 0, to_preferred);
        assert_eq!(
            [30, 40, 50, 60].map(verdict),
            expected,
            "to the preferred: {to_preferred}, from {from} %"
        );
    }
}

/// `fits_llc_capacity()` raises the limit to 75 % where cores have one thread; a task's own use
/// counts on both sides; and a preferred cache may pass the limit by no more than a fifth over the
/// other.
#[test]
fn between_caches_without_smt_and_with_what_the_task_uses() {
    let cpu = 1_024;
    for (case, from, to, util, to_preferred, expected) in [
        ("into 74 %", 10, 74, 0, true, Drawn),
        ("into 75 %", 10, 75, 0, true, Forbidden),
        ("into 70 %, with a CPU more", 50, 70, cpu, true, Forbidden),
        ("into 70 %, a fifth fuller", 73, 70, cpu, true, Drawn),
        ("out of 70 %", 70, 10, 0, false, Forbidden),
        (
            "out of 80 %, which then is 73",
            80,
            10,
            cpu,
            false,
            Forbidden,
        ),
        ("out of 90 %", 90, 10, cpu, false, Drawn),
        ("out of 90 % into 74", 90, 74, 0, false, Drawn),
        ("between two that are full", 90, 80, 0, true, Free),
    ] {
        let found = knobs(1).verdict(full(from), full(to), util, to_preferred);
        assert_eq!(found, expected, "{case}");
    }
}

/// What was not recorded yet is 0 of 0, which is full.
#[test]
fn before_anything_is_known_of_the_caches_they_do_not_count() {
    let nothing = Fill::default();
    for to_preferred in [true, false] {
        assert_eq!(knobs(1).verdict(nothing, nothing, 0, to_preferred), Free);
    }
}

/// `invalid_llc_nr()`: more than 80 % of the cores, times the tolerance.
#[test]
fn tasks_that_are_too_many_for_a_cache() {
    for (tolerance, threads, cpus, most) in [
        (1, 1, 2, Some(1)),
        (1, 1, 4, Some(3)),
        (1, 1, 8, Some(6)),
        (1, 2, 16, Some(6)),
        (2, 1, 4, Some(6)),
        (99, 1, 4, Some(316)),
        (100, 1, 4, None),
    ] {
        let knobs = Knobs {
            aggr_tolerance: tolerance,
            ..knobs(threads)
        };
        let first = (0..1_000).find(|running| knobs.are_too_many(*running, cpus));
        assert_eq!(
            first,
            most.map(|most| most + 1),
            "{tolerance} times {cpus} CPUs of {threads} threads"
        );
    }
    let off = Knobs {
        aggr_tolerance: 0,
        ..knobs(1)
    };
    assert!(off.are_too_many(0, 4));
}

/// `update_avg_scale()`: so a process that always runs on all 4 CPUs of a cache counts as 3, and
/// fits.
#[test]
fn the_mean_of_running_tasks_stays_below_them() {
    for (cpus, sample, expected) in [
        (4, 4, [2, 3, 3, 3, 3]),
        (4, 6, [3, 4, 5, 5, 5]),
        (16, 8, [2, 3, 4, 5, 5]),
        (64, 16, [2, 3, 4, 5, 6]),
    ] {
        let mut mean = 0;
        let means = [(); 5].map(|()| {
            mean = Knobs::mean_running(mean, sample, cpus);
            mean
        });
        assert_eq!(means, expected, "{sample} of {cpus}");
    }
    assert_eq!(Knobs::mean_running(5, 0, 4), 3);
}

/// `__update_mm_sched()` and `fraction_mm_sched()`.
#[test]
fn cpu_time_is_forgotten_by_half_each_epoch() {
    assert_eq!(
        [0, 1, 2, 3, 4, 5].map(|tick| epoch_at(tick, 2)),
        [0, 1, 1, 2, 2, 3]
    );
    let mut own = Window { ran: 800, epoch: 3 };
    own.advance(3);
    assert_eq!(own.ran, 800);
    own.advance(5);
    assert_eq!((own.ran, own.epoch), (200, 5));
    let all = Window { ran: 799, epoch: 5 };
    assert_eq!(own.part_of(&all), 1 << 18);
    own.advance(100);
    assert_eq!(own.ran, 0);
}

/// Two caches of two CPUs, and 4 tasks that share data. Nothing ran yet.
fn bench() -> CacheAware {
    let cpus = |first: u16| vec![CpuId(first), CpuId(first + 1)];
    let member = Member {
        of: Some(0),
        prefers: None,
    };
    CacheAware {
        knobs: knobs(1),
        sharing: Sharing::Process,
        tick: 4_000_000,
        line: 64,
        caches: [0, 2].map(|first| Cache::of(cpus(first))).into(),
        cpus: [0, 0, 1, 1]
            .map(|cache| CpuPart {
                cache,
                ran: Window::default(),
                scans_for: None,
                line: Address(0),
            })
            .into(),
        sharers: vec![Sharers {
            members: 4,
            ran: vec![Window::default(); 4],
            preferred: None,
            running: 1,
            epoch: 0,
            next_scan: 0,
            lines: Address(0),
        }],
        sharing_what: BTreeMap::new(),
        members: vec![member; 4],
    }
}

/// `task_cache_work()`: a cache is left for one with more than twice as much.
#[test]
fn the_preferred_cache_is_the_one_where_they_had_most_and_stays_it() {
    for (case, before, had, expected) in [
        ("at first", None, [10, 20], Some(3)),
        ("at first, alike", None, [20, 20], Some(1)),
        ("nothing anywhere", Some(1), [0, 0], Some(1)),
        ("twice as much elsewhere", Some(1), [10, 20], Some(1)),
        ("more than that", Some(1), [10, 21], Some(3)),
    ] {
        let mut aware = bench();
        aware.sharers[0].preferred = before.map(CpuId);
        let mut caches = [Had::default(); 2];
        for (cache, occupancy) in had.into_iter().enumerate() {
            let last = 2 * cache as u16 + 1;
            caches[cache].add(CpuId(last - 1), occupancy * 2 / 5);
            caches[cache].add(CpuId(last), occupancy - occupancy * 2 / 5);
        }
        aware.choose(0, &caches);
        assert_eq!(
            aware.sharers[0].preferred.map(|cpu| cpu.0),
            expected,
            "{case}"
        );
    }
}

/// `account_mm_sched()`: a task learns which cache it prefers as it is charged, and forgets it when
/// there was no scan for more than 5 epochs, when its sharers have become too many, or when it is
/// alone.
#[test]
fn a_task_prefers_a_cache_while_scans_go_on_and_sharers_are_few() {
    let ticks = 100;
    for (case, epoch, running, members, expected) in [
        ("5 epochs ago", 45, 1, 4, Some(1)),
        ("6 epochs ago", 44, 1, 4, None),
        ("too many", 50, 2, 4, None),
        ("alone", 50, 1, 1, None),
    ] {
        let mut aware = bench();
        let own = &mut aware.sharers[0];
        (own.preferred, own.epoch) = (Some(CpuId(2)), epoch);
        (own.running, own.members) = (running, members);
        aware.charge(TaskId(3), CpuId(0), ticks, 1_000);
        assert_eq!(aware.preferred_by(TaskId(3)), expected, "{case}");
        assert_eq!(
            (aware.cpus[0].ran.ran, aware.sharers[0].ran[0].ran),
            (1_000, 1_000)
        );
    }
}

/// `task_tick_cache()` and `task_cache_work()`: one scan an epoch, and none at all for those who
/// are too many.
#[test]
fn there_is_one_scan_an_epoch() {
    let mut aware = bench();
    let here = CpuId(0);
    assert!(
        !aware.plan(TaskId(0), here),
        "the epoch that it was created in"
    );
    aware.charge(TaskId(0), here, 3, 1_000);
    assert!(aware.plan(TaskId(0), here));
    assert!(
        !aware.plan(TaskId(1), here),
        "another thread in the same epoch"
    );
    assert!(
        aware.may_scan(0, here, 3) && !aware.may_scan(0, here, 4) && aware.may_scan(0, here, 5)
    );
    aware.sharers[0].running = 2;
    aware.sharers[0].preferred = Some(here);
    assert!(!aware.may_scan(0, here, 7));
    assert_eq!(aware.sharers[0].preferred, None);
}

fn fills() -> impl Strategy<Value = Fill> {
    (1u64..32).prop_flat_map(|cpus| {
        let capacity = cpus * 1_024;
        (0..=capacity).prop_map(move |util| Fill { util, capacity })
    })
}

proptest! {
    /// The guard against over-aggregation: what is drawn leaves the preferred cache below its
    /// limit, or no more than a fifth fuller than the other.
    #[test]
    fn nobody_is_drawn_into_a_cache_that_is_too_full(
        from in fills(), to in fills(), util in 0u64..1_024, threads in 1u64..3,
    ) {
        let knobs = knobs(threads);
        if knobs.verdict(from, to, util, true) == Drawn {
            let (left, filled) = (from.util.saturating_sub(util), to.util + util);
            let limit = if threads == 1 { 75 } else { 50 };
            prop_assert!(filled * 100 < to.capacity * limit || filled * 100 <= left * 120);
        }
    }

    /// Whoever was drawn is not moved back for the sake of caches.
    #[test]
    fn nobody_is_drawn_to_and_fro(
        from in fills(), to in fills(), util in 0u64..1_024, threads in 1u64..3,
    ) {
        let knobs = knobs(threads);
        prop_assume!(util <= from.util);
        if knobs.verdict(from, to, util, true) == Drawn {
            let after_from = Fill { util: from.util - util, ..from };
            let after_to = Fill { util: to.util + util, ..to };
            prop_assert_ne!(knobs.verdict(after_to, after_from, util, false), Drawn);
        }
    }
}
