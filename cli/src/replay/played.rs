//! What the lab plays is replayed under the same scheduler with the same shares, and under another
//! one as that one would have it.

use warmq_config::Document;
use warmq_experiment::{Engine, Experiment, LAB, Options, Simulator};
use warmq_replay::{Meter, Taker};
use warmq_trace::file::Writer;
use warmq_trace::{Header, Observer, Record};
use warmq_units::{CpuId, Duration, Instant, TaskId};

use crate::worlds;

use super::{On, Place, Read, Replayed, Shape, Span, busy, of_file, played, read};

/// For how long a scenario is recorded.
const TIME: &str = "500ms";

/// Reads a run as if it were a file.
#[derive(Default)]
struct Recorded(Option<(Header, Taker, Meter)>);

impl Observer for Recorded {
    fn about(&mut self, header: &Header) {
        let (from, until) = (Instant::START, Instant(u64::MAX));
        let taker = Taker::new(header, from, until);
        self.0 = Some((header.clone(), taker, Meter::new(from, until)));
    }

    fn see(&mut self, at: Instant, record: &Record) {
        if let Some((_, taker, meter)) = &mut self.0 {
            taker.see(at, record);
            meter.see(at, record);
        }
    }
}

/// Plays `workload`, a scenario's name or text, and reads what happened.
pub(super) fn recorded(workload: &str, machine: &str, scheduler: &str, settings: &str) -> Read {
    let engine = Engine::new(None);
    let name = match workload.contains('[') {
        true => {
            let known = engine.know("story.toml", workload);
            known.unwrap_or_else(|error| panic!("{error}"));
            "story.toml"
        }
        false => workload,
    };
    let text = format!(
        "title = \"a story\"\nmachine = {machine:?}\nscheduler = {scheduler:?}\nworkload = {name:?}\n\
         [settings]\n{settings}\n[run]\nwarmup = \"0ms\"\ntime = \"{TIME}\"\n[[measure]]\n\
         metric = \"*\"\n"
    );
    let document = Document::parse("story-experiment.toml", &text);
    let document = document.unwrap_or_else(|problems| panic!("{problems}"));
    let experiment = Experiment::of(&document, &engine);
    let experiment = experiment.unwrap_or_else(|problems| panic!("{problems}"));
    let options = Options {
        seeds: Some(vec![1]),
        ..Options::default()
    };
    let mut recorded = Recorded::default();
    let run = engine.observe(&experiment.jobs(&options)[0].plan, &mut recorded);
    run.unwrap_or_else(|error| panic!("{name}: {error}"));
    let (header, taker, meter) = recorded.0.expect("a run says what it is of");
    Read {
        contents: None,
        header,
        taken: taker.finish(),
        meter,
    }
}

pub(super) fn replayed(read: Read, scheduler: Option<&str>) -> Replayed {
    let on = On {
        scheduler: scheduler.map(str::to_owned),
        ..On::default()
    };
    let place = Place::of(&on, &read.header, &read.taken);
    let place = place.unwrap_or_else(|failure| panic!("{failure:?}"));
    let (scenario, missing) = read.taken.scenario(Shape { cpus: place.cpus });
    played(read, &place, &scenario, missing.sentences()).unwrap_or_else(|failure| {
        panic!("{failure:?}\n{}", &scenario[..scenario.len().min(2_000)]);
    })
}

/// The share of a task, in hundredths of a percent of a CPU: recorded, replayed.
fn share(replayed: &Replayed, task: &str) -> (u64, u64) {
    let line = replayed.lines.iter().find(|line| line.task == task);
    let line = line.unwrap_or_else(|| panic!("{task}: {:#?}", replayed.lines));
    (line.recorded.share, line.replayed.share)
}

/// Three points: what a replay under the same scheduler may be off.
const SLACK: u64 = 300;

