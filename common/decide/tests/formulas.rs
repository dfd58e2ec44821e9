//! Each formula with worked numbers, under the default policy unless said.

use warmq_decide::*;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

fn domain(cpus: u64, tasks: u64) -> Domain {
    Domain {
        clock: 1_000 * MS,
        weight: tasks * WHOLE,
        cpus,
    }
}

fn policy() -> Policy {
    Policy::default()
}

#[test]
fn the_default_policy_is_the_headers() {
    let expected = Policy {
        period: 20 * MS,
        slice_max: 4 * MS,
        slice_min: 500 * US,
        credit: 2 * MS,
        limit: 40 * MS,
        alpha: 1_000,
        preempt_interval: MS,
        min_sleep: 0,
        batch_budget: 8 * MS,
        imbalance: 25,
        patience: 20 * MS,
    };
    assert_eq!(policy(), expected);
}

#[test]
fn time_runs_faster_for_light_weights() {
    let table = [
        (WHOLE, 4 * MS),
        (2 * WHOLE, 2 * MS),
        (WHOLE / 2, 8 * MS),
        (64, 400 * MS),
        (LEAST_WEIGHT, 1_600 * MS),
        (1, 1_600 * MS),
        (0, 1_600 * MS),
    ];
    for (weight, expected) in table {
        assert_eq!(virtual_time(4 * MS, weight), expected, "weight {weight}");
    }
}

/// The part of the period: 20 ms * CPUs / (waiting + 1), from 0.5 to 4 ms.
#[test]
fn slices_share_the_period() {
    let table = [
        (0, 1, 4 * MS),
        (4, 1, 4 * MS),
        (9, 1, 2 * MS),
        (39, 1, 500 * US),
        (1_000, 1, 500 * US),
        (159, 16, 2 * MS),
        (9, 0, 2 * MS),
    ];
    for (waiting, cpus, expected) in table {
        let slice = slice(&policy(), waiting, cpus);
        assert_eq!(slice, expected, "{waiting} waiting for {cpus} CPUs");
    }
}

/// 40 ms apart take as long to cross under 4 tasks a CPU as 10 ms would.
#[test]
fn what_is_owed_shrinks_with_the_load() {
    let table = [
        (1, 0, 40 * MS),
        (1, 1, 40 * MS),
        (1, 4, 10 * MS),
        (16, 16, 40 * MS),
        (16, 64, 10 * MS),
        (1, 1_000, 500 * US),
        (0, 1, 500 * US),
    ];
    for (cpus, tasks, expected) in table {
        let shrunk = shrink(&policy(), &domain(cpus, tasks), 40 * MS);
        assert_eq!(shrunk, expected, "{tasks} tasks on {cpus} CPUs");
    }
}

#[test]
fn who_wakes_stands_near_the_clock() {
    let idle = domain(1, 1);
    let clock = idle.clock;
    let table = [
        ("in between", clock + MS, true, clock + MS),
        ("a long sleep", clock - 900 * MS, true, clock - 2 * MS),
        ("too short a sleep", clock - 900 * MS, false, clock),
        ("an old debt", clock + 900 * MS, true, clock + 40 * MS),
    ];
    for (case, position, counts, expected) in table {
        assert_eq!(
            place(&policy(), &idle, position, counts),
            expected,
            "{case}"
        );
    }
    // With four tasks a CPU: a quarter of the credit, and of the limit.
    let busy = domain(1, 4);
    assert_eq!(place(&policy(), &busy, 0, true), clock - 500 * US);
    assert_eq!(
        place(&policy(), &busy, clock + 900 * MS, true),
        clock + 10 * MS
    );
    // The shortest slice is no more than a policy without credit gives.
    let strict = Policy {
        credit: 0,
        ..policy()
    };
    assert_eq!(place(&strict, &busy, 0, true), clock);
}

#[test]
fn who_moves_awake_stands_where_it_stood() {
    let busy = domain(1, 4);
    let clock = busy.clock;
    // Four tasks on a CPU: 10 ms on either side, and two slices of 4 ms ahead.
    let table = [
        (clock - 9 * MS, clock - 9 * MS),
        (clock + 17 * MS, clock + 17 * MS),
        (clock - 900 * MS, clock - 10 * MS),
        (clock + 900 * MS, clock + 18 * MS),
    ];
    for (position, expected) in table {
        assert_eq!(keep_place(&policy(), &busy, position, WHOLE), expected);
    }
}

