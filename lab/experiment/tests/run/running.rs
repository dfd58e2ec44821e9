//! Which runs are made, how often, and what results.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use warmq_experiment::{Experiment, Finding, Options, Runs};
use warmq_report::Origin;

use crate::fake::{Fake, file, read, run, swept};

#[test]
fn equal_plans_run_once_even_of_two_experiments() {
    let one = read(&swept(""));
    let same = read(&file(
        "[settings]\ncpus = 8\n[[measure]]\nmetric = \"made_up\"",
    ));
    let options = Options {
        seeds: Some(vec![1]),
        ..Options::default()
    };
    let fake = Fake::default();
    let jobs = one.jobs(&options).into_iter().chain(same.jobs(&options));
    let runs = Runs::of(jobs, &fake, 2, &|_| {}).unwrap();
    assert_eq!(
        fake.runs.load(Ordering::Relaxed),
        12,
        "8 cpus and 1 color are in the sweep"
    );
    assert_eq!(runs.0.len(), 12);
    assert_eq!(same.outcome(&options, &runs).rows.len(), 1);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let experiment = read(&swept(""));
    let options = Options {
        seeds: Some(vec![3, 1, 2]),
        ..Options::default()
    };
    let of = |threads| {
        Runs::of(
            experiment.jobs(&options),
            &Fake::default(),
            threads,
            &|_| {},
        )
        .unwrap()
    };
    let (one, four) = (of(1), of(4));
    assert_eq!(one, four);
    let (first, second) = (
        experiment.outcome(&options, &one),
        experiment.outcome(&options, &four),
    );
    assert_eq!(first.digest, second.digest);
    assert_eq!(format!("{:?}", first.rows), format!("{:?}", second.rows));
}

#[test]
fn progress_counts_every_run_to_the_last() {
    let experiment = read(&swept(""));
    let seen = Mutex::new(Vec::new());
    let note = |progress: warmq_experiment::Progress<'_>| {
        assert_eq!(progress.total, 12);
        assert!(
            progress.name.starts_with("trial: cpus = "),
            "{}",
            progress.name
        );
        seen.lock().unwrap().push(progress.done);
    };
    Runs::of(
        experiment.jobs(&Options::default()),
        &Fake::default(),
        3,
        &note,
    )
    .unwrap();
    let mut seen = seen.into_inner().unwrap();
    seen.sort_unstable();
    assert_eq!(seen, (1..=12).collect::<Vec<_>>());
}

#[test]
fn a_simulator_that_answers_differently_is_found_out() {
    let experiment = read(&swept(""));
    let jobs = || experiment.jobs(&Options::default());
    let steady = Fake::default();
    let runs = |fake, threads| Runs::of(jobs(), fake, threads, &|_| {}).unwrap();
    let first = runs(&steady, 2);
    assert!(first.differences(&runs(&steady, 1)).is_empty());
    let fickle = Fake {
        fickle: true,
        ..Fake::default()
    };
    let first = runs(&fickle, 1);
    let differences = first.differences(&runs(&fickle, 1));
    assert_eq!(differences.len(), 12);
    assert_ne!(differences[0].first, differences[0].second);
}

#[test]
fn rows_carry_median_range_and_published_figures() {
    let experiment = read(&swept(
        "[[published]]\nmetric = \"gain\"\nat = { colors = 32 }\nalong = \"cpus\"\n\
         values = [31, 31, 30, 29]\ncalibration = true",
    ));
    let options = Options {
        seeds: Some(vec![5, 9, 6]),
        ..Options::default()
    };
    let (_, outcome) = run(&experiment, &options);
    let row = |metric: &str, point: &str| {
        let found = outcome
            .rows
            .iter()
            .find(|row| row.metric == metric && row.point.to_string() == point);
        let row = found.unwrap_or_else(|| panic!("no row {metric} at {point}"));
        (row.value, row.low, row.high, row.published, row.calibration)
    };
    assert_eq!(
        row("seeded", "cpus = 2, colors = 8"),
        (6.0, 5.0, 9.0, None, false)
    );
    let (gain, low, high, published, calibration) = row("gain", "cpus = 8, colors = 32");
    assert!((gain - 31.0).abs() < 1e-9 && low <= gain && gain <= high);
    assert_eq!((published, calibration), (Some(29.0), true));
    let gains = outcome.rows.iter().filter(|row| row.metric == "gain");
    assert_eq!(gains.count(), 8, "a base is not compared with itself");
}

