//! What holds for any numbers, those near the end of 64 bits included.

#[path = "support/wakeup.rs"]
mod wakeup;

use proptest::prelude::*;
use warmq_decide::*;

use wakeup::*;

/// Lags are shorter than this: a million seconds.
const FAR: u64 = 1_000_000_000_000_000;

fn policies() -> impl Strategy<Value = Policy> {
    let ns = |most: u64| prop_oneof![Just(0), 0..most];
    (
        (1u64..1_000_000_000, 1u64..100_000_000, 1u64..100_000_000),
        (ns(1_000_000_000), 1u64..1_000_000_000),
        (ns(1_000_000), ns(100_000_000), ns(100_000_000)),
        (ns(1_000_000_000), 0u64..1_000, ns(1_000_000_000)),
    )
        .prop_map(
            |((period, slice, other), (wakeup_lag_max, lag_max), sleepers, groups)| Policy {
                period,
                slice_max: slice.max(other),
                slice_min: slice.min(other),
                wakeup_lag_max,
                lag_max: lag_max.max(slice.min(other)),
                alpha: sleepers.0,
                preempt_interval: sleepers.1,
                min_sleep: sleepers.2,
                batch_budget: groups.0,
                imbalance: groups.1,
                patience: groups.2,
            },
        )
}

/// Any virtual time, and often one that is about to wrap or has just done so.
fn times() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0u64..FAR,
        (0u64..FAR).prop_map(|before| u64::MAX - before)
    ]
}

fn domains() -> impl Strategy<Value = Domain> {
    let tasks = (1u32..10_000, 0u64..10_000 * WEIGHT_NICE_0);
    (times(), tasks, 1u32..512).prop_map(|(avg_vruntime, (runnable, weight), cpus)| Domain {
        avg_vruntime,
        weight,
        runnable,
        cpus,
    })
}

/// A distance to either side of a virtual time.
fn distances() -> impl Strategy<Value = u64> {
    (0u64..FAR, any::<bool>())
        .prop_map(|(far, behind)| if behind { far.wrapping_neg() } else { far })
}

fn entities() -> impl Strategy<Value = Entity> {
    let tasks = (1u32..1_000, 0u64..1_000 * WEIGHT_NICE_0);
    (times(), times(), tasks).prop_map(|(avg_vruntime, shift, (runnable, weight))| Entity {
        avg_vruntime,
        shift,
        weight,
        runnable,
    })
}

fn weights() -> impl Strategy<Value = u64> {
    16u64..100 * WEIGHT_NICE_0
}

/// `to` less `from`, which may be earlier or later.
fn difference(from: u64, to: u64) -> i64 {
    to.wrapping_sub(from) as i64
}