#[test]
fn a_replay_under_the_same_scheduler_has_the_shares_of_the_recording() {
    let stories = [
        ("hog", "small-smt", "eevdf-6.18", "cpus = 1"),
        (
            "receiver",
            "small-smt",
            "eevdf-6.18",
            "preempt = \"full\"\ncpus = 2",
        ),
        ("receiver", "small-smt", "eevdf-7.1", "cpus = 2"),
        ("ping-pong", "small-smt", "eevdf-6.18", "cpus = 1"),
        ("ping-pong", "small-smt", "eevdf-6.18", "cpus = 2"),
        (
            "two-users",
            "small-smt",
            "eevdf-6.18",
            "cpus = 1\nkpps = 20",
        ),
        ("simplex", "small-smt", "eevdf-6.18", "cpus = 1"),
        (
            "chat",
            "small-smt",
            "eevdf-6.18",
            "rooms = 2\nusers = 5\ncpus = 2",
        ),
        ("schbench", "small-smt", "eevdf-6.18", "cpus = 2"),
        ("periodic", "small-smt", "eevdf-6.18", "cpus = 1"),
        ("chat", "tiny-2cpu", "mq", "rooms = 1\nusers = 4"),
    ];
    let mut off = Vec::new();
    for (workload, machine, scheduler, settings) in stories {
        let replayed = replayed(recorded(workload, machine, scheduler, settings), None);
        assert!(!replayed.lines.is_empty(), "{workload}");
        for line in &replayed.lines {
            let (before, after) = (line.recorded.share, line.replayed.share);
            if before.abs_diff(after) > SLACK * line.tasks {
                off.push(format!("{workload} {settings:?}: {line:?}"));
            }
        }
    }
    assert!(off.is_empty(), "\n{}", off.join("\n"));
}

#[test]
fn a_hog_that_starved_gets_its_half_under_a_scheduler_that_starves_nobody() {
    let starving = || {
        recorded(
            "receiver",
            "small-smt",
            "eevdf-6.18",
            "preempt = \"full\"\ncpus = 2",
        )
    };
    let (before, after) = share(&replayed(starving(), None), "hog");
    // It begins to starve within some tens of the 500 ms.
    assert!(before < 1_000 && after < 1_000, "{before} {after}");
    let engine = worlds::add(Engine::new(None));
    let missing = engine.missing(LAB, "scx_warmq");
    missing.iter().for_each(|why| eprintln!("SKIPPED: {why}"));
    let warmq = missing.is_none().then_some("scx_warmq");
    for scheduler in ["eevdf-7.1"].into_iter().chain(warmq) {
        let (_, after) = share(&replayed(starving(), Some(scheduler)), "hog");
        assert!(after > 4_000, "{scheduler}: {after}");
    }
}

const CPU: CpuId = CpuId(0);
const TASK: TaskId = TaskId(1);
/// All of a recording.
const ALL: Span = Span {
    from: Instant::START,
    until: Instant(u64::MAX),
};

/// A task that could go on leaves the CPU.
fn switch(prev: Option<TaskId>, next: Option<TaskId>) -> Record {
    Record::Switch {
        cpu: CPU,
        prev,
        prev_runnable: true,
        next,
    }
}

/// A trace of these records, in a file.
fn file_of(records: &[(Instant, Record)], check: impl Fn(&std::path::Path)) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("it.warmq");
    let mut writer = Writer::new(Vec::new(), &Header::default());
    records
        .iter()
        .for_each(|(at, record)| writer.see(*at, record));
    std::fs::write(&file, writer.finish().unwrap()).unwrap();
    check(&file);
}

#[test]
fn records_that_are_days_apart_are_not_played() {
    let later = Instant::START + Duration::from_s(53 * 86_400);
    let records = [
        (Instant::START, switch(None, Some(TASK))),
        (later, switch(Some(TASK), None)),
    ];
    file_of(&records, |file| {
        let refused = of_file(file, ALL, &On::default(), None).map(|_| ());
        let refused = format!("{:?}", refused.unwrap_err());
        assert!(refused.contains("4579200 s"), "{refused}");
        assert!(refused.contains("--until"), "{refused}");
    });
}

#[test]
fn a_recording_of_a_busy_machine_is_marked() {
    let ms = |ms| Instant::START + Duration::from_ms(ms);
    for (ran, marked) in [(96, true), (90, false)] {
        let records = [
            (ms(0), switch(None, Some(TASK))),
            (ms(ran), switch(Some(TASK), None)),
            (ms(100), Record::Recalculate { cpu: CPU }),
        ];
        file_of(&records, |file| {
            let found = busy(&mut read(file, ALL).unwrap());
            assert_eq!(found.is_some(), marked, "{found:?}");
        });
    }
}
