//! The laws of a timetable.

use proptest::prelude::*;
use warmq_machine::Timetable;
use warmq_units::{Duration, Instant};

const LINE: Duration = Duration::from_ns(60);
const ADDRESS: Duration = Duration::from_ns(20);

fn at(ns: u64) -> Instant {
    Instant(0) + Duration::from_ns(ns)
}

/// Books each of `asked` (ns, slots) and returns the slots that it got.
fn book_all(timetable: &mut Timetable, asked: &[(u64, u32)]) -> Vec<std::ops::Range<u64>> {
    let slot = timetable.slot().0;
    let book = |(ns, slots): &(u64, u32)| {
        let wait = timetable.book(at(*ns), *slots);
        let start = (at(*ns) + wait).0;
        assert!(
            wait == Duration::ZERO || start.is_multiple_of(slot),
            "waits end with a slot"
        );
        start / slot..start / slot + u64::from(*slots)
    };
    asked.iter().map(book).collect()
}

proptest! {
    #[test]
    fn no_two_transactions_overlap_and_none_is_early(
        asked in prop::collection::vec((0..20_000_u64, 1..=64_u32), 1..200),
    ) {
        let mut timetable = Timetable::new(LINE, ADDRESS);
        let mut runs = book_all(&mut timetable, &asked);
        let slots: u64 = asked.iter().map(|(_, slots)| u64::from(*slots)).sum();
        prop_assert_eq!(runs.iter().map(|run| run.end - run.start).sum::<u64>(), slots);
        runs.sort_by_key(|run| run.start);
        for pair in runs.windows(2) {
            prop_assert!(pair[0].end <= pair[1].start, "{:?} and {:?}", &pair[0], &pair[1]);
        }
    }

    #[test]
    fn a_transaction_takes_the_first_gap_it_fits_into(
        asked in prop::collection::vec((0..4_000_u64, 1..=40_u32), 1..60),
    ) {
        let mut timetable = Timetable::new(LINE, ADDRESS);
        let mut taken = vec![false; 10_000];
        for (run, (ns, slots)) in book_all(&mut timetable, &asked).into_iter().zip(&asked) {
            let (first, length) = ((ns / 20) as usize, *slots as usize);
            let fits = |start: &usize| !taken[*start..start + length].contains(&true);
            prop_assert_eq!(run.start as usize, (first..).find(fits).unwrap());
            taken[run.start as usize..run.end as usize].fill(true);
        }
    }

    #[test]
    fn nobody_waits_on_a_quiet_bus(gaps in prop::collection::vec(64..1_000_000_u64, 1..300)) {
        let mut timetable = Timetable::new(LINE, ADDRESS);
        let mut now = 0;
        for gap in gaps {
            prop_assert_eq!(timetable.book(at(now), 3), Duration::ZERO);
            now += gap + 3 * 20;
        }
    }
}

#[test]
fn a_slot_divides_both_lengths_unless_that_makes_it_tiny() {
    for (line, address, slot) in [
        (60, 20, 20),
        (50, 20, 10),
        (60, 0, 60),
        (0, 0, 0),
        (15, 15, 15),
        (20, 60, 20),
    ] {
        let timetable = Timetable::new(Duration::from_ns(line), Duration::from_ns(address));
        assert_eq!(timetable.slot(), Duration::from_ns(slot).max(Duration(1)));
    }
    let coprime = Timetable::new(Duration(60_001), Duration(20_000));
    assert_eq!(coprime.slot(), Duration(1_876), "a 32nd, rounded up");
    assert_eq!(coprime.slots(Duration(60_001)), 32);
}

#[test]
fn a_busy_bus_serves_in_turn() {
    let mut timetable = Timetable::new(LINE, ADDRESS);
    let waits = [0, 0, 0, 5, 5].map(|now| timetable.book(at(now), 3));
    assert_eq!(waits, [0, 60, 120, 175, 235].map(Duration::from_ns));
}

#[test]
fn a_call_that_comes_out_of_the_order_of_time_fills_a_gap() {
    let mut timetable = Timetable::new(LINE, ADDRESS);
    assert_eq!(timetable.book(at(100_000), 3), Duration::ZERO);
    assert_eq!(
        timetable.book(at(1_000), 3),
        Duration::ZERO,
        "the bus was free then"
    );
    assert_eq!(
        timetable.book(at(99_980), 3),
        Duration::from_ns(80),
        "too short a gap"
    );
    assert_eq!(timetable.book(at(99_980), 1), Duration::ZERO, "long enough");
}

#[test]
fn a_time_before_the_window_finds_the_bus_free() {
    let mut timetable = Timetable::new(LINE, ADDRESS);
    let (early, late) = (at(0), at(1_000_000_000));
    assert_eq!(
        [early, early].map(|now| timetable.book(now, 3)),
        [0, 60].map(Duration::from_ns)
    );
    timetable.book(late, 3);
    assert_eq!(
        [early; 3].map(|now| timetable.book(now, 3)),
        [Duration::ZERO; 3]
    );
    assert_eq!(
        timetable.book(late, 3),
        Duration::from_ns(60),
        "and does no harm to the present"
    );
}

#[test]
fn the_window_is_some_milliseconds() {
    let mut timetable = Timetable::new(LINE, ADDRESS);
    timetable.book(at(0), 3);
    timetable.book(at(4_000_000), 3);
    assert_eq!(
        timetable.book(at(0), 3),
        Duration::from_ns(60),
        "remembered for 4 ms"
    );
}