#[test]
fn a_debt_is_what_a_slice_costs_and_can_be_paid_in_four_seconds() {
    let table = [
        // 40 ms and a slice; at half the weight the slice is twice as dear.
        (domain(1, 1), WHOLE, 44 * MS),
        (domain(1, 1), WHOLE / 2, 48 * MS),
        // A slice of a hundredth of the weight is 400 ms, for which 80 tasks on two CPUs take 16 s.
        (domain(2, 80), WHOLE / 100, 100 * MS),
        (domain(2, 4), WHOLE / 100, 420 * MS),
    ];
    for (domain, weight, expected) in table {
        let debt = most_debt(&policy(), &domain, weight, 4 * MS);
        assert_eq!(debt / US, expected / US, "weight {weight} in {domain:?}");
    }
}

#[test]
fn what_cannot_be_paid_in_four_seconds_is_forgiven() {
    let table = [(domain(2, 2), 4_000), (domain(2, 80), 100)];
    for (domain, most) in table {
        let ahead = domain.clock + most * MS;
        assert_eq!(forgive(&domain, ahead + MS), ahead);
        assert_eq!(forgive(&domain, ahead - MS), ahead - MS);
    }
}

#[test]
fn the_new_stands_a_slice_behind_the_clock() {
    let domain = domain(2, 3);
    assert_eq!(first_position(&policy(), &domain), domain.clock + 4 * MS);
}

#[test]
fn an_entity_stands_at_its_clock_and_shift() {
    let mut group = Entity {
        clock: 70,
        shift: 30,
        weight: WHOLE,
    };
    assert_eq!((entity_position(&group), position(&group, 65)), (100, 95));
    // With members, a newcomer takes its own place among them.
    assert_eq!((join(&mut group, 95), group.shift), (65, 30));
    // Without, the group stands where its first member does.
    group.weight = 0;
    assert_eq!(join(&mut group, 500), 70);
    assert_eq!(entity_position(&group), 500);
}

#[test]
fn an_entity_is_kept_near_the_clock() {
    let clock = 1_000 * MS;
    let at_clock = |cpus, tasks| Domain {
        clock,
        ..domain(cpus, tasks)
    };
    let table = [
        // 40 ms behind, and two slices more ahead.
        (at_clock(1, 1), clock + 49 * MS, clock + 48 * MS),
        (at_clock(1, 1), clock - 41 * MS, clock - 40 * MS),
        (at_clock(1, 1), clock + 39 * MS, clock + 39 * MS),
        // As far apart in real time where eight are runnable on two CPUs.
        (at_clock(2, 8), clock + 19 * MS, clock + 18 * MS),
        (at_clock(2, 8), clock - 11 * MS, clock - 10 * MS),
    ];
    for (domain, position, expected) in table {
        let mut entity = Entity {
            clock: 7,
            shift: position - 7,
            weight: WHOLE,
        };
        bound_entity(
            &policy(),
            &mut entity,
            &domain,
            succession(&policy(), false),
        );
        assert_eq!(entity_position(&entity), expected);
        assert_eq!(entity.clock, 7, "members keep their order");
    }
}

#[test]
fn what_runs_in_succession_is_a_slice_and_a_tick_and_maybe_a_batch() {
    assert_eq!(succession(&policy(), false), 8 * MS);
    assert_eq!(succession(&policy(), true), 16 * MS);
}

/// The heavy member of two has a CPU; the light one, which stands behind, waits for its turn.
#[test]
fn a_turn_is_the_entitys_and_the_next_tasks() {
    let mut entity = Entity {
        clock: 50,
        shift: 100,
        weight: 2 * WHOLE,
    };
    let domain = Domain {
        clock: 200,
        ..domain(2, 4)
    };
    let mut turn = |vtime| turn(&policy(), &mut entity, &domain, 4 * MS, vtime);
    assert_eq!(turn(80), 180);
    assert_eq!(turn(20), 150);
}

