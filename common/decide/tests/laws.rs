//! What holds for any numbers, those near the end of 64 bits included.

use proptest::prelude::*;
use warmq_decide::*;

/// Positions differ from clocks by less than this: a million seconds.
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
            |((period, slice, other), (credit, limit), sleepers, groups)| Policy {
                period,
                slice_max: slice.max(other),
                slice_min: slice.min(other),
                credit,
                limit: limit.max(slice.min(other)),
                alpha: sleepers.0,
                preempt_interval: sleepers.1,
                min_sleep: sleepers.2,
                batch_budget: groups.0,
                imbalance: groups.1,
                patience: groups.2,
            },
        )
}

/// Any clock, and often one that is about to wrap or has just done so.
fn clocks() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0u64..FAR,
        (0u64..FAR).prop_map(|before| u64::MAX - before)
    ]
}

fn domains() -> impl Strategy<Value = Domain> {
    (clocks(), 0u64..10_000 * WHOLE, 1u64..512).prop_map(|(clock, weight, cpus)| Domain {
        clock,
        weight,
        cpus,
    })
}

/// How far from a clock: to both sides.
fn distances() -> impl Strategy<Value = u64> {
    (0u64..FAR, any::<bool>())
        .prop_map(|(far, behind)| if behind { far.wrapping_neg() } else { far })
}

fn entities() -> impl Strategy<Value = Entity> {
    (clocks(), clocks(), 0u64..1_000 * WHOLE).prop_map(|(clock, shift, weight)| Entity {
        clock,
        shift,
        weight,
    })
}

/// `to` less `from`, which may stand on either side.
fn apart(from: u64, to: u64) -> i64 {
    to.wrapping_sub(from) as i64
}

