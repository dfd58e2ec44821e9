//! Pictures of a recorded state.

use super::*;
use crate::stats::sample::state;

fn drawn(before: u64, now: u64, place_is_cpu: bool, rows: usize) -> String {
    let look = |age| Statistics::of(&state(age, place_is_cpu));
    let interval = Interval {
        before: &look(before),
        now: &look(now),
        seconds: 2.0,
    };
    draw(&interval, rows, &|pid| (pid == 42).then(|| "db".to_owned()))
}

#[test]
fn rates_are_of_the_interval_and_groups_in_the_order_of_what_they_ran() {
    insta::assert_snapshot!(drawn(1, 3, false, 40));
}

#[test]
fn what_does_not_fit_is_counted() {
    let picture = drawn(1, 3, true, 5);
    assert!(
        !picture.contains("more"),
        "the least is shown whatever the room:\n{picture}"
    );
    let look = Statistics::of(&state(1, false));
    let interval = Interval {
        before: &look,
        now: &look,
        seconds: 1.0,
    };
    let table = group_table(&interval, 1, &|_| None);
    assert!(table.ends_with("and 1 more (see --stats-json)"), "{table}");
}

#[test]
fn a_scheduler_that_restarted_has_counted_from_nothing() {
    let (before, mut now) = (
        Statistics::of(&state(3, false)),
        Statistics::of(&state(1, false)),
    );
    now.started_at_ns += 1;
    let interval = Interval {
        before: &before,
        now: &now,
        seconds: 1.0,
    };
    assert!(draw(&interval, 40, &|_| None).contains("(restarted)"));
    // Five CPUs with 3000 each, and their numbers.
    assert_eq!(interval.grown("wakeups"), 15_010);
}

#[test]
fn numbers_are_as_long_as_they_need_to_be() {
    let cases = [
        (0, "0/s"),
        (3, "1.5/s"),
        (300, "150/s"),
        (30_000, "15.0k/s"),
        (4_600_000, "2.3M/s"),
    ];
    for (count, text) in cases {
        assert_eq!(per_second(count, 2.0), text);
    }
    assert_eq!(percent(1, 3), "33.3%");
    assert_eq!(percent(0, 0), "-");
    assert_eq!(ratio(9, 2), "4.5");
}

#[test]
fn cpus_in_a_row_are_a_range() {
    assert_eq!(ranges(&[0, 1, 2, 8, 10, 11]), "0-2,8,10-11");
    assert_eq!(ranges(&[]), "");
}
