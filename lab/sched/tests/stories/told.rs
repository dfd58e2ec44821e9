//! What a scenario that is played tells in records: roles, spans, phases and counts.

use std::collections::BTreeMap;

use warmq_config::Chosen;
use warmq_kernel::Boot;
use warmq_metrics::PlayMeter;
use warmq_play::Counters;
use warmq_scenario::Scenario;
use warmq_trace::{Observer, Record};
use warmq_units::Instant;

use crate::scenarios::story;
use crate::stage::*;

/// Keeps every record.
#[derive(Default)]
pub struct Kept(pub Vec<(Instant, Record)>);

impl Observer for Kept {
    fn see(&mut self, at: Instant, record: &Record) {
        self.0.push((at, *record));
    }
}

/// Plays `text` on `cpus` CPUs for `ticks` ticks before `watch`, under the scheduler `name`.
pub fn before<O: Observer>(watch: O, name: &str, text: &str, cpus: u16, ticks: u64) -> O {
    before_on(stage(cpus), watch, name, text, ticks)
}

/// The same on `stage`.
pub fn before_on<O: Observer>(stage: Stage, watch: O, name: &str, text: &str, ticks: u64) -> O {
    let (entry, counters) = (story(text), Counters::default());
    let chosen = Chosen::new(entry.settings(), BTreeMap::new()).expect("nothing is chosen");
    let workload = entry
        .build(&chosen, &stage.site(), &counters)
        .expect("its defaults are sound");
    let start = |boot: &mut Boot<'_>| workload.start(boot);
    let scheduler = scheduler(name, &[]);
    let (_, kernel) = stage.plays_before(watch, scheduler, ticks * 10, start);
    kernel.into_observer()
}

/// The figures of `text`, played on `stage` for `ticks` ticks under the scheduler `name`.
pub fn figures_on(stage: Stage, name: &str, text: &str, ticks: u64) -> BTreeMap<String, f64> {
    let scenario = Scenario::read("story.toml", text).expect("a sound scenario");
    let meter = PlayMeter::starting_at(scenario.names(), Instant::START);
    let meter = before_on(stage, meter, name, text, ticks);
    meter.figures(Instant::START + ms(10 * ticks))
}

/// The records of `text` that `line` makes a line of, each after its time in ms.
pub fn told(text: &str, ticks: u64, line: impl Fn(&Record) -> Option<String>) -> Vec<String> {
    told_on(stage(1), text, ticks, line)
}

/// The same of what is played on `stage`.
pub fn told_on(
    stage: Stage,
    text: &str,
    ticks: u64,
    line: impl Fn(&Record) -> Option<String>,
) -> Vec<String> {
    let kept = before_on(stage, Kept::default(), "linux24", text, ticks).0;
    let lines = kept.iter().filter_map(|(at, record)| {
        let ms = at.since(Instant::START).as_us() / 1_000;
        line(record).map(|line| format!("{ms} {line}"))
    });
    lines.collect()
}

const TRIPS: &str = r#"
    work = "trips"

    [task.walker]
    for = { number = 2 }
    times = 2
    setup = [{ begin = "life" }]
    body = [
      { begin = "trip[number, 7]" },
      { run = "10ms" },
      { end = "trip[number, 7]" },
      { count = "trips", by = 5 },
      { spawn = "helper" },
    ]

    [task.helper]
    spawned = true
    times = 1
    body = [{ end = "trip[0, 7]" }]

    [[phase]]
    name = "first"
    at = "0ms"

    [[phase]]
    name = "second"
    at = "25ms"
"#;

#[test]
fn spans_begin_and_end_where_the_steps_say() {
    let spans = told(TRIPS, 6, |record| match *record {
        Record::SpanBegin { task, span, number } => Some(format!("{task} begin {span} {number:x}")),
        Record::SpanEnd { task, span, number } => Some(format!("{task} end {span} {number:x}")),
        _ => None,
    });
    // A span without indexes is the task's own; two indexes have 32 bits each. A helper runs before
    // the task that started it goes on, and ends a span that is not open.
    let wanted = [
        "0 task1 begin 0 1",
        "0 task1 begin 1 100000007",
        "10 task1 end 1 100000007",
        "10 task2 end 1 7",
        "10 task0 begin 0 0",
        "10 task0 begin 1 7",
        "20 task0 end 1 7",
        "20 task3 end 1 7",
        "20 task0 begin 1 7",
        "30 task0 end 1 7",
        "30 task4 end 1 7",
        "30 task1 begin 1 100000007",
        "40 task1 end 1 100000007",
        "40 task5 end 1 7",
    ];
    assert_eq!(spans, wanted);
}

