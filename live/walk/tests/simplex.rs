//! The whole comparison, as short as it can be, over each link.

use std::time::Duration;

use warmq_bench::BenchError;
use warmq_bench::simplex::{LinkKind, Policy, SimplexReport, SimplexSettings, compare};

/// `None` where the machine cannot do it, and says what it needs.
fn measured(settings: &SimplexSettings) -> Option<SimplexReport> {
    match compare(settings, &mut |_| {}) {
        Ok(report) => Some(report),
        Err(BenchError::System { fix, .. }) => {
            assert!(
                fix.contains("--link loopback") || fix.contains("two"),
                "{fix}"
            );
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn short() -> SimplexSettings {
    SimplexSettings {
        kpps: vec![2],
        work: Duration::from_millis(20),
        repetitions: 2,
        ..SimplexSettings::default()
    }
}

fn makes_sense(report: &SimplexReport) {
    let told: Vec<_> = report
        .rows
        .iter()
        .map(|row| (row.kpps, row.policy))
        .collect();
    assert_eq!(told, [(2, Policy::Other), (2, Policy::Batch)]);
    for it in report.rows.iter().flat_map(|row| &row.repetitions) {
        assert_eq!(it.receivers.received + it.receivers.lost, it.sender.count);
        assert!(it.receivers.gaps <= it.receivers.lost, "{it:?}");
        assert!(it.simplex.work_share > 0.0 && it.simplex.cpu_share > 0.0);
        if let Some(latency) = it.receivers.latency {
            assert!(latency.p50_ns <= latency.p99_ns && latency.p99_ns <= latency.max_ns);
        }
    }
}

#[test]
fn loopback_is_measured_in_each_policy() {
    if let Some(report) = measured(&short()) {
        makes_sense(&report);
        assert!(!report.cut_short);
    }
}

#[test]
fn virtual_ethernet_is_measured_or_refused_with_the_mend() {
    let link = LinkKind::Veth;
    if let Some(report) = measured(&SimplexSettings { link, ..short() }) {
        makes_sense(&report);
    }
}

#[test]
fn many_receivers_share_the_stream() {
    let settings = SimplexSettings {
        receivers: 5,
        ..short()
    };
    if let Some(report) = measured(&settings) {
        makes_sense(&report);
    }
}

#[test]
fn every_measurement_is_told_of() {
    let settings = short();
    let mut seen = Vec::new();
    let done = compare(&settings, &mut |progress| {
        seen.push((progress.done, progress.total))
    });
    if done.is_ok() {
        let total = settings.measurements();
        let expected: Vec<_> = (0..=total).map(|done| (done, total)).collect();
        assert_eq!(seen, expected);
    }
}

#[test]
fn a_time_limit_cuts_short_and_says_so() {
    let settings = SimplexSettings {
        repetitions: 1000,
        time_limit: Duration::from_millis(900),
        ..short()
    };
    if let Some(report) = measured(&settings) {
        assert!(report.cut_short);
    }
}