/// Two of equal weight stand at 100 and 140: at 120 in the mean.
#[test]
fn a_clock_is_the_mean_of_where_all_stand() {
    let policy = policy();
    let with = |weight, at, joining| mean_with(&policy, 100, weight, at, joining) as i64;
    let without = |weight, at, leaving| mean_without(&policy, 100, weight, at, leaving) as i64;
    let table = [
        (with(WHOLE, 140, WHOLE), 20),
        (with(3 * WHOLE, 140, WHOLE), 10),
        (with(WHOLE, 60, WHOLE), -20),
        (with(0, 140, WHOLE), 40),
        (without(2 * WHOLE, 120, WHOLE), -20),
        (without(2 * WHOLE, 80, WHOLE), 20),
        (without(4 * WHOLE, 70, WHOLE), 10),
        // The last one takes no mean with it.
        (without(WHOLE, 70, WHOLE), 0),
        // No further than the limit.
        (with(WHOLE, 900 * MS, WHOLE), 40 * MS as i64),
    ];
    for (index, (moved, expected)) in table.into_iter().enumerate() {
        assert_eq!(moved, expected, "case {index}");
    }
}

#[test]
fn a_share_is_the_part_of_the_parent() {
    let table = [
        (WHOLE, WHOLE, 2 * WHOLE, WHOLE / 2),
        (WHOLE, 2 * WHOLE, 4 * WHOLE, WHOLE / 2),
        (WHOLE, WHOLE, 0, WHOLE),
        (64, WHOLE, 10_000 * WHOLE, LEAST_WEIGHT),
    ];
    for (weight, parent, active, expected) in table {
        assert_eq!(share(weight, parent, active), expected);
    }
}

/// (0.5 + 10 + 4) ms apart, at the pace of 4 tasks and one more on a CPU, a batch of 8 ms and a
/// slice of 4: twice 84.5 ms.
#[test]
fn the_longest_wait_by_hand() {
    let table = [
        (domain(1, 4), WHOLE, 169 * MS),
        // On an idle domain: (2 + 40 + 4) * 2 + 12, twice.
        (domain(1, 1), WHOLE, 208 * MS),
        // Half the weight needs a slice of 8 virtual ms.
        (domain(1, 4), WHOLE / 2, 209 * MS),
        (domain(4, 16), WHOLE, 147_250 * US),
    ];
    for (domain, weight, expected) in table {
        let bound = wait_bound(&policy(), &domain, weight);
        assert_eq!(bound, expected, "weight {weight} in {domain:?}");
    }
}

/// Formula 5-1: alpha * sleeps / (period * weight), here 1 us for one sleep a second.
#[test]
fn granularity_by_formula_5_1() {
    let table = [
        (0, WHOLE, 0),
        (1, WHOLE, 50 * US),
        (20, WHOLE, MS),
        (200, WHOLE, 10 * MS),
        (20, 2 * WHOLE, 500 * US),
        (20, WHOLE / 4, 4 * MS),
    ];
    for (sleeps, weight, expected) in table {
        let found = granularity(&policy(), sleeps, weight);
        assert_eq!(found, expected, "{sleeps} sleeps, weight {weight}");
    }
    let off = Policy {
        alpha: 0,
        ..policy()
    };
    assert_eq!(granularity(&off, 10_000, 1), 0);
    // No period is no division by zero.
    let timeless = Policy {
        period: 0,
        ..policy()
    };
    assert!(granularity(&timeless, 1, WHOLE) > 0);
}

#[test]
fn a_wakeup_preempts_when_nothing_speaks_against_it() {
    let plain = Wakeup {
        waking: 10 * MS,
        running: 10 * MS + 51 * US,
        sleeps: 1,
        weight: WHOLE,
        slept: 5 * MS,
        since: MS,
    };
    let table = [
        (plain, Verdict::Granted),
        (
            Wakeup {
                running: 10 * MS + 50 * US,
                ..plain
            },
            Verdict::NotBehind,
        ),
        (Wakeup { sleeps: 2, ..plain }, Verdict::NotBehind),
        (
            Wakeup {
                sleeps: 2,
                weight: 2 * WHOLE,
                ..plain
            },
            Verdict::Granted,
        ),
        (
            Wakeup {
                since: MS - 1,
                ..plain
            },
            Verdict::TooSoon,
        ),
    ];
    for (wakeup, expected) in table {
        assert_eq!(preempts(&policy(), &wakeup), expected, "{wakeup:?}");
    }
    let patient = Policy {
        min_sleep: 6 * MS,
        ..policy()
    };
    assert_eq!(preempts(&patient, &plain), Verdict::ShortSleep);
}

