//! The real walk, tiny: on any Linux, without huge pages, without root. No test here is timed.

use warmq_bench::{Backing, Geometry, Known, Spread, WalkSettings, measure, needed_colors};
use warmq_units::{Bytes, CpuId, Duration};

/// A cache so small that the search for its sets is not even tried: a page covers all of them.
const SMALL: Geometry = Geometry {
    level: 2,
    size: Bytes::from_kb(64),
    ways: 16,
    line: Bytes(64),
};

fn tiny() -> WalkSettings {
    WalkSettings {
        blocks: vec![1, 7, 64],
        colors: vec![1, 4],
        lines: 2,
        color_bits: Some(13),
        huge_pages: false,
        repetitions: 3,
        min_time: Duration::from_us(10),
        ..WalkSettings::default()
    }
}

#[test]
fn every_pair_of_blocks_and_colors_is_measured_in_turn() {
    let mut seen = Vec::new();
    let report = measure(&tiny(), SMALL, &mut |progress| seen.push(progress)).unwrap();
    let pairs: Vec<_> = report
        .rows
        .iter()
        .map(|row| (row.blocks, row.colors))
        .collect();
    assert_eq!(pairs, [(1, 1), (1, 4), (7, 1), (7, 4), (64, 1), (64, 4)]);
    for row in &report.rows {
        assert_eq!(row.repetitions, 3);
        assert_eq!(row.visits.len(), row.blocks as usize);
        assert_eq!(
            row.needed_colors,
            needed_colors(row.blocks, SMALL.size, Bytes::from_kb(8))
        );
        let Spread {
            min,
            low,
            median,
            high,
            max,
        } = row.ns_per_visit;
        assert!(0.0 < min && min <= low && low <= median && median <= high && high <= max);
    }
    let done: Vec<_> = seen.iter().map(|progress| progress.done).collect();
    assert_eq!(done, (1..=18).collect::<Vec<_>>());
    assert!(seen.iter().all(|progress| progress.total == 18));
}

#[test]
fn a_report_says_what_was_obtained_not_what_was_asked() {
    let report = measure(&tiny(), SMALL, &mut |_| ()).unwrap();
    assert!(!report.facts.huge_pages_asked);
    assert!(matches!(
        report.facts.pages,
        Backing::Small | Backing::Unknown
    ));
    assert_ne!(report.facts.addresses, Known::Measured);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["facts"]["color_bits"], 13);
    assert_eq!(json["facts"]["cache"]["size"], 65_536);
    assert!(json["rows"][0]["ns_per_visit"]["median"].is_f64());
    assert!(json["rows"][0].get("visits").is_none());
}

#[test]
fn visits_lie_where_the_layout_puts_them() {
    let report = measure(&tiny(), SMALL, &mut |_| ()).unwrap();
    for row in &report.rows {
        let layout = tiny().layout(row.colors, SMALL);
        for visit in &row.visits {
            let offset = visit.0 % 4096;
            assert!(
                offset < layout.end_of_hot() && offset % 64 == 0x20,
                "{visit}"
            );
        }
    }
}

#[test]
fn a_cpu_that_is_not_there_is_refused_and_the_others_are_named() {
    let settings = WalkSettings {
        cpu: Some(CpuId(8000)),
        ..tiny()
    };
    let error = measure(&settings, SMALL, &mut |_| ())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("cpu = 8000: ") && error.contains("write one of "),
        "{error}"
    );
}
