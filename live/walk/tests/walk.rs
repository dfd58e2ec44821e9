//! The real walk, tiny: on any Linux, without huge pages, without root. No test here is timed.

use warmq_coloring::needed_colors;
use warmq_units::{Bytes, CpuId, Duration};
use warmq_walk::{
    Backing, Geometry, Known, LatencyReport, LevelLatency, Progress, Spread, Translation, Unknown,
    WalkReport, WalkSettings, measure,
};

/// A cache so small that a page covers all of its sets.
const SMALL: Geometry = Geometry {
    level: 2,
    size: Bytes::from_kb(64),
    ways: 16,
    line: Bytes(64),
};

/// One whose sets the offset in a page does not choose.
const LARGE: Geometry = Geometry {
    level: 2,
    size: Bytes::from_mb(1),
    ways: 8,
    line: Bytes(64),
};

/// As if they had been measured.
fn latencies() -> LatencyReport {
    let level = |(level, ns)| LevelLatency {
        level,
        ns,
        buffer: Bytes::from_kb(4),
    };
    LatencyReport {
        cpu: 0,
        levels: [(1, 1.0), (2, 4.0), (3, 14.0)].map(level).to_vec(),
        memory_ns: Some(100.0),
        translation: Translation {
            stride: Bytes::from_kb(8),
            table: Vec::new(),
        },
    }
}

fn measured(settings: &WalkSettings, cache: Geometry) -> WalkReport {
    measure(settings, cache, &latencies(), &mut |_| ()).unwrap()
}

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
    let mut see = |progress| seen.push(progress);
    let report = measure(&tiny(), SMALL, &latencies(), &mut see).unwrap();
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
            u64::from(row.needed_colors),
            needed_colors(u64::from(row.blocks), SMALL.fit(Bytes::from_kb(8)))
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
    let walking = |done| Progress::Walking { done, total: 18 };
    assert_eq!(seen, (1..=18).map(walking).collect::<Vec<_>>());
}

#[test]
fn a_report_says_what_was_obtained_not_what_was_asked() {
    let report = measured(&tiny(), SMALL);
    assert!(!report.facts.huge_pages_asked);
    assert!(matches!(
        report.facts.pages,
        Backing::Small | Backing::Unknown
    ));
    assert_eq!(report.facts.sets.by, Known::Offset);
    assert_eq!(
        report.facts.sets.pages_known,
        report.facts.sets.pages_wanted
    );
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["facts"]["color_bits"], 13);
    assert_eq!(json["facts"]["cache"]["size"], 65_536);
    assert!(json["rows"][0]["ns_per_visit"]["median"].is_f64());
    assert!(json["rows"][0].get("visits").is_none());
}

#[test]
fn sets_that_were_not_looked_for_or_not_in_time_are_unknown() {
    for (search_time, why) in [
        (Duration::ZERO, vec![Unknown::NotAsked]),
        (
            Duration::from_ns(1),
            vec![Unknown::TimeUp, Unknown::NoClock],
        ),
    ] {
        let settings = WalkSettings {
            search_time,
            ..tiny()
        };
        let found = measured(&settings, LARGE).facts.sets;
        assert_eq!((found.by, found.pages_known), (Known::Unknown, 0));
        assert!(why.contains(&found.why.unwrap()), "{found:?}");
    }
}

#[test]
fn visits_lie_where_the_layout_puts_them() {
    let report = measured(&tiny(), SMALL);
    for row in &report.rows {
        let layout = tiny().layout(row.colors, SMALL);
        for visit in &row.visits {
            let offset = visit % 4096;
            assert!(
                offset < layout.end_of_hot() && offset % 64 == 0x20,
                "{visit:#x}"
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
    let error = measure(&settings, SMALL, &latencies(), &mut |_| ())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("cpu = 8000: ") && error.contains("write one of "),
        "{error}"
    );
}