#[test]
fn every_task_has_a_role_right_after_its_fork() {
    let kept = before(Kept::default(), "linux24", TRIPS, 1, 6).0;
    let forks = kept
        .windows(2)
        .filter_map(|pair| match (pair[0].1, pair[1].1) {
            (
                Record::Fork { child, .. },
                Record::Role {
                    task,
                    table,
                    number,
                },
            ) => {
                assert_eq!(child, task);
                Some((table, number))
            }
            (Record::Fork { .. }, other) => panic!("no role but {other:?}"),
            _ => None,
        });
    let roles: Vec<(u32, u32)> = forks.collect();
    assert_eq!(roles, [(0, 0), (0, 1), (1, 0), (1, 0), (1, 0), (1, 0)]);
}

#[test]
fn a_phase_begins_after_what_was_counted_before_it() {
    let phases = told(TRIPS, 6, |record| match *record {
        Record::Phase { phase } => Some(format!("phase {phase}")),
        Record::Count { counter, total } => Some(format!("count {counter} = {total}")),
        _ => None,
    });
    let wanted = [
        "0 count 0 = 0",
        "0 count 1 = 0",
        "0 phase 0",
        // Two walkers have counted 5 trips each. Of rounds, the last counter, two helpers and one
        // walker have ended one; the other walker waits with its first.
        "25 count 0 = 10",
        "25 count 1 = 3",
        "25 phase 1",
    ];
    assert_eq!(phases[..wanted.len()], wanted);
    assert_eq!(phases.len(), wanted.len());
}

/// The meter that computes the figures of any world computes those of the lab.
#[test]
fn a_meter_gives_the_figures_of_each_phase() {
    let text = r#"
        work = "beats"
        [task.beater]
        every = "20ms"
        body = [{ begin = "beat" }, { run = "5ms" }, { end = "beat" }, { count = "beats" }]

        [task.hog]
        start = "200ms"
        nice = -20
        body = [{ run = "10ms" }]

        [[phase]]
        name = "calm"
        at = "100ms"

        [[phase]]
        name = "storm"
        at = "200ms"
    "#;
    let figures = figures_on(stage(1), "linux24", text, 40);
    let figure = |name: &str| figures.get(name).copied().unwrap_or(f64::NAN);
    assert_eq!(figure("calm.beat_mean").round(), 5_000.0);
    assert_eq!(figure("calm.work_per_second").round(), 50.0);
    assert_eq!(figure("calm.beater_share").round(), 25.0);
    assert!(figure("storm.beater_wait_max") > 100_000.0, "{figures:?}");
    assert!(figure("storm.hog_share") > 50.0, "{figures:?}");
}

/// Spans take no time and change nothing.
#[test]
fn a_scenario_without_its_spans_takes_the_same_course() {
    let spans = ["{ begin = \"life\" }", "{ begin = \"trip[number, 7]\" },"];
    let ends = ["{ end = \"trip[number, 7]\" },", "{ end = \"trip[0, 7]\" }"];
    let all = spans.iter().chain(&ends);
    let bare = all.fold(TRIPS.to_owned(), |text, step| text.replace(step, ""));
    let course = |text: &str| -> Vec<(Instant, Record)> {
        let kept = before(Kept::default(), "linux24", text, 2, 6).0;
        let span =
            |record: &Record| matches!(record, Record::SpanBegin { .. } | Record::SpanEnd { .. });
        kept.into_iter()
            .filter(|(_, record)| !span(record))
            .collect()
    };
    let bare = bare.replace("body = []", "body = [{ run = \"0ms\" }]");
    assert_eq!(course(TRIPS), course(&bare));
}