proptest! {
    #[test]
    fn no_sleeper_has_more_than_its_credit(
        policy in policies(), domain in domains(), distance in distances(), counts: bool,
    ) {
        let placed = place(&policy, &domain, domain.clock.wrapping_add(distance), counts);
        let credit = if counts { policy.credit } else { 0 };
        prop_assert!(apart(domain.clock, placed) >= -(credit as i64));
        prop_assert!(apart(domain.clock, placed) <= policy.limit as i64);
    }

    #[test]
    fn placing_again_changes_nothing(
        policy in policies(), domain in domains(), distance in distances(), counts: bool,
    ) {
        let placed = place(&policy, &domain, domain.clock.wrapping_add(distance), counts);
        prop_assert_eq!(place(&policy, &domain, placed, counts), placed);
    }

    #[test]
    fn joining_keeps_where_a_task_stands(mut entity in entities(), position in clocks()) {
        let (empty, clock) = (entity.weight == 0, entity.clock);
        let vtime = join(&mut entity, position);
        prop_assert_eq!(warmq_decide::position(&entity, vtime), position);
        prop_assert_eq!(entity.clock, clock);
        if empty {
            prop_assert_eq!(entity_position(&entity), position);
        }
    }

    #[test]
    fn an_empty_entity_gives_its_first_member_nothing(mut entity in entities(), position in clocks()) {
        entity.weight = 0;
        let vtime = join(&mut entity, position);
        prop_assert_eq!(vtime, entity.clock);
    }

    #[test]
    fn emigrants_stay_as_far_from_the_clock(
        from in clocks(), to in clocks(), distance in distances(),
    ) {
        let there = emigrate(from.wrapping_add(distance), from, to);
        prop_assert_eq!(there.wrapping_sub(to), distance);
        prop_assert_eq!(emigrate(there, to, from), from.wrapping_add(distance));
    }

    #[test]
    fn a_bounded_entity_stands_near_the_clock(
        policy in policies(), mut entity in entities(), domain in domains(), distance in distances(),
        members in clocks(), group: bool,
    ) {
        let clock = entity_position(&entity).wrapping_add(distance);
        let domain = Domain { clock, ..domain };
        let succession = succession(&policy, group);
        let (first, second) = (position(&entity, members), position(&entity, members.wrapping_add(9)));
        bound_entity(&policy, &mut entity, &domain, succession);
        let ahead = apart(clock, entity_position(&entity));
        let most = shrink(&policy, &domain, policy.limit);
        prop_assert!(-ahead <= most as i64, "{ahead}");
        prop_assert!(ahead <= (most + virtual_time(succession, entity.weight)) as i64, "{ahead}");
        let (again, after) = (position(&entity, members), position(&entity, members.wrapping_add(9)));
        prop_assert_eq!(apart(first, second), apart(again, after));
    }

    /// Who comes and goes at once leaves the clock where it was, but for rounding; while it is there,
    /// the clock lies between where it was and where the newcomer stands.
    #[test]
    fn coming_and_going_is_worth_nothing(
        policy in policies(), clock in clocks(), ahead in 0u64..1_000_000_000, behind: bool,
        weight in 16u64..1_000 * WHOLE, joining in 16u64..10 * WHOLE,
    ) {
        let at = if behind { clock.wrapping_sub(ahead) } else { clock.wrapping_add(ahead) };
        let policy = Policy { limit: u64::MAX / 2, ..policy };
        let with = clock.wrapping_add(mean_with(&policy, clock, weight, at, joining));
        prop_assert!(apart(clock, with).unsigned_abs() <= ahead);
        prop_assert!(ahead == 0 || apart(clock, with) == 0 || (apart(clock, with) < 0) == behind);
        let moved = mean_without(&policy, with, weight + joining, at, joining);
        let rounding = joining / weight + 2;
        prop_assert!(apart(clock, with.wrapping_add(moved)).unsigned_abs() <= rounding);
    }

    #[test]
    fn no_mean_moves_further_than_the_limit(
        policy in policies(), clock in clocks(), distance in distances(),
        weight in 0u64..1_000 * WHOLE, part in 1u64..10 * WHOLE,
    ) {
        let at = clock.wrapping_add(distance);
        let moves = [
            mean_with(&policy, clock, weight, at, part),
            mean_without(&policy, clock, weight, at, part),
        ];
        for moved in moves {
            prop_assert!((moved as i64).unsigned_abs() <= policy.limit, "{moved}");
        }
    }

    #[test]
    fn batches_are_bounded(policy in policies(), used in 0u64..10_000_000_000, others: bool) {
        let goes_on = batch_goes_on(&policy, used, others);
        prop_assert!(!others || !goes_on || used < policy.batch_budget);
        prop_assert!(others || goes_on);
    }

    #[test]
    fn slices_are_within_their_bounds(policy in policies(), waiting in 0u64..100_000, cpus in 0u64..512) {
        let slice = slice(&policy, waiting, cpus);
        prop_assert!((policy.slice_min..=policy.slice_max).contains(&slice));
        prop_assert!(warmq_decide::slice(&policy, waiting + 1, cpus) <= slice);
    }

    /// A move never makes the calm place busier than the busy one was before, by CPU.
    #[test]
    fn no_group_turns_the_imbalance_round(
        busy in 0u64..1_000 * WHOLE, busy_cpus in 1u64..64,
        calm in 0u64..1_000 * WHOLE, calm_cpus in 1u64..64,
        groups in prop::collection::vec(0u64..300 * WHOLE, 0..20),
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
        one in 0u64..1_000 * WHOLE, one_cpus in 1u64..64,
        other in 0u64..1_000 * WHOLE, other_cpus in 1u64..64,
    ) {
        let there = imbalanced(&policy, one, one_cpus, other, other_cpus);
        let back = imbalanced(&policy, other, other_cpus, one, one_cpus);
        prop_assert!(!(there && back));
        prop_assert!(!there || less_loaded(other, other_cpus, one, one_cpus));
        prop_assert!(!there || excess(one, one_cpus, other, other_cpus) > 0
            || one * other_cpus - other * one_cpus < one_cpus + other_cpus);
    }

    /// Clocks that wrap are as good as others: what is decided depends on distances alone.
    #[test]
    fn clocks_may_wrap(
        policy in policies(), domain in domains(), distance in distances(), other in distances(),
        by in clocks(), sleeps in 0u64..1_000, counts: bool, entity in entities(),
    ) {
        let moved = Domain { clock: domain.clock.wrapping_add(by), ..domain };
        let (here, there) = (domain.clock.wrapping_add(distance), domain.clock.wrapping_add(other));
        let placed = place(&policy, &domain, here, counts);
        let kept = keep_place(&policy, &domain, here, entity.weight).wrapping_add(by);
        prop_assert_eq!(kept, keep_place(&policy, &moved, here.wrapping_add(by), entity.weight));
        let placed_moved = place(&policy, &moved, here.wrapping_add(by), counts);
        prop_assert_eq!(placed.wrapping_add(by), placed_moved);
        prop_assert_eq!(before(here, there), before(here.wrapping_add(by), there.wrapping_add(by)));

        let wakeup = Wakeup {
            waking: here, running: there, sleeps, weight: WHOLE, slept: 1_000_000, since: 1_000_000,
        };
        let later = Wakeup { waking: here.wrapping_add(by), running: there.wrapping_add(by), ..wakeup };
        prop_assert_eq!(preempts(&policy, &wakeup), preempts(&policy, &later));

        let mut bounded = entity;
        let mut turned = Entity { clock: entity.clock.wrapping_add(by), ..entity };
        bound_entity(&policy, &mut bounded, &Domain { clock: here, ..domain }, 9);
        bound_entity(&policy, &mut turned, &Domain { clock: here.wrapping_add(by), ..domain }, 9);
        prop_assert_eq!(entity_position(&bounded).wrapping_add(by), entity_position(&turned));
    }

    #[test]
    fn more_sleeps_never_help(
        policy in policies(), waking in clocks(), ahead in distances(), sleeps in 0u64..1_000,
        weight in 16u64..100 * WHOLE, slept in 0u64..1_000_000_000, since in 0u64..1_000_000_000,
    ) {
        let fewer = Wakeup { waking, running: waking.wrapping_add(ahead), sleeps, weight, slept, since };
        let more = Wakeup { sleeps: sleeps + 1, ..fewer };
        prop_assert!(granularity(&policy, sleeps, weight) <= granularity(&policy, sleeps + 1, weight));
        prop_assert!(granularity(&policy, sleeps, weight) >= granularity(&policy, sleeps, weight + 1));
        if preempts(&policy, &more) == Verdict::Granted {
            prop_assert_eq!(preempts(&policy, &fewer), Verdict::Granted);
        }
    }

    #[test]
    fn shares_add_up_to_the_parent(weights in prop::collection::vec(64u64..10 * WHOLE, 1..20), parent in 16u64..100 * WHOLE) {
        let active = weights.iter().sum();
        let shares: Vec<u64> = weights.iter().map(|weight| share(*weight, parent, active)).collect();
        let seen: u64 = shares.iter().filter(|share| **share > LEAST_WEIGHT).sum();
        prop_assert!(seen <= parent);
        prop_assert!(shares.iter().all(|share| *share >= LEAST_WEIGHT));
        let lost = parent.saturating_sub(shares.iter().sum());
        prop_assert!(lost <= weights.len() as u64, "{lost} of {parent} lost to rounding");
    }

    #[test]
    fn inference_forgets(firmness in 0u32..=FIRM) {
        let faded = (0..6).fold(firmness, |firmness, _| fade(firmness));
        prop_assert_eq!(faded, 0);
    }

    /// Any wakeups among a few tasks: firmness is bounded, and who has a group only goes to an older
    /// one, so that wandering ends.
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
}