proptest! {
    #[test]
    fn the_lag_of_a_waking_task_is_bounded(
        policy in policies(), domain in domains(), distance in distances(), weight in weights(),
        keeps_lag: bool,
    ) {
        let from = domain.avg_vruntime.wrapping_add(distance);
        let placed = place_wakeup(&policy, &domain, from, weight, keeps_lag);
        let lag = scale_lag(&policy, &domain, policy.wakeup_lag_max);
        let most = if keeps_lag && policy.wakeup_lag_max > 0 { lag } else { 0 };
        let least = lag_min(&policy, &domain, weight, 2 * policy.slice_max);
        let ahead = difference(domain.avg_vruntime, placed);
        prop_assert!(ahead >= -(most as i64));
        prop_assert!(ahead <= least as i64);
        // What lies between stays.
        if placed != from {
            prop_assert!(ahead == -(most as i64) || ahead == least as i64);
        }
    }

    #[test]
    fn placing_again_changes_nothing(
        policy in policies(), domain in domains(), distance in distances(), weight in weights(),
        keeps_lag: bool,
    ) {
        let from = domain.avg_vruntime.wrapping_add(distance);
        let placed = place_wakeup(&policy, &domain, from, weight, keeps_lag);
        prop_assert_eq!(place_wakeup(&policy, &domain, placed, weight, keeps_lag), placed);
    }

    /// Where it is placed depends on the members alone, wherever the entity is in its domain.
    #[test]
    fn who_comes_back_is_placed_by_the_members(
        policy in policies(), entity in entities(), distance in distances(), cpus in 1u32..64,
        shift in times(), keeps_lag: bool,
    ) {
        let vtime = entity.avg_vruntime.wrapping_add(distance);
        let moved = Entity { shift, ..entity };
        let of = |entity| place_among(&policy, entity, cpus.into(), vtime, WEIGHT_NICE_0, keeps_lag);
        prop_assert_eq!(of(&entity), of(&moved));
        let members = Domain {
            avg_vruntime: entity.avg_vruntime, weight: entity.weight, runnable: entity.runnable, cpus,
        };
        let alike = place_wakeup(&policy, &members, vtime, WEIGHT_NICE_0, keeps_lag);
        prop_assert_eq!(of(&entity), alike);
    }

    /// However tasks weigh, a lag that is scaled takes as long to work off, or the shortest slice
    /// of each.
    #[test]
    fn a_scaled_lag_is_worked_off_in_the_same_time(
        policy in policies(), tasks in 1u32..1_000, mean in 16u64..100 * WEIGHT_NICE_0,
        there in 1u32..512, ns in 0u64..1_000_000_000,
    ) {
        let (runnable, cpus) = (u64::from(tasks), u64::from(there));
        let domain = Domain { avg_vruntime: 0, weight: runnable * mean, runnable: tasks, cpus: there };
        let lag = u128::from(scale_lag(&policy, &domain, ns));
        let rate = u128::from(runnable.min(cpus) * WEIGHT_NICE_0);
        let taken = lag * u128::from(domain.weight) / rate;
        let slices = u128::from(policy.slice_min * runnable) / u128::from(runnable.min(cpus));
        let rounding = u128::from(domain.weight) / rate + 1;
        prop_assert!(taken.abs_diff(u128::from(ns).max(slices)) <= rounding, "{taken}");
    }

    #[test]
    fn a_weight_is_never_worth_more_than_a_cpu(
        domain in domains(), own in weights(), weight in weights(),
    ) {
        let domain = Domain { weight: domain.weight + own, ..domain };
        let cpus = u64::from(domain.cpus);
        let used = usable_weight(&domain, domain.runnable.into(), cpus, weight, own);
        prop_assert!(used <= weight);
        let others = domain.weight - own;
        if used < weight {
            prop_assert!(domain.runnable > domain.cpus && domain.cpus > 1);
            prop_assert!(used >= WEIGHT_MIN.min(weight));
            // A CPU's part of all, or the least weight there is.
            prop_assert!(used == WEIGHT_MIN || used * (cpus - 1) <= others);
        }
    }

    /// An earlier vruntime, a shorter request and a greater weight never make a deadline later.
    #[test]
    fn deadlines_are_in_order(
        domain in domains(), distance in distances(), weight in weights(),
        request in 0u64..10_000_000_000, more in 0u64..1_000_000_000,
    ) {
        let at = domain.avg_vruntime.wrapping_add(distance);
        let first = deadline(&domain, at, weight, request);
        for later in [
            deadline(&domain, at.wrapping_add(more), weight, request),
            deadline(&domain, at, weight, request + more),
            deadline(&domain, at, weight - weight.min(more) / 2, request),
        ] {
            prop_assert!(!before(later, first));
        }
    }

    #[test]
    fn joining_keeps_the_vruntime(mut entity in entities(), vruntime in times()) {
        let (empty, avg) = (entity.weight == 0, entity.avg_vruntime);
        let vtime = join(&mut entity, vruntime);
        prop_assert_eq!(warmq_decide::vruntime(&entity, vtime), vruntime);
        prop_assert_eq!(entity.avg_vruntime, avg);
        if empty {
            prop_assert_eq!(entity_vruntime(&entity), vruntime);
        }
    }

    #[test]
    fn an_empty_entity_gives_its_first_member_nothing(mut entity in entities(), vruntime in times()) {
        entity.weight = 0;
        let vtime = join(&mut entity, vruntime);
        prop_assert_eq!(vtime, entity.avg_vruntime);
    }

    #[test]
    fn a_migration_keeps_the_lag(
        from in times(), to in times(), distance in distances(),
    ) {
        let there = migrate_vruntime(from.wrapping_add(distance), from, to);
        prop_assert_eq!(there.wrapping_sub(to), distance);
        prop_assert_eq!(migrate_vruntime(there, to, from), from.wrapping_add(distance));
    }

    #[test]
    fn the_lag_of_an_entity_is_bounded(
        policy in policies(), mut entity in entities(), domain in domains(), distance in distances(),
        members in times(), group: bool,
    ) {
        let avg = entity_vruntime(&entity).wrapping_add(distance);
        let domain = Domain { avg_vruntime: avg, ..domain };
        let succession = succession(&policy, group);
        let (first, second) = (vruntime(&entity, members), vruntime(&entity, members.wrapping_add(9)));
        clamp_entity(&policy, &mut entity, &domain, succession);
        let ahead = difference(avg, entity_vruntime(&entity));
        let most = scale_lag(&policy, &domain, policy.lag_max);
        // What it waits for, or has just had, is a succession.
        prop_assert!(ahead.abs() <= (most + delta_vruntime(succession, entity.weight)) as i64, "{ahead}");
        let (again, after) = (vruntime(&entity, members), vruntime(&entity, members.wrapping_add(9)));
        prop_assert_eq!(difference(first, second), difference(again, after));
    }

    /// Nobody is helped before the time that was promised, or 3 s; nor later, unless all wait for
    /// longer.
    #[test]
    fn who_is_late_has_waited_for_as_long_as_was_promised(
        policy in policies(), domain in domains(), weight in weights(),
    ) {
        let (bound, late) = (wait_bound(&policy, &domain, weight), late_after(&policy, &domain, weight));
        let most = (bound / 2).saturating_sub(4_000_000_000).max(3_000_000_000);
        prop_assert_eq!(late, bound.min(most));
    }

    /// Whatever a task weighs that waits alone in an entity, its turn comes: its deadline does not
    /// stay ahead of V.
    #[test]
    fn what_waits_alone_comes_before_v(
        policy in policies(), domain in domains(), avg in times(), shift in times(), group: bool,
        weight in 16u64..10 * WEIGHT_NICE_0, lag in distances(), later in 0u64..1 << 50, request in 1u64..=2,
    ) {
        let mut entity = Entity { avg_vruntime: avg, shift, weight, runnable: 1 };
        let request = policy.slice_max * request;
        let queued = Domain { avg_vruntime: entity_vruntime(&entity).wrapping_add(lag), ..domain };
        let due = deadline(&queued, entity_vruntime(&entity), weight, request).wrapping_sub(shift);
        let far = delta_vruntime(request, weight) + scale_lag(&policy, &domain, policy.lag_max);
        let now = queued.avg_vruntime.wrapping_add(4 * far + later);
        let served = Domain { avg_vruntime: now, ..domain };
        let succession = succession(&policy, group);
        // However often a CPU looks on the way there.
        for at in [queued.avg_vruntime.wrapping_add(far), queued.avg_vruntime.wrapping_add(2 * far)] {
            pick_key(&policy, &mut entity, &Domain { avg_vruntime: at, ..domain }, succession, due);
        }
        let key = pick_key(&policy, &mut entity, &served, succession, due);
        prop_assert!(difference(now, key) <= 0, "{}", difference(now, key));
    }

    /// A task that joins and leaves at once leaves V as it was, up to rounding. In between, V lies
    /// between its old value and the newcomer's vruntime.
    #[test]
    fn joining_and_leaving_gains_nothing(
        policy in policies(), avg in times(), ahead in 0u64..1_000_000_000, behind: bool,
        weight in 16u64..1_000 * WEIGHT_NICE_0, joining in 16u64..10 * WEIGHT_NICE_0,
    ) {
        let at = if behind { avg.wrapping_sub(ahead) } else { avg.wrapping_add(ahead) };
        let policy = Policy { lag_max: u64::MAX / 2, ..policy };
        let with = avg.wrapping_add(avg_add(&policy, avg, weight, at, joining));
        prop_assert!(difference(avg, with).unsigned_abs() <= ahead);
        prop_assert!(ahead == 0 || difference(avg, with) == 0 || (difference(avg, with) < 0) == behind);
        let moved = avg_sub(&policy, with, weight + joining, at, joining);
        let rounding = joining / weight + 2;
        prop_assert!(difference(avg, with.wrapping_add(moved)).unsigned_abs() <= rounding);
    }

    #[test]
    fn v_never_changes_by_more_than_lag_max(
        policy in policies(), avg in times(), distance in distances(),
        weight in 0u64..1_000 * WEIGHT_NICE_0, part in 1u64..10 * WEIGHT_NICE_0,
    ) {
        let at = avg.wrapping_add(distance);
        let moves = [
            avg_add(&policy, avg, weight, at, part),
            avg_sub(&policy, avg, weight, at, part),
        ];
        for moved in moves {
            prop_assert!((moved as i64).unsigned_abs() <= policy.lag_max, "{moved}");
        }
    }

    #[test]
    fn batches_are_bounded(policy in policies(), used in 0u64..10_000_000_000, others: bool) {
        let goes_on = batch_goes_on(&policy, used, others);
        prop_assert!(!others || !goes_on || used < policy.batch_budget);
        prop_assert!(others || goes_on);
    }

    #[test]
    fn slices_are_within_their_bounds(policy in policies(), runnable in 0u64..100_000, cpus in 0u64..512) {
        let slice = slice(&policy, runnable, cpus);
        prop_assert!((policy.slice_min..=policy.slice_max).contains(&slice));
        prop_assert!(warmq_decide::slice(&policy, runnable + 1, cpus) <= slice);
    }

    /// A move never makes the calm place busier, by CPU, than the busy one was before.
    #[test]
    fn no_group_turns_the_imbalance_round(
        busy in 0u64..1_000 * WEIGHT_NICE_0, busy_cpus in 1u64..64,
        calm in 0u64..1_000 * WEIGHT_NICE_0, calm_cpus in 1u64..64,
        groups in prop::collection::vec(0u64..300 * WEIGHT_NICE_0, 0..20),
    ) {
        let excess = excess(busy, busy_cpus, calm, calm_cpus);
        let chosen = groups.iter().filter(|group| **group <= busy).fold(0, |best, group| {
            if better_group(*group, best, excess) { *group } else { best }
        });
        if chosen > 0 {
            let lead = i128::from(busy * calm_cpus) - i128::from(calm * busy_cpus);
            let after = i128::from((busy - chosen) * calm_cpus) - i128::from((calm + chosen) * busy_cpus);
            prop_assert!(after.abs() < lead, "{after} of {lead}");
            let left = groups.iter().filter(|group| better_group(**group, 0, excess) && **group <= busy);
            let best = left.map(|group| group.abs_diff(excess)).min();
            prop_assert_eq!(Some(chosen.abs_diff(excess)), best);
        }
    }

    #[test]
    fn two_places_are_never_busier_than_one_another(
        policy in policies(),
        one in 0u64..1_000 * WEIGHT_NICE_0, one_cpus in 1u64..64,
        other in 0u64..1_000 * WEIGHT_NICE_0, other_cpus in 1u64..64,
    ) {
        let there = imbalanced(&policy, one, one_cpus, other, other_cpus);
        let back = imbalanced(&policy, other, other_cpus, one, one_cpus);
        prop_assert!(!(there && back));
        prop_assert!(!there || less_loaded(other, other_cpus, one, one_cpus));
        prop_assert!(!there || excess(one, one_cpus, other, other_cpus) > 0
            || one * other_cpus - other * one_cpus < one_cpus + other_cpus);
    }

    #[test]
    fn homes_are_in_order(
        homes in prop::array::uniform3((0u64..3, 1u64..3, 0u64..3)),
    ) {
        let calmer = |one: usize, other: usize| {
            let ((a, b, c), (d, e, f)) = (homes[one], homes[other]);
            calmer(a, b, c, d, e, f)
        };
        prop_assert!(!(calmer(0, 1) && calmer(1, 0)));
        prop_assert!(!(calmer(0, 1) && calmer(1, 2)) || calmer(0, 2));
        prop_assert!(!less_loaded(homes[0].0, homes[0].1, homes[1].0, homes[1].1) || calmer(0, 1));
    }

    /// What is decided depends on differences only, so virtual times may wrap.
    #[test]
    fn virtual_times_may_wrap(
        policy in policies(), domain in domains(), distance in distances(), other in distances(),
        by in times(), sleeps in 0u64..1_000, keeps_lag: bool, entity in entities(),
    ) {
        let moved = Domain { avg_vruntime: domain.avg_vruntime.wrapping_add(by), ..domain };
        let (here, there) = (domain.avg_vruntime.wrapping_add(distance), domain.avg_vruntime.wrapping_add(other));
        let placed = place_wakeup(&policy, &domain, here, WEIGHT_NICE_0, keeps_lag);
        let kept = place_awake(&policy, &domain, here, entity.weight).wrapping_add(by);
        prop_assert_eq!(kept, place_awake(&policy, &moved, here.wrapping_add(by), entity.weight));
        let placed_moved = place_wakeup(&policy, &moved, here.wrapping_add(by), WEIGHT_NICE_0, keeps_lag);
        prop_assert_eq!(placed.wrapping_add(by), placed_moved);
        prop_assert_eq!(before(here, there), before(here.wrapping_add(by), there.wrapping_add(by)));

        let wakeup = Wakeup {
            waking: here, running: there, sleeps, weight: WEIGHT_NICE_0, slept: 1_000_000, since: 1_000_000,
            outranks: 0,
        };
        let later = Wakeup { waking: here.wrapping_add(by), running: there.wrapping_add(by), ..wakeup };
        prop_assert_eq!(wakeup_preempts(&policy, &wakeup), wakeup_preempts(&policy, &later));

        let mut bounded = entity;
        let mut turned = Entity { avg_vruntime: entity.avg_vruntime.wrapping_add(by), ..entity };
        clamp_entity(&policy, &mut bounded, &Domain { avg_vruntime: here, ..domain }, 9);
        clamp_entity(&policy, &mut turned, &Domain { avg_vruntime: here.wrapping_add(by), ..domain }, 9);
        prop_assert_eq!(entity_vruntime(&bounded).wrapping_add(by), entity_vruntime(&turned));
    }

    #[test]
    fn more_sleeps_never_help(
        policy in policies(), waking in times(), ahead in distances(), sleeps in 0u64..1_000,
        weight in 16u64..100 * WEIGHT_NICE_0, slept in 0u64..1_000_000_000, since in 0u64..1_000_000_000,
    ) {
        let fewer = Wakeup { waking, running: waking.wrapping_add(ahead), sleeps, weight, slept, since, outranks: 0 };
        let more = Wakeup { sleeps: sleeps + 1, ..fewer };
        prop_assert!(wakeup_granularity(&policy, sleeps, weight) <= wakeup_granularity(&policy, sleeps + 1, weight));
        prop_assert!(wakeup_granularity(&policy, sleeps, weight) >= wakeup_granularity(&policy, sleeps, weight + 1));
        if wakeup_preempts(&policy, &more) == Verdict::Granted {
            prop_assert_eq!(wakeup_preempts(&policy, &fewer), Verdict::Granted);
        }
    }

    #[test]
    fn shares_add_up_to_the_parent(weights in prop::collection::vec(64u64..10 * WEIGHT_NICE_0, 1..20), parent in 16u64..100 * WEIGHT_NICE_0) {
        let active = weights.iter().sum();
        let shares: Vec<u64> = weights.iter().map(|weight| share(*weight, parent, active)).collect();
        let seen: u64 = shares.iter().filter(|share| **share > WEIGHT_MIN).sum();
        prop_assert!(seen <= parent);
        prop_assert!(shares.iter().all(|share| *share >= WEIGHT_MIN));
        let lost = parent.saturating_sub(shares.iter().sum());
        prop_assert!(lost <= weights.len() as u64, "{lost} of {parent} lost to rounding");
    }

    #[test]
    fn inference_forgets(firmness in 0u32..=FIRM) {
        let faded = (0..6).fold(firmness, |firmness, _| fade(firmness));
        prop_assert_eq!(faded, 0);
    }

    /// Any wakeups among a few tasks: firmness is bounded, and a task with a group only goes over
    /// to an older one, so that all moves come to an end.
    #[test]
    fn groups_grow_older_only(wakeups in prop::collection::vec((0usize..6, 0usize..6), 0..400)) {
        let (mut groups, mut firm, mut next) = ([0u32; 6], [0u32; 6], 1);
        for (wakee, waker) in wakeups.into_iter().filter(|(wakee, waker)| wakee != waker) {
            let before = groups;
            match meet(groups[wakee], groups[waker], &mut firm[wakee]) {
                Kinship::Strangers => {}
                Kinship::Found => {
                    (groups[wakee], groups[waker]) = (next, next);
                    next += 1;
                }
                Kinship::WakeeJoins => groups[wakee] = groups[waker],
                Kinship::WakerJoins => groups[waker] = groups[wakee],
            }
            prop_assert!(firm.iter().all(|firm| *firm <= FIRM));
            for (was, is) in before.into_iter().zip(groups) {
                prop_assert!(was == 0 || (is != 0 && is <= was), "{before:?} to {groups:?}");
            }
        }
    }

    /// Tasks that move from core to core, each to where it gains most: every move leaves fewer
    /// pairs on one core, a cache is left only if no core under it is better, a node only if none
    /// of it is, and in the end no core has two more than another. (Caches 0 and 1 are of a node, 2
    /// of another.)
    #[test]
    fn tasks_spread_over_cores_and_come_to_rest(
        mut cores in prop::collection::vec((0u32..3, 0u32..=CORE_CPUS), 2..8), first in any::<prop::sample::Index>(),
    ) {
        let pairs = |cores: &[(u32, u32)]| cores.iter().map(|(_, busy)| busy * busy.saturating_sub(1) / 2).sum::<u32>();
        let mut at = first.index(cores.len());
        let mut rested = 0;
        while rested < cores.len() {
            let (cache, own) = cores[at];
            let gain = |(_, (there, busy)): &(usize, (u32, u32))| core_gain(own.saturating_sub(1), *busy, reach(cache, *there));
            let best = cores.iter().copied().enumerate().max_by_key(gain).filter(|core| gain(core) > 0);
            rested = if best.is_none() { rested + 1 } else { 0 };
            if let Some((to, (there, _))) = best {
                let before = pairs(&cores);
                let nearer = |other: u32| reach(cache, other) < reach(cache, there);
                prop_assert!(cores.iter().all(|(other, busy)| !nearer(*other) || busy + 1 >= own));
                cores[at].1 -= 1;
                cores[to].1 += 1;
                prop_assert!(pairs(&cores) < before);
            }
            at = (at + 1) % cores.len();
        }
        let most = cores.iter().map(|(_, busy)| *busy).max();
        let least = cores.iter().map(|(_, busy)| *busy).min();
        prop_assert!(most <= least.map(|least| least + 1), "{cores:?}");
    }

    /// A CPU without work at the home that a group left with a task does not take it back.
    #[test]
    fn a_group_that_left_its_core_is_not_brought_back(weight in weights(), here in weights(), there in 0u64..100 * WEIGHT_NICE_0) {
        if group_comes_along(weight, here, there) {
            let excess = excess(there + weight, 1, here - weight, 1);
            prop_assert!(!better_group(weight, 0, excess));
        }
        prop_assert!(group_comes_along(weight, there + weight, there));
    }

    #[test]
    fn a_core_gives_up_one_task_in_a_slice_a_cache_none_sooner_and_a_node_later(
        policy in policies(), reach in reaches(), lasted in 0u64..20_000_000_000, since in 0u64..2_000_000_000,
    ) {
        if leaves_core(&policy, reach, lasted, since) {
            prop_assert!(lasted.min(since) >= policy.slice_max);
            prop_assert!(reach == Reach::SameCache || lasted >= policy.patience);
            prop_assert!(reach != Reach::OtherNode || lasted >= TURNS * policy.patience);
            for nearer in REACHES.into_iter().filter(|nearer| *nearer <= reach) {
                prop_assert!(leaves_core(&policy, nearer, lasted, since));
            }
            prop_assert!(leaves_core(&policy, reach, lasted + 1, since + 1));
        }
    }

    /// Each CPU tries every domain once, its own first, and none before one that is nearer. Of
    /// those that are equally far none is everybody's first.
    #[test]
    fn domains_are_tried_once_each_and_nearest_first(
        domains in 1u32..=128, near in prop::collection::vec(0u32..40, 128), own in any::<prop::sample::Index>(),
    ) {
        let own = own.index(domains as usize) as u32;
        let distance = |other: u32| near[other as usize];
        let order = nearest_first(own, domains, distance);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        prop_assert_eq!(sorted, (0..domains).collect::<Vec<u32>>());
        prop_assert_eq!(order[0], own);
        prop_assert!(order[1..].is_sorted_by_key(|other| distance(*other)));
        let ring: Vec<u32> = (0..domains).map(|step| (own + step) % domains).collect();
        prop_assert_eq!(nearest_first(own, domains, |_| 10), ring);
    }

    /// More tasks that wait, for longer, beside fewer CPUs, never keep a task from going to another
    /// node.
    #[test]
    fn who_goes_to_another_node_goes_all_the_more_if_more_wait(
        policy in policies(), waiting in 0u64..10_000, cpus in 1u64..512, lasted in 0u64..2_000_000_000,
    ) {
        if crosses_node(&policy, waiting, cpus, lasted) {
            prop_assert!(crosses_node(&policy, waiting + 1, cpus, lasted));
            prop_assert!(crosses_node(&policy, waiting, cpus, lasted + 1));
            prop_assert!(crosses_node(&policy, waiting, cpus - 1, lasted));
        }
        prop_assert!(!crosses_node(&policy, 0, cpus, lasted));
        prop_assert!(waiting == 0 || crosses_node(&policy, waiting, cpus, policy.patience));
    }

    /// A group that got a home on another node is not brought back for the load that it was spared.
    #[test]
    fn a_group_goes_to_another_node_only_for_more_than_a_little(
        policy in policies(), near in weights(), near_cpus in 1u64..128, far in weights(), far_cpus in 1u64..128,
    ) {
        if founds_far(&policy, near, near_cpus, far, far_cpus) {
            prop_assert!(near >= near_cpus * WEIGHT_NICE_0);
            prop_assert!(imbalanced(&policy, near, near_cpus, far, far_cpus));
            prop_assert!(!imbalanced(&policy, far, far_cpus, near, near_cpus));
            prop_assert!(founds_far(&policy, near + 1, near_cpus, far, far_cpus));
        }
    }
}

const REACHES: [Reach; 3] = [Reach::SameCache, Reach::SameNode, Reach::OtherNode];

fn reaches() -> impl Strategy<Value = Reach> {
    prop::sample::select(&REACHES[..])
}

/// Caches 0 and 1 are of a node.
fn reach(cache: u32, other: u32) -> Reach {
    match (cache == other, cache / 2 == other / 2) {
        (true, _) => Reach::SameCache,
        (_, true) => Reach::SameNode,
        (_, false) => Reach::OtherNode,
    }
}
