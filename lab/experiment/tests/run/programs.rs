//! Compiled schedulers by the names of their programs, and those whose programs are missing.

use std::path::PathBuf;

use warmq_experiment::{Engine, Experiment, Finding, Options, Outcome, Runs};

/// Where the program of our own is that has one queue; there is no other.
fn find(name: &str) -> Option<PathBuf> {
    let programs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../sched-ext/tests/programs");
    (name == "scx_faults").then(|| programs.join("faults.bpf.o"))
}

fn played(schedulers: &str) -> (Outcome, Engine) {
    let text = format!(
        r#"
        title = "Two that spin"
        machine = "small-4llc"
        workload = "spin"
        seeds = [1]
        [settings]
        tasks = 2
        [sweep]
        scheduler = {schedulers}
        [run]
        warmup = "0ms"
        time = "20ms"
        [[measure]]
        metric = "work_per_second"
        [[claim]]
        says = "The kernel's own works as much"
        metric = "work_per_second"
        order = [{{ scheduler = "eevdf-6.18" }}, {{ scheduler = "scx_nest" }}]
        by_factor = 0.5
        [[claim]]
        says = "It works at all"
        metric = "work_per_second"
        at = {{ scheduler = "eevdf-6.18" }}
        at_least = 1
        "#
    );
    let engine = Engine::default().finding(find);
    let experiment = Experiment::read("trial.toml", &text, &engine);
    let experiment = experiment.unwrap_or_else(|problems| panic!("{problems}"));
    let options = Options::default();
    let runs = Runs::of(experiment.jobs(&options), &engine, 1, &|_| ()).expect("threads");
    (experiment.outcome(&options, &runs), engine)
}

#[test]
fn points_whose_program_is_missing_are_left_out_and_claims_about_them_are_not_checked() {
    let (outcome, _) = played(r#"["eevdf-6.18", "scx_nest"]"#);
    assert_eq!(outcome.failures, []);
    let findings: Vec<Finding> = outcome.claims.iter().map(|claim| claim.finding).collect();
    assert_eq!(findings, [Finding::NotChecked, Finding::Holds]);
    assert_eq!(outcome.rows.len(), 1);
    let note = "Left out, 1 run: scx_nest is neither beside warmq nor on PATH: install it, or give \
                the path of its program or of its object.";
    assert_eq!(outcome.notes, [note]);
}

#[test]
fn a_program_is_named_as_it_was_typed_wherever_it_is() {
    let (outcome, engine) = played(r#"["eevdf-6.18", "scx_faults", "scx_nest"]"#);
    let points: Vec<String> = outcome
        .rows
        .iter()
        .map(|row| row.point.to_string())
        .collect();
    assert!(
        points.iter().any(|point| point.contains("scx_faults")),
        "{points:?}"
    );
    let text = format!("{:?} {:?}", outcome.rows, outcome.parameters);
    assert!(!text.contains("programs/faults"), "{text}");
    assert!(engine.is_compiled("scx_faults") && !engine.is_compiled("scx_other"));
}

#[test]
fn a_command_that_makes_a_missing_program_is_named() {
    let missing = Engine::default()
        .compiled("scx_warmq")
        .expect("it is known");
    assert_eq!(
        missing.expect_err("it is missing"),
        "scx_warmq is neither beside warmq nor on PATH: `cargo build --release -p scx_warmq` makes it"
    );
}

/// Two tasks that send a byte to and fro, under a scheduler that counts whom it queues: who wakes,
/// and who goes on after its slice.
fn counting(schedulers: &str) -> Result<Vec<Vec<f64>>, String> {
    let text = format!(
        r#"
        title = "Who is queued"
        machine = "small-4llc"
        workload = "ping-pong"
        seeds = [1]
        [sweep]
        scheduler = {schedulers}
        [run]
        warmup = "20ms"
        time = "20ms"
        [[measure]]
        metric = ["wakeups_per_second", "scheduler.enqueued_per_second"]
        "#
    );
    let engine = Engine::default().finding(find);
    let experiment = Experiment::read("trial.toml", &text, &engine);
    let experiment = experiment.map_err(|problems| problems.to_string())?;
    let options = Options::default();
    let runs = Runs::of(experiment.jobs(&options), &engine, 1, &|_| ()).expect("threads");
    let rows = experiment.outcome(&options, &runs).rows;
    let of = |metric: &str| {
        let rows = rows.iter().filter(|row| row.metric == metric);
        rows.map(|row| row.value).collect()
    };
    Ok(vec![
        of("wakeups_per_second"),
        of("scheduler.enqueued_per_second"),
    ])
}

#[test]
fn what_a_scheduler_counts_is_a_figure_of_what_is_measured() {
    let [wakeups, enqueued] = &counting(r#"["eevdf-6.18", "scx_faults"]"#).unwrap()[..] else {
        panic!("two figures");
    };
    assert!(enqueued[0].is_nan(), "EEVDF counts nothing");
    assert!(wakeups[1] > 1_000.0, "{wakeups:?}");
    let more = enqueued[1] - wakeups[1];
    assert!((0.0..=500.0).contains(&more), "{more} of {wakeups:?}");
}

#[test]
fn a_counter_of_no_scheduler_is_refused_unless_a_program_is_missing() {
    let refused = counting(r#"["eevdf-6.18"]"#).unwrap_err();
    assert!(
        refused.contains("no metric \"scheduler.enqueued_per_second\""),
        "{refused}"
    );
    let played = counting(r#"["eevdf-6.18", "scx_nest"]"#).unwrap();
    assert!(played[1].iter().all(|value| value.is_nan()), "{played:?}");
}