#[test]
fn what_a_run_does_not_give_is_no_number() {
    let (_, outcome) = run(&read(&swept("")), &Options::default());
    let mut absent = outcome.rows.iter().filter(|row| row.metric == "absent");
    assert!(absent.all(|row| row.value.is_nan()));
}

#[test]
fn a_failed_run_is_reported_and_spoils_nothing_else() {
    let text = file("[sweep]\ncolors = [12, 13]\n[[measure]]\nmetric = \"made_up\"")
        .replace("linux24", "elsc");
    let experiment = read(&text);
    let options = Options {
        seeds: Some(vec![1]),
        ..Options::default()
    };
    let (runs, outcome) = run(&experiment, &options);
    let values: Vec<bool> = outcome.rows.iter().map(|row| row.value.is_nan()).collect();
    assert_eq!(values, [false, true]);
    let failure = &outcome.failures[0];
    assert_eq!(failure.name, "trial: colors = 13, seed 1");
    let why = failure.error.to_string();
    assert_eq!(why, "elsc gave cpu 1 a task that sleeps, at 3.2 ms");
    let section = experiment.section(&options, &runs, &outcome, "warmq run trial.toml");
    assert!(section.notes[0].contains("No measurement from trial: colors = 13"));
}

#[test]
fn runs_that_fail_for_one_reason_are_reported_together() {
    let text = file("[sweep]\ncolors = [12, 13]\n[[measure]]\nmetric = \"made_up\"")
        .replace("linux24", "elsc");
    let experiment = read(&text);
    let options = Options {
        seeds: Some(vec![1, 2, 3]),
        ..Options::default()
    };
    let (runs, outcome) = run(&experiment, &options);
    assert_eq!(outcome.failures.len(), 3);
    let section = experiment.section(&options, &runs, &outcome, "");
    let of_runs = section
        .notes
        .iter()
        .filter(|note| note.contains("No measurement"));
    let expected = "No measurement from trial: colors = 13, seed 1 and 2 other runs: elsc gave cpu 1 a task that sleeps, at 3.2 ms";
    assert_eq!(of_runs.collect::<Vec<_>>(), [expected]);
}