#[test]
fn a_batch_ends_with_its_budget_if_others_wait() {
    let table = [
        (0, true, true),
        (8 * MS - 1, true, true),
        (8 * MS, true, false),
        (800 * MS, false, true),
    ];
    for (used, others, expected) in table {
        assert_eq!(batch_goes_on(&policy(), used, others), expected);
    }
}

#[test]
fn loads_are_compared_by_cpu() {
    assert!(less_loaded(3, 2, 2, 1));
    assert!(!less_loaded(4, 2, 2, 1));
    // 25 % more is still even: (4 tasks + 16 parts) * 1.25.
    let busier = |weight| imbalanced(&policy(), weight, 1, 4 * WHOLE, 1);
    assert!(!busier(5 * WHOLE));
    assert!(!busier(5 * WHOLE + 20));
    assert!(busier(5 * WHOLE + 21));
    assert!(imbalanced(&policy(), 21 * WHOLE, 2, 64 * WHOLE, 8));
}

#[test]
fn the_excess_levels_two_places() {
    let table = [
        (10, 1, 4, 1, 3),
        (4, 1, 10, 1, 0),
        // 12 on 2 CPUs and 4 on 1: 16 on 3 CPUs, so that two thirds stay.
        (12, 2, 4, 1, 1),
        (100, 1, 0, 4, 80),
    ];
    for (busy, busy_cpus, calm, calm_cpus, expected) in table {
        let found = excess(busy, busy_cpus, calm, calm_cpus);
        assert_eq!(found, expected, "{busy}/{busy_cpus} and {calm}/{calm_cpus}");
    }
}

#[test]
fn the_group_nearest_to_the_excess_moves() {
    let table = [
        (10, 0, 10, true),
        (19, 0, 10, true),
        (20, 0, 10, false),
        (0, 0, 10, false),
        (9, 12, 10, true),
        (8, 12, 10, false),
        (13, 6, 10, true),
    ];
    for (weight, best, excess, expected) in table {
        let found = better_group(weight, best, excess);
        assert_eq!(found, expected, "{weight} after {best} of {excess}");
    }
}

/// Whole groups where groups are the cause, else unmanaged tasks, else whole groups; a split last.
#[test]
fn what_relieves_a_busy_place_in_order() {
    let long = 20 * MS;
    let table = [
        ("nothing to do", (0, 9, 9, 9, long), Relief::Leave),
        ("groups are the cause", (5, 9, 9, 4, 0), Relief::MoveGroup),
        (
            "tasks are the cause",
            (5, 8, 9, 4, 0),
            Relief::MoveUnmanaged,
        ),
        ("each group runs", (5, 9, 1, 0, 0), Relief::MoveUnmanaged),
        ("nobody but groups", (5, 9, 0, 4, 0), Relief::MoveGroup),
        ("not long enough", (5, 9, 0, 0, long - 1), Relief::Leave),
        ("it lasts", (5, 9, 0, 0, long), Relief::SplitGroup),
        ("nothing to split", (5, 0, 0, 0, long), Relief::Leave),
    ];
    for (case, (excess, managed, unmanaged, movable, lasted), expected) in table {
        let found = relieve(&policy(), excess, managed, unmanaged, movable, lasted);
        assert_eq!(found, expected, "{case}");
    }
}

#[test]
fn groups_spread_along_wakeups() {
    let met = |wakee, waker, firmness| {
        let mut firmness = firmness;
        (meet(wakee, waker, &mut firmness), firmness)
    };
    let table = [
        ((0, 0, 0), (Kinship::Found, 0)),
        ((0, 3, 0), (Kinship::WakeeJoins, 0)),
        ((3, 0, 5), (Kinship::WakerJoins, 5)),
        ((3, 3, 5), (Kinship::Strangers, 6)),
        ((3, 3, FIRM), (Kinship::Strangers, FIRM)),
        ((3, 2, 5), (Kinship::Strangers, 4)),
        ((3, 2, 0), (Kinship::WakeeJoins, 0)),
        ((2, 3, 0), (Kinship::Strangers, 0)),
    ];
    for ((wakee, waker, firmness), expected) in table {
        let case = format!("{wakee} woken by {waker}, firm {firmness}");
        assert_eq!(met(wakee, waker, firmness), expected, "{case}");
    }
    assert_eq!([32, 5, 1, 0].map(fade), [16, 2, 0, 0]);
}
