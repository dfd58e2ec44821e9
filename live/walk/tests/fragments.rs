//! Fragments by the library: what is refused, and a tiny run in each mode.

use std::time::Duration;

use warmq_bench::compare::Mode;
use warmq_bench::fragments::{FragmentsSettings, measure_fragments};

fn tiny() -> FragmentsSettings {
    FragmentsSettings {
        threads: vec![1, 4],
        fragments: 3,
        sizes: vec![50],
        iterations: 10_000,
        repetitions: 3,
        ..FragmentsSettings::default()
    }
}

#[test]
fn settings_that_make_no_sense_are_refused_by_their_field() {
    type Change = fn(&mut FragmentsSettings);
    let wrong: [(&str, Change); 10] = [
        ("threads", |it| it.threads = vec![]),
        ("threads", |it| it.threads = vec![1, 10_001]),
        ("fragments", |it| it.fragments = 0),
        ("size", |it| it.sizes = vec![0]),
        ("size", |it| it.sizes = vec![1 << 29]),
        ("write_share", |it| it.write_share = 101),
        ("iterations", |it| it.iterations = 0),
        ("modes", |it| it.modes = vec![]),
        ("repetitions", |it| it.repetitions = 1001),
        ("time_limit", |it| it.time_limit = Duration::ZERO),
    ];
    tiny().check().unwrap();
    FragmentsSettings::default().check().unwrap();
    for (field, change) in wrong {
        let mut settings = tiny();
        change(&mut settings);
        let refused = settings.check().unwrap_err().to_string();
        assert!(refused.starts_with(field), "{refused}");
        assert!(refused.contains("; write "), "{refused}");
    }
}

#[test]
fn every_mode_does_all_the_work() {
    let settings = tiny();
    let mut steps = Vec::new();
    let report = measure_fragments(&settings, &mut |step| steps.push(step)).unwrap();
    assert_eq!(report.rows.len(), 2 * Mode::ALL.len());
    for row in &report.rows {
        let work = f64::from(row.threads) * 10_000.0;
        let (summary, mode) = (&row.compared.summary, row.compared.mode);
        // A rate and a time of the same run: the fastest run has the highest rate.
        let done = summary.work_per_s.max * summary.elapsed_s.min;
        assert!((done - work).abs() < 1e-6 * work, "{mode}");
        assert!((0.0..=1.0).contains(&row.together.median));
        if mode == Mode::Bound {
            assert_eq!((row.moves.max, row.together.min), (0.0, 1.0));
        }
        if !report.host.hints_heard || mode != Mode::Hinted {
            assert_eq!(row.hints_heard, 0, "{mode}");
        }
    }
    assert_eq!(steps.len(), settings.runs());
    assert_eq!(steps.last().unwrap().done, settings.runs());
}