/// Every kind of claim, and its verdict in a full and in a quick run. The quick run has 1, 2 and 8
/// cpus, 1 and 32 colors.
const CLAIMS: &[(&str, Finding, Finding)] = {
    use Finding::{Fails, Holds, NotChecked};
    &[
        ("metric = \"gain\"\nat_least = 6", Holds, Holds),
        ("metric = \"gain\"\nat_least = 8", Fails, Holds),
        ("metric = \"gain\"\nat_least = 8\nshare = 50", Holds, Holds),
        ("metric = \"gain\"\nat_least = 8\nshare = 51", Fails, Holds),
        (
            "metric = \"gain\"\nat = { colors = 8 }\nat_least = 6.9\nat_most = 7.1",
            Holds,
            NotChecked,
        ),
        (
            "metric = \"gain\"\nat = { colors = 32 }\nat_most = 30",
            Fails,
            Fails,
        ),
        (
            "metric = \"gain\"\nat = { colors = 32 }\nat_most = 30\nnot = true",
            Holds,
            Holds,
        ),
        (
            "metric = [\"gain\", \"made_up\"]\nat_least = 6",
            Holds,
            Holds,
        ),
        (
            "metric = [\"gain\", \"made_up\"]\nat_most = 20",
            Fails,
            Fails,
        ),
        ("metric = \"absent\"\nat_most = 5", Fails, Fails),
        ("metric = \"absent\"\nat_most = 5\nnot = true", Fails, Fails),
        (
            "metric = \"gain\"\nat = { colors = 32 }\nnear = 30\nwithin_percent = 5",
            Holds,
            Holds,
        ),
        (
            "metric = \"gain\"\nat = { colors = 32 }\nnear = 30\nwithin_points = 0.5",
            Fails,
            Fails,
        ),
        (
            "metric = \"gain\"\nnear = \"published\"\nwithin_factor = 1.1",
            Fails,
            Holds,
        ),
        (
            "metric = \"gain\"\nnear = \"published\"\nwithin_factor = 1.1\nshare = 50",
            Holds,
            Holds,
        ),
        (
            "metric = \"requests_per_second\"\nalong = \"cpus\"\ntrend = \"rises\"",
            Holds,
            Holds,
        ),
        (
            "metric = \"requests_per_second\"\nalong = \"cpus\"\ntrend = \"falls\"",
            Fails,
            Fails,
        ),
        (
            "metric = \"made_up\"\nalong = \"cpus\"\ntrend = \"rises\"",
            Fails,
            Fails,
        ),
        (
            "metric = \"made_up\"\nalong = \"cpus\"\ntrend = \"rises\"\nto = 4",
            Holds,
            NotChecked,
        ),
        (
            "metric = \"made_up\"\nalong = \"cpus\"\ntrend = \"falls\"\nfrom = 4",
            Holds,
            NotChecked,
        ),
        (
            "metric = \"made_up\"\nalong = \"cpus\"\ntrend = \"falls\"\nfrom = 2",
            Fails,
            Holds,
        ),
        (
            "metric = \"made_up\"\nalong = \"colors\"\ntrend = \"flat\"",
            Holds,
            Holds,
        ),
        (
            "metric = \"made_up\"\nalong = \"cpus\"\ntrend = \"flat\"\nslack = 20",
            Fails,
            Fails,
        ),
        (
            "metric = \"made_up\"\nalong = \"cpus\"\ntrend = \"flat\"\nslack = 60",
            Holds,
            Holds,
        ),
        (
            "metric = \"requests_per_second\"\norder = [{ colors = 32 }, { colors = 1 }]",
            Holds,
            Holds,
        ),
        (
            "metric = \"requests_per_second\"\norder = [{ colors = 1 }, { colors = 32 }]",
            Fails,
            Fails,
        ),
        (
            "metric = \"requests_per_second\"\nby_factor = 1.3\norder = [{ colors = 32 }, { colors = 1 }]",
            Holds,
            Holds,
        ),
        (
            "metric = \"requests_per_second\"\nby_factor = 1.4\norder = [{ colors = 32 }, { colors = 1 }]",
            Fails,
            Fails,
        ),
        (
            "metric = \"requests_per_second\"\norder = [{ colors = 32 }, { colors = 8 }, { colors = 1 }]",
            Holds,
            NotChecked,
        ),
        (
            "metric = \"needed\"\nnear = 32\nwithin_points = 0",
            Holds,
            NotChecked,
        ),
        (
            "metric = \"peak\"\nat_least = 4\nat_most = 4",
            Holds,
            NotChecked,
        ),
        (
            "metric = \"best\"\nat = { cpus = 2 }\nnear = 262\nwithin_percent = 0.1",
            Holds,
            NotChecked,
        ),
        (
            "metric = \"spike\"\nnear = 48\nwithin_points = 0",
            Holds,
            Holds,
        ),
        ("metric = \"over\"\nat_least = 4", Holds, Holds),
    ]
};

