//! Each formula with worked numbers, under the default policy unless said.

#[path = "support/wakeup.rs"]
mod wakeup;

use warmq_decide::*;

use wakeup::*;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

fn domain(cpus: u32, tasks: u32) -> Domain {
    Domain {
        avg_vruntime: 1_000 * MS,
        weight: u64::from(tasks) * WEIGHT_NICE_0,
        runnable: tasks,
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
        wakeup_lag_max: 2 * MS,
        lag_max: 40 * MS,
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
fn vruntime_grows_faster_at_light_weights() {
    let table = [
        (WEIGHT_NICE_0, 4 * MS),
        (2 * WEIGHT_NICE_0, 2 * MS),
        (WEIGHT_NICE_0 / 2, 8 * MS),
        (WEIGHT_NICE_0 / 100, 400 * MS),
        (WEIGHT_MIN, 25_600 * MS),
        (1, 25_600 * MS),
        (0, 25_600 * MS),
    ];
    for (weight, expected) in table {
        assert_eq!(delta_vruntime(4 * MS, weight), expected, "weight {weight}");
    }
}

/// The part of the period: 20 ms * CPUs / runnable, from 0.5 to 4 ms.
#[test]
fn slices_share_the_period() {
    let table = [
        (0, 1, 4 * MS),
        (5, 1, 4 * MS),
        (10, 1, 2 * MS),
        (40, 1, 500 * US),
        (1_000, 1, 500 * US),
        (160, 16, 2 * MS),
        (10, 0, 2 * MS),
    ];
    for (runnable, cpus, expected) in table {
        let slice = slice(&policy(), runnable, cpus);
        assert_eq!(slice, expected, "{runnable} on {cpus} CPUs");
    }
}

/// Under 4 tasks per CPU, 10 ms of lag take as long to work off as 40 ms do under one.
#[test]
fn the_bounds_of_the_lag_shrink_with_the_load() {
    let table = [
        (1, 0, 40 * MS),
        (1, 1, 40 * MS),
        (1, 4, 10 * MS),
        (16, 16, 40 * MS),
        (16, 64, 10 * MS),
        (1, 1_000, 500 * US),
        // Fewer tasks than CPUs have one each.
        (16, 4, 40 * MS),
    ];
    for (cpus, tasks, expected) in table {
        let shrunk = scale_lag(&policy(), &domain(cpus, tasks), 40 * MS);
        assert_eq!(shrunk, expected, "{tasks} tasks on {cpus} CPUs");
    }
}

/// 64 tasks in a cgroup weigh as much as one: V advances 64 times as fast as with 64 of nice 0, and
/// so do the bounds, since the time in which a lag is worked off must be the same.
#[test]
fn the_bounds_of_the_lag_are_of_real_time_whatever_tasks_weigh() {
    let flat = Domain {
        weight: WEIGHT_NICE_0,
        ..domain(4, 64)
    };
    for ns in [40 * MS, 2 * MS, 0] {
        let expected = 64 * scale_lag(&policy(), &domain(4, 64), ns);
        assert_eq!(scale_lag(&policy(), &flat, ns), expected, "{ns}");
    }
    let (light, usual) = (WEIGHT_NICE_0 / 64, WEIGHT_NICE_0);
    assert_eq!(
        wait_bound(&policy(), &flat, light),
        wait_bound(&policy(), &domain(4, 64), usual)
    );
}

#[test]
fn lag_is_clamped_at_wakeup() {
    let idle = domain(1, 1);
    let avg = idle.avg_vruntime;
    let table = [
        ("in between", avg + MS, true, avg + MS),
        ("a long sleep", avg - 900 * MS, true, avg - 2 * MS),
        ("too short a sleep", avg - 900 * MS, false, avg),
        ("a slice and a tick", avg + 8 * MS, true, avg + 8 * MS),
        ("more than any share", avg + 900 * MS, true, avg + 48 * MS),
    ];
    for (case, vruntime, keeps_lag, expected) in table {
        assert_eq!(
            place_wakeup(&policy(), &idle, vruntime, WEIGHT_NICE_0, keeps_lag),
            expected,
            "{case}"
        );
    }
    // With four tasks per CPU: a quarter of both bounds, and two slices.
    let busy = domain(1, 4);
    let at = |vruntime| place_wakeup(&policy(), &busy, vruntime, WEIGHT_NICE_0, true);
    assert_eq!(at(0), avg - 500 * US);
    assert_eq!(at(avg + 900 * MS), avg + 18 * MS);
    // The floor of the scaling, the shortest slice, gives nothing to whom the policy gives nothing.
    let strict = Policy {
        wakeup_lag_max: 0,
        ..policy()
    };
    assert_eq!(place_wakeup(&strict, &busy, 0, WEIGHT_NICE_0, true), avg);
}

/// At nice 19 a run of 4 ms is worth 400 virtual ms, which a nap of 50 us does not pay for.
#[test]
fn a_nap_does_not_forgive_a_debt() {
    let beside_one = domain(1, 2);
    let debt = beside_one.avg_vruntime + 400 * MS;
    let light = WEIGHT_NICE_0 / 100;
    assert_eq!(
        place_wakeup(&policy(), &beside_one, debt, light, true),
        debt
    );
}

/// The members of an entity share one CPU of two; a task that has the other for itself has carried
/// the domain's V 300 ms ahead. Who comes back is placed among them.
#[test]
fn a_task_comes_back_among_those_whom_it_competes_with() {
    let members = Entity {
        avg_vruntime: 700 * MS,
        shift: 0,
        weight: 2 * WEIGHT_NICE_0,
        runnable: 2,
    };
    let place = |vtime| place_among(&policy(), &members, 1, vtime, WEIGHT_NICE_0, true);
    assert_eq!(place(690 * MS), 699 * MS);
    assert_eq!(place(701 * MS), 701 * MS);
}

#[test]
fn a_task_that_moves_awake_keeps_its_lag() {
    let busy = domain(1, 4);
    let avg = busy.avg_vruntime;
    // Four tasks on a CPU: a lag of up to 10 ms, and 8 ms for two slices of 4 ms, on either side.
    let table = [
        (avg - 9 * MS, avg - 9 * MS),
        (avg + 17 * MS, avg + 17 * MS),
        (avg - 900 * MS, avg - 18 * MS),
        (avg + 900 * MS, avg + 18 * MS),
    ];
    for (vruntime, expected) in table {
        assert_eq!(
            place_awake(&policy(), &busy, vruntime, WEIGHT_NICE_0),
            expected
        );
    }
}

#[test]
fn who_runs_while_nobody_waits_does_not_run_away() {
    let busy = domain(1, 4);
    let latest = busy.avg_vruntime + 18 * MS;
    for (vruntime, expected) in [(latest - MS, latest - MS), (latest + MS, latest), (0, 0)] {
        assert_eq!(forgive(&policy(), &busy, vruntime, WEIGHT_NICE_0), expected);
    }
}

#[test]
fn lag_min_allows_for_a_run_and_is_worked_off_in_four_seconds() {
    let table = [
        // 40 ms and a slice of 4 ms, which is twice as much vruntime at half the weight.
        (domain(1, 1), WEIGHT_NICE_0, 44 * MS),
        (domain(1, 1), WEIGHT_NICE_0 / 2, 48 * MS),
        // At a hundredth of the weight a slice is 400 ms, for which 80 tasks on two CPUs take 16 s.
        (domain(2, 80), WEIGHT_NICE_0 / 100, 100 * MS),
        (domain(2, 4), WEIGHT_NICE_0 / 100, 420 * MS),
    ];
    for (domain, weight, expected) in table {
        let lag = lag_min(&policy(), &domain, weight, 4 * MS);
        assert_eq!(lag / US, expected / US, "weight {weight} in {domain:?}");
    }
}

#[test]
fn lag_that_takes_over_four_seconds_is_clamped_when_queued() {
    let table = [(domain(2, 2), 4_000), (domain(2, 80), 100)];
    for (domain, most) in table {
        let latest = domain.avg_vruntime + most * MS;
        assert_eq!(clamp_queued(&domain, latest + MS), latest);
        assert_eq!(clamp_queued(&domain, latest - MS), latest - MS);
    }
}

#[test]
fn an_entitys_vruntime_is_its_v_and_shift() {
    let mut group = Entity {
        avg_vruntime: 70,
        shift: 30,
        weight: WEIGHT_NICE_0,
        runnable: 1,
    };
    assert_eq!((entity_vruntime(&group), vruntime(&group, 65)), (100, 95));
    // With members, a newcomer keeps its own vruntime among them.
    assert_eq!((join(&mut group, 95), group.shift), (65, 30));
    // Without, the group takes the vruntime of its first member.
    group.weight = 0;
    assert_eq!(join(&mut group, 500), 70);
    assert_eq!(entity_vruntime(&group), 500);
}

#[test]
fn an_entitys_lag_is_clamped() {
    let avg = 1_000 * MS;
    let at_avg = |cpus, tasks| Domain {
        avg_vruntime: avg,
        ..domain(cpus, tasks)
    };
    let table = [
        // 40 ms and two slices more, on either side.
        (at_avg(1, 1), avg + 49 * MS, avg + 48 * MS),
        (at_avg(1, 1), avg - 49 * MS, avg - 48 * MS),
        (at_avg(1, 1), avg + 39 * MS, avg + 39 * MS),
        // The same in real time where eight are runnable on two CPUs.
        (at_avg(2, 8), avg + 19 * MS, avg + 18 * MS),
        (at_avg(2, 8), avg - 19 * MS, avg - 18 * MS),
    ];
    for (domain, vruntime, expected) in table {
        let mut entity = Entity {
            avg_vruntime: 7,
            shift: vruntime - 7,
            weight: WEIGHT_NICE_0,
            runnable: 1,
        };
        clamp_entity(
            &policy(),
            &mut entity,
            &domain,
            succession(&policy(), false),
        );
        assert_eq!(entity_vruntime(&entity), expected);
        assert_eq!(entity.avg_vruntime, 7, "members keep their order");
    }
}

#[test]
fn what_runs_in_succession_is_a_slice_and_a_tick_and_maybe_a_batch() {
    assert_eq!(succession(&policy(), false), 8 * MS);
    assert_eq!(succession(&policy(), true), 16 * MS);
}

/// The heavy member of two runs elsewhere. For the light one, with a later deadline, its own
/// counts.
#[test]
fn the_pick_key_is_the_later_of_entity_and_task() {
    let mut entity = Entity {
        avg_vruntime: 50,
        shift: 100,
        weight: 2 * WEIGHT_NICE_0,
        runnable: 2,
    };
    let domain = Domain {
        avg_vruntime: 200,
        ..domain(2, 4)
    };
    let mut key = |deadline| pick_key(&policy(), &mut entity, &domain, 4 * MS, deadline);
    assert_eq!(key(80), 180);
    assert_eq!(key(20), 150);
}

/// Two of equal weight with vruntimes of 100 and 140: V is 120.
#[test]
fn v_is_the_weighted_mean_of_all_vruntimes() {
    let policy = policy();
    let with = |weight, at, joining| avg_add(&policy, 100, weight, at, joining) as i64;
    let without = |weight, at, leaving| avg_sub(&policy, 100, weight, at, leaving) as i64;
    let table = [
        (with(WEIGHT_NICE_0, 140, WEIGHT_NICE_0), 20),
        (with(3 * WEIGHT_NICE_0, 140, WEIGHT_NICE_0), 10),
        (with(WEIGHT_NICE_0, 60, WEIGHT_NICE_0), -20),
        (with(0, 140, WEIGHT_NICE_0), 40),
        (without(2 * WEIGHT_NICE_0, 120, WEIGHT_NICE_0), -20),
        (without(2 * WEIGHT_NICE_0, 80, WEIGHT_NICE_0), 20),
        (without(4 * WEIGHT_NICE_0, 70, WEIGHT_NICE_0), 10),
        // The last one takes no mean with it.
        (without(WEIGHT_NICE_0, 70, WEIGHT_NICE_0), 0),
        // By lag_max at most.
        (with(WEIGHT_NICE_0, 900 * MS, WEIGHT_NICE_0), 40 * MS as i64),
    ];
    for (index, (moved, expected)) in table.into_iter().enumerate() {
        assert_eq!(moved, expected, "case {index}");
    }
}

#[test]
fn a_task_that_exits_leaves_its_debt() {
    let half = WEIGHT_NICE_0 / 2;
    let left = |vruntime, weight| debt(100 * MS, vruntime, weight);
    assert_eq!(left(108 * MS, WEIGHT_NICE_0), 8 * MS);
    assert_eq!(left(108 * MS, half), 4 * MS);
    assert_eq!((left(100 * MS, half), left(90 * MS, half)), (0, 0));
    assert_eq!(left(u64::MAX / 4, half), 2_000 * MS);
}

#[test]
fn a_share_is_the_part_of_the_parent() {
    let table = [
        (
            WEIGHT_NICE_0,
            WEIGHT_NICE_0,
            2 * WEIGHT_NICE_0,
            WEIGHT_NICE_0 / 2,
        ),
        (
            WEIGHT_NICE_0,
            2 * WEIGHT_NICE_0,
            4 * WEIGHT_NICE_0,
            WEIGHT_NICE_0 / 2,
        ),
        (WEIGHT_NICE_0, WEIGHT_NICE_0, 0, WEIGHT_NICE_0),
        (
            WEIGHT_NICE_0 / 100,
            WEIGHT_NICE_0,
            10_000 * WEIGHT_NICE_0,
            WEIGHT_MIN,
        ),
    ];
    for (weight, parent, active, expected) in table {
        assert_eq!(share(weight, parent, active), expected);
    }
}

/// Of 2 CPUs one task can use one: half of all, as much as the others weigh together.
#[test]
fn a_weight_that_cannot_be_used_does_not_count() {
    let of = |weight, runnable, cpus| Domain {
        weight,
        runnable,
        ..domain(cpus, 0)
    };
    let (nice_0, nice_10, heaviest) = (WEIGHT_NICE_0, WEIGHT_NICE_0 / 9, 86 * WEIGHT_NICE_0);
    let others = nice_0 + nice_10;
    let table = [
        // It comes, or is there already with its whole weight, or with what it can use.
        (of(others, 2, 2), 0, others),
        (of(others + heaviest, 3, 2), heaviest, others),
        (of(2 * others, 3, 2), others, others),
        // On 4 CPUs a third of what 4 others weigh.
        (of(4 * nice_0, 4, 4), 0, 4 * nice_0 / 3),
        // Nobody has to wait, or there is one CPU to share.
        (of(nice_0, 1, 2), 0, heaviest),
        (of(others, 2, 1), 0, heaviest),
        (of(0, 0, 2), 0, heaviest),
    ];
    for (domain, own, expected) in table {
        let runnable = u64::from(domain.runnable) + u64::from(own == 0);
        let found = usable_weight(&domain, runnable, domain.cpus.into(), heaviest, own);
        assert_eq!(found, expected, "{own} of {domain:?}");
    }
    assert_eq!(usable_weight(&of(others, 2, 2), 3, 2, nice_0, 0), nice_0);
}

#[test]
fn a_slice_ends_at_the_nearest_tick() {
    let table = [
        (0, true),
        (1_999 * US, true),
        (2 * MS, false),
        (4 * MS, false),
    ];
    for (left, ends) in table {
        assert_eq!(slice_ends(left, 4 * MS), ends, "{left}");
    }
    assert!(!slice_ends(0, 0), "nothing is known of ticks");
    let seen = [4 * MS, 0, 900 * MS, 1_001 * US].map(|since| tick_length(3 * MS, since));
    assert_eq!(seen, [4 * MS, 3 * MS, 3 * MS, 1_001 * US]);
}

#[test]
fn a_request_is_the_rest_of_what_a_task_usually_runs() {
    let table = [
        ("nothing is known", 0, 0, 2 * MS),
        ("it is new and goes on", 0, 3 * MS, 4 * MS),
        ("it just woke", 50 * US, 0, 50 * US),
        ("it was preempted", 50 * US, 20 * US, 30 * US),
        ("it runs on beyond it", 50 * US, 60 * US, 4 * MS),
        ("it never sleeps for long", 900 * MS, 0, 4 * MS),
    ];
    for (case, expected, ran, wanted) in table {
        assert_eq!(request(expected, ran, 4 * MS), wanted, "{case}");
    }
    assert_eq!(expect(0, 50 * US), 50 * US);
    assert_eq!(expect(50 * US, 70 * US), 60 * US);
    assert_eq!(expect(1, 0), 1, "what is known stays known");
}

#[test]
fn a_deadline_is_when_the_request_is_served() {
    let domain = domain(1, 2);
    let avg = domain.avg_vruntime;
    let table = [
        (avg, WEIGHT_NICE_0, 4 * MS, avg + 4 * MS),
        (avg - 2 * MS, WEIGHT_NICE_0, 50 * US, avg - 1_950 * US),
        // Half the weight, twice as long.
        (avg, WEIGHT_NICE_0 / 2, 4 * MS, avg + 8 * MS),
        // At the least weight a slice is 25 s, and nobody waits for longer than 4 s.
        (avg, WEIGHT_MIN, 4 * MS, avg + 2_000 * MS),
    ];
    for (vruntime, weight, request, expected) in table {
        assert_eq!(deadline(&domain, vruntime, weight, request), expected);
    }
}

/// (0.5 + 10 + 8) ms of lag, worked off by 4 tasks on a CPU, a batch of 8 ms and a slice of 4 ms:
/// twice 86 ms.
#[test]
fn the_longest_wait_by_hand() {
    let table = [
        (domain(1, 4), WEIGHT_NICE_0, 172 * MS),
        // Alone: (2 + 40 + 8) and 12, twice.
        (domain(1, 1), WEIGHT_NICE_0, 124 * MS),
        // Half the weight needs slices of 8 virtual ms.
        (domain(1, 4), WEIGHT_NICE_0 / 2, 236 * MS),
        (domain(4, 16), WEIGHT_NICE_0, 172 * MS),
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
        (0, WEIGHT_NICE_0, 0),
        (1, WEIGHT_NICE_0, 50 * US),
        (20, WEIGHT_NICE_0, MS),
        (200, WEIGHT_NICE_0, 10 * MS),
        (20, 2 * WEIGHT_NICE_0, 500 * US),
        (20, WEIGHT_NICE_0 / 4, 4 * MS),
    ];
    for (sleeps, weight, expected) in table {
        let found = wakeup_granularity(&policy(), sleeps, weight);
        assert_eq!(found, expected, "{sleeps} sleeps, weight {weight}");
    }
    let off = Policy {
        alpha: 0,
        ..policy()
    };
    assert_eq!(wakeup_granularity(&off, 10_000, 1), 0);
    // No period is no division by zero.
    let timeless = Policy {
        period: 0,
        ..policy()
    };
    assert!(wakeup_granularity(&timeless, 1, WEIGHT_NICE_0) > 0);
}

#[test]
fn a_wakeup_preempts_unless_a_rule_forbids_it() {
    let plain = Wakeup {
        waking: 10 * MS,
        running: 10 * MS + 51 * US,
        sleeps: 1,
        weight: WEIGHT_NICE_0,
        slept: 5 * MS,
        since: MS,
        outranks: 0,
    };
    let table = [
        (plain, Verdict::Granted),
        (
            Wakeup {
                running: 10 * MS + 50 * US,
                ..plain
            },
            Verdict::TooClose,
        ),
        (Wakeup { sleeps: 2, ..plain }, Verdict::TooClose),
        (
            Wakeup {
                sleeps: 2,
                weight: 2 * WEIGHT_NICE_0,
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
        // SCHED_IDLE gives way whatever else is so.
        (
            Wakeup {
                running: 0,
                since: 0,
                outranks: 1,
                ..plain
            },
            Verdict::Granted,
        ),
    ];
    for (wakeup, expected) in table {
        assert_eq!(wakeup_preempts(&policy(), &wakeup), expected, "{wakeup:?}");
    }
    let patient = Policy {
        min_sleep: 6 * MS,
        ..policy()
    };
    assert_eq!(wakeup_preempts(&patient, &plain), Verdict::ShortSleep);
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
fn a_new_group_expects_the_tasks_of_those_that_were_founded_within_patience() {
    assert_eq!(newcomers(&policy(), 3, 0), 3);
    assert_eq!(newcomers(&policy(), 3, 20 * MS - 1), 3);
    assert_eq!(newcomers(&policy(), 3, 20 * MS), 0);
    let (calm, busy) = (WEIGHT_NICE_0, 17 * WEIGHT_NICE_0);
    assert_eq!(expected_load(calm, 0, 16), calm);
    // One newcomer on 16 CPUs is as good as 16 tasks.
    assert_eq!(expected_load(calm, 1, 16), busy);
    assert!(less_loaded(busy, 16, expected_load(calm, 2, 16), 16));
}

#[test]
fn loads_are_compared_by_cpu() {
    assert!(less_loaded(3, 2, 2, 1));
    assert!(!less_loaded(4, 2, 2, 1));
    // 25 % more is still even: (4 tasks + 16 parts) * 1.25.
    let busier = |weight| imbalanced(&policy(), weight, 1, 4 * WEIGHT_NICE_0, 1);
    assert!(!busier(5 * WEIGHT_NICE_0));
    assert!(!busier(5 * WEIGHT_NICE_0 + 20));
    assert!(busier(5 * WEIGHT_NICE_0 + 21));
    assert!(imbalanced(
        &policy(),
        21 * WEIGHT_NICE_0,
        2,
        64 * WEIGHT_NICE_0,
        8
    ));
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

/// Whole groups where groups weigh more, else unmanaged tasks, else whole groups; a split last. A
/// task that would turn the imbalance round waits ten times as long.
#[test]
fn what_relieves_a_busy_place_in_order() {
    let long = 20 * MS;
    let table = [
        ("nothing to do", (0, 9, 9, 1, 9, long), Relief::Leave),
        (
            "groups are the cause",
            (5, 9, 9, 1, 4, 0),
            Relief::MoveGroup,
        ),
        (
            "tasks are the cause",
            (5, 8, 9, 9, 4, 0),
            Relief::MoveUnmanaged,
        ),
        ("each group runs", (5, 9, 1, 1, 0, 0), Relief::MoveUnmanaged),
        ("nobody but groups", (5, 9, 0, 0, 4, 0), Relief::MoveGroup),
        ("three and two", (5, 0, 20, 10, 0, 9 * long), Relief::Leave),
        (
            "take turns",
            (5, 0, 20, 10, 0, 10 * long),
            Relief::MoveUnmanaged,
        ),
        ("not long enough", (5, 9, 0, 0, 0, long - 1), Relief::Leave),
        ("it lasts", (5, 9, 0, 0, 0, long), Relief::SplitGroup),
        ("nothing to split", (5, 0, 0, 0, 0, long), Relief::Leave),
    ];
    for (case, (excess, managed, unmanaged, task, movable, lasted), expected) in table {
        let found = relieve(&policy(), excess, managed, unmanaged, task, movable, lasted);
        assert_eq!(found, expected, "{case}");
    }
    assert_eq!(TURNS, 10);
}

#[test]
fn partners_are_two_who_wake_each_other() {
    let turns = (0..9).fold(0, |turns, _| in_turn(turns, true, true));
    assert_eq!(turns, PARTNERS);
    assert_eq!(in_turn(PARTNERS, false, true), 0);
    assert_eq!(in_turn(PARTNERS, true, false), 0);
}

#[test]
fn groups_spread_along_wakeups() {
    let met = |wakee, waker, firmness| {
        let mut firmness = firmness;
        (meet(wakee, waker, &mut firmness), firmness)
    };
    let table = [
        ((0, 0, 0), (Kinship::Strangers, 1)),
        ((0, 3, FAMILIAR - 1), (Kinship::Strangers, FAMILIAR)),
        ((0, 0, FAMILIAR), (Kinship::Found, FAMILIAR)),
        ((0, 3, FAMILIAR), (Kinship::WakeeJoins, FAMILIAR)),
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
    assert_eq!([32, 5, 1, 0].map(|firmness| fade(firmness)), [16, 2, 0, 0]);
}

/// A CPU that has work asks for full speed after one window, and comes down within some.
#[test]
fn a_cpu_asks_for_the_speed_that_its_tasks_need() {
    assert_eq!(used(0, 4 * MS, 4 * MS), 1024);
    assert_eq!(used(0, 5 * MS, 4 * MS), 1024);
    assert_eq!(used(0, MS, 4 * MS), 256);
    assert_eq!(used(1024, 0, 4 * MS), 768);
    let asleep = (0..30).fold(1024, |before, _| used(before, 0, 4 * MS));
    assert_eq!(asleep, 0);
    assert_eq!(
        [0, 256, 820, 1024].map(|used| speed(used)),
        [0, 320, 1024, 1024]
    );
}

/// At home a task is served within about a slice while no more wait than there are CPUs.
#[test]
fn a_task_goes_to_another_node_if_many_wait_or_for_long() {
    let table = [
        ((0, 8, 10_000 * MS), false),
        ((1, 8, 0), false),
        ((8, 8, 0), false),
        ((9, 8, 0), true),
        ((1, 1, 0), false),
        ((2, 1, 0), true),
        ((1, 8, 20 * MS - 1), false),
        ((1, 8, 20 * MS), true),
    ];
    for ((waiting, cpus, lasted), expected) in table {
        let case = format!("{waiting} wait for {cpus} CPUs, for {lasted} ns");
        assert_eq!(
            crosses_node(&policy(), waiting, cpus, lasted),
            expected,
            "{case}"
        );
    }
}

/// The loads are tasks of nice 0.
#[test]
fn a_new_group_goes_to_another_node_if_all_cpus_of_its_own_have_work() {
    let table = [
        ((7, 8, 0, 8), false),
        ((8, 8, 0, 8), true),
        ((8, 8, 6, 8), true),
        ((8, 8, 7, 8), false),
        ((8, 8, 3, 4), true),
        ((8, 8, 4, 4), false),
    ];
    for ((near, near_cpus, far, far_cpus), expected) in table {
        let case = format!("{near} on {near_cpus} CPUs, {far} on {far_cpus} elsewhere");
        let (near, far) = (near * WEIGHT_NICE_0, far * WEIGHT_NICE_0);
        let goes = founds_far(&policy(), near, near_cpus, far, far_cpus);
        assert_eq!(goes, expected, "{case}");
    }
}

#[test]
fn a_better_core_is_worth_more_the_nearer_it_is() {
    let gains = [Reach::SameCache, Reach::SameNode, Reach::OtherNode];
    assert_eq!(gains.map(|reach| core_gain(1, 0, reach)), [17, 9, 1]);
    assert_eq!(gains.map(|reach| core_gain(1, 1, reach)), [0, 0, 0]);
    let leaves = |reach, lasted| leaves_core(&policy(), reach, lasted, 4 * MS);
    for (reach, after) in gains.into_iter().zip([4, 20, 200]) {
        assert!(!leaves(reach, after * MS - 1), "{reach:?}");
        assert!(leaves(reach, after * MS), "{reach:?}");
    }
}

#[test]
fn the_nearest_domains_come_first_and_of_equals_the_next() {
    // Two parts of a cache, two more caches of the node, and four of another.
    let distance = |other| [0, 0, 10, 10, 21, 21, 21, 21][other as usize];
    assert_eq!(nearest_first(1, 8, distance), [1, 0, 2, 3, 4, 5, 6, 7]);
    let back = |other| [21, 21, 21, 21, 10, 10, 10, 10][other as usize];
    assert_eq!(nearest_first(6, 8, back), [6, 7, 4, 5, 0, 1, 2, 3]);
}