fn with_claims() -> Experiment {
    let mut rest = "[[measure]]\nname = \"needed\"\nof = \"requests_per_second\"\n\
        along = \"colors\"\ntake = \"needed\"\n\
        [[measure]]\nname = \"peak\"\nof = \"made_up\"\nalong = \"cpus\"\ntake = \"peak_at\"\n\
        [[measure]]\nname = \"best\"\nof = \"requests_per_second\"\nalong = \"colors\"\n\
        take = \"largest\"\n\
        [[measure]]\nname = \"spike\"\nhistogram = \"bus_by_page_offset\"\ntake = \"peak_at\"\n\
        [[measure]]\nname = \"over\"\nhistogram = \"bus_by_page_offset\"\n\
        take = \"peak_over_next\"\n\
        [[published]]\nmetric = \"gain\"\nat = { cpus = 4, colors = 8 }\nvalue = 9\n\
        [[published]]\nmetric = \"gain\"\nat = { cpus = 2, colors = 32 }\nvalue = 30\n"
        .to_owned();
    for (claim, _, _) in CLAIMS {
        rest.push_str(&format!(
            "[[claim]]\nsays = \"s\"\nsource = \"here\"\n{claim}\n"
        ));
    }
    read(&swept(&rest))
}

#[test]
fn every_shape_of_a_claim_holds_or_fails_as_it_should() {
    let experiment = with_claims();
    let (_, full) = run(&experiment, &Options::default());
    let (_, quick) = run(
        &experiment,
        &Options {
            quick: true,
            ..Options::default()
        },
    );
    for (at, (claim, in_full, in_quick)) in CLAIMS.iter().enumerate() {
        let judged = &full.claims[at];
        assert_eq!(
            judged.finding, *in_full,
            "full: {claim}\n{}",
            judged.numbers
        );
        let judged = &quick.claims[at];
        assert_eq!(
            judged.finding, *in_quick,
            "quick: {claim}\n{}",
            judged.numbers
        );
    }
}

#[test]
fn the_numbers_of_a_claim_say_what_was_compared() {
    let (_, outcome) = run(&with_claims(), &Options::default());
    let numbers: Vec<String> = outcome
        .claims
        .iter()
        .map(|judged| format!("{:?}: {}", judged.finding, judged.numbers))
        .collect();
    insta::assert_snapshot!(numbers.join("\n"));
}

#[test]
fn a_section_shows_rows_claims_plots_and_parameters() {
    let experiment = read(&swept(
        "[[published]]\nmetric = \"gain\"\nat = { cpus = 2, colors = 32 }\nvalue = 30\n\
         [[plot]]\ny = \"gain\"\nx = \"cpus\"\nseries = \"colors\"\n\
         [[plot]]\nkind = \"histogram\"\ny = \"bus_by_page_offset\"\nseries = \"colors\"\n\
         at = { cpus = 8 }\nmarker = [{ x = 48, label = \"0x30\" }]\n\
         [labels.colors]\n1 = \"vanilla\"\n",
    ));
    let options = Options::default();
    let (runs, outcome) = run(&experiment, &options);
    let section = experiment.section(&options, &runs, &outcome, "warmq run trial.toml");
    let names: Vec<(&str, Origin, usize)> = section.plots[0]
        .series
        .iter()
        .map(|series| (series.name.as_str(), series.origin, series.points.len()))
        .collect();
    let expected = [
        ("8 colors", Origin::Simulated, 4),
        ("32 colors", Origin::Simulated, 4),
        ("32 colors", Origin::Published, 1),
    ];
    assert_eq!(names, expected);
    let names: Vec<&str> = section.plots[1]
        .series
        .iter()
        .map(|series| series.name.as_str())
        .collect();
    assert_eq!(names, ["vanilla", "8 colors", "32 colors"]);
    assert_eq!(section.plots[1].x.label, "offset in the page");
    assert_eq!(section.plots[0].y.unit, "%");
    let parameters: Vec<&str> = section
        .parameters
        .iter()
        .map(|parameter| parameter.name.as_str())
        .collect();
    assert_eq!(parameters, ["kernel.switch", "machine.l2"]);
    assert_eq!(section.digests[0].value, outcome.digest);
    let report = warmq_report::Report {
        sections: vec![section],
        ..Default::default()
    };
    assert_eq!(report.summary().compared(), 1);
}
