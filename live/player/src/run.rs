//! A run from its beginning to its trace.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;

use warmq_scenario::program::Cpus;
use warmq_scenario::{
    Action, Bound, Fidelity, Policy, Scenario, SchedulerChoice, Set, Site, TaskKind, TaskKindId,
    WorldKind,
};
use warmq_trace::file::Writer;
use warmq_trace::{OF_SCHEDULER, Record};
use warmq_units::{Duration, Instant, Seed, TaskId};

use crate::control::{Control, Seen, Times, rise};
use crate::crew::{self, Lines};
use crate::error::PlayError;
use crate::groups::{self, Groups};
use crate::notes::Notes;
use crate::places;
use crate::scheduler::{self, Counter, Counting, Schedulers};
use crate::sessions::{self, Sessions};
use crate::settle::settle;
use crate::specs::HIGHEST_OF_TASKS;
use crate::speed::Speed;
use crate::stage::Stage;
use crate::stage::plan::Wanted;
use crate::sys::process::{self, Side};
use crate::sys::sched;
use crate::trace::{Merge, Own, header, instant, own_records};
use warmq_record::{Recorder, Recording, Snapshot, Tasks, running_scheduler};

/// The world in which the machine is the scenario's own.
const GUEST: &str = "guest";

/// How a scenario is played.
pub struct Options {
    /// For how long.
    pub times: Times,
    /// What makes this run differ from the next.
    pub seed: Seed,
    /// What the trace calls the world: `host` or `guest`.
    pub world: String,
    /// What the trace calls the scheduler; none: what the system says.
    pub scheduler: Option<String>,
    /// The scheduler that is loaded before the run, and the options of its program.
    pub load: Option<(String, String)>,
    /// What that scheduler counts.
    pub counters: Vec<Counter>,
    /// What a recorder of the kernel is to record; none: none is wanted.
    pub record: Option<warmq_record::Wanted>,
    /// Memory for what tasks log, in bytes.
    pub log_bytes: u64,
    /// Rounds of the calibrated loop in a second; none: measured.
    pub rounds_per_s: Option<u64>,
}

/// For so much longer than a run a real-time task may compute without sleeping.
const SPARE: Duration = Duration::from_s(10);

/// The numbers of this machine that a scenario may use.
pub fn site() -> Site {
    places::cpus(Path::new("/"), &sched::allowed()).site()
}

/// Plays `bound` and writes the trace to `out`, also of a run that ended early.
///
/// It forks: the calling process must have one thread. A process can play only once.
///
/// # Errors
/// What is wrong with the scenario, what the system refuses, or why the run ended early.
pub fn play(bound: Bound, options: Options, out: impl Write) -> Result<(), PlayError> {
    let notes = Notes::default();
    process::ignore_broken_pipes();
    match options.world == GUEST {
        true => settle(&notes),
        false => groups::sweep(),
    }
    let marks = options.record.is_some();
    let mut schedulers = Schedulers::new(Path::new("/"), options.load.clone());
    check_schedulers(&bound, &options, &schedulers)?;
    let stage = plan(bound, &options, marks, &notes)?.enter();
    // Signals have no handlers yet: they end this process, and the scheduler with it.
    schedulers.load_first(&mut || {
        process::readable([-1], 5);
        Ok(())
    })?;
    // When the run is over the scheduler is gone.
    let scheduler = options.scheduler.unwrap_or_else(running_scheduler);
    let counting = schedulers.counting(&options.counters);
    let mut seen = Seen {
        counting,
        ..Seen::default()
    };
    let run = Run {
        stage,
        times: options.times,
        on_a_tick: options.world == GUEST,
        notes: &notes,
    };
    let played = run.conduct(schedulers, options.record, &mut seen);
    let (result, recording) = match played {
        Ok((result, recording)) => (result, recording),
        // It did not begin: there is nothing to write.
        Err(error) => return Err(error),
    };
    let mut names = stage.scenario().names();
    let own = seen.counting.iter().flat_map(Counting::names);
    let own = own.map(|name| format!("{OF_SCHEDULER}{name}"));
    names.counters.extend(own);
    let header = header(&options.world, &scheduler, names);
    let written = write(stage, seen, recording, Writer::new(out, &header));
    result.and(written)
}

fn plan(bound: Bound, options: &Options, marks: bool, notes: &Notes) -> Result<Stage, PlayError> {
    let cpus = places::cpus(Path::new("/"), &sched::allowed());
    check(&bound, &cpus)?;
    check_priorities(bound.scenario())?;
    say_other_processes(bound.scenario(), notes);
    check_world(bound.scenario(), options.world == GUEST)?;
    let speed = Speed::measure(options.rounds_per_s);
    if speed.hertz_from.starts_with("nowhere") {
        notes.say(
            "run in cycles",
            "the system does not say the clock: 1 GHz is assumed",
        );
    }
    let sessions = Sessions::plan(&bound, &cpus)?;
    sessions::say_if_without(&sessions, &bound, options.load.is_some(), notes);
    Stage::plan(Wanted {
        groups: Groups::plan(&bound, options.world == GUEST, &cpus)?,
        sessions,
        bound,
        seed: options.seed,
        cpus,
        line: places::line(Path::new("/")),
        speed,
        log_bytes: options.log_bytes,
        marks,
    })
}

/// Refuses what this machine cannot do, before anything is made.
fn check(bound: &Bound, cpus: &Cpus) -> Result<(), PlayError> {
    let kinds = (0..).map(TaskKindId).zip(bound.scenario().tasks());
    for (id, kind) in kinds {
        for number in 0..bound.tasks(id) {
            let spec = bound.spec(cpus, id, number)?;
            if spec.cpus.is_some_and(|cpus| cpus.is_empty()) {
                return Err(PlayError::Refused {
                    what: format!(
                        "`{}` {number} is bound to CPUs that this machine lacks",
                        kind.key
                    ),
                    why: format!("it has {} CPUs that may be used", cpus.all().len()),
                    fix: "name other `cpus`".to_owned(),
                });
            }
        }
    }
    Ok(())
}

/// Refuses real-time priorities that are the player's own.
fn check_priorities(scenario: &Scenario) -> Result<(), PlayError> {
    let too_high = |policy: &Policy| match *policy {
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => priority > HIGHEST_OF_TASKS,
        Policy::Normal | Policy::Batch | Policy::Idle | Policy::Deadline(_) => false,
    };
    let set_too_high = |set: &Set| matches!(set, Set::Policy(policy) if too_high(policy));
    let mut tasks = scenario.tasks().iter();
    if !tasks.any(|kind| too_high(&kind.policy)) && !scenario.sets().any(set_too_high) {
        return Ok(());
    }
    Err(PlayError::Refused {
        what: "a task is to have the real-time priority 99".to_owned(),
        why: "whoever ends the run has it, and would not get a CPU beside that task".to_owned(),
        fix: format!("give it {HIGHEST_OF_TASKS} or less"),
    })
}

/// Says which tasks name a process in which they cannot be.
fn say_other_processes(scenario: &Scenario, notes: &Notes) {
    let object = |kind: &TaskKind| kind.process.as_ref().map(|process| process.object);
    for spawner in scenario.tasks() {
        for step in spawner.steps() {
            let Action::Spawn(task) = &step.action else {
                continue;
            };
            let kind = scenario.task(task.task);
            if kind.process.is_some() && object(kind) != object(spawner) {
                let what = format!("process of `{}`", kind.key);
                let why = format!(
                    "a thread is in the process of `{}`, which spawns it",
                    spawner.key
                );
                notes.say(&what, &why);
            }
        }
    }
}

/// Refuses what cannot be played in this world, as the scenario's table of worlds has it.
fn check_world(scenario: &Scenario, guest: bool) -> Result<(), PlayError> {
    let world = match guest {
        true => WorldKind::Guest,
        false => WorldKind::Host,
    };
    let refused = scenario.fidelity(world).into_iter().find_map(|note| {
        let Fidelity::Refused(why) = note.fidelity else {
            return None;
        };
        Some(PlayError::Refused {
            what: format!("the scenario has `{}`", note.what),
            why: why.to_owned(),
            fix: "`warmq check` says which world can".to_owned(),
        })
    });
    refused.map_or(Ok(()), Err)
}

/// Refuses to load schedulers where that cannot be done, or whose programs are not there.
fn check_schedulers(
    bound: &Bound,
    options: &Options,
    schedulers: &Schedulers,
) -> Result<(), PlayError> {
    let changed = bound.scenario().sets().filter_map(|set| match set {
        Set::Scheduler(SchedulerChoice::Loaded { name, .. }) => Some(name),
        _ => None,
    });
    let names: Vec<&String> = changed
        .chain(options.load.iter().map(|(name, _)| name))
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    schedulers.check()?;
    names
        .into_iter()
        .try_for_each(|name| scheduler::find(name).map(drop))
}

type Played = (Result<(), PlayError>, Option<Recording>);

/// A run that was planned.
struct Run<'n> {
    stage: &'static Stage,
    times: Times,
    /// Whether it begins as the kernel ticks: guests are compared with the lab, whose time begins
    /// so.
    on_a_tick: bool,
    notes: &'n Notes,
}

impl Run<'_> {
    /// Plays it to its end and takes everything away.
    fn conduct(
        &self,
        schedulers: Schedulers,
        record: Option<warmq_record::Wanted>,
        seen: &mut Seen,
    ) -> Result<Played, PlayError> {
        let (stage, notes) = (self.stage, self.notes);
        // The last resort against a real-time task that computes after the end of the run: the
        // kernel kills it.
        let longest = self.times.warmup + self.times.time + SPARE;
        process::limit_real_time(longest.as_ns() / 1_000);
        let lines = Lines::open().map_err(|error| {
            PlayError::refused(
                "a process cannot be watched (pidfd)",
                &error,
                "use Linux 5.3 or later",
            )
        })?;
        let crew = match process::fork() {
            Ok(Side::Child) => crew::work(stage, lines),
            Ok(Side::Parent(crew)) => crew,
            Err(error) => {
                let fix = "allow more processes (ulimit -u)";
                return Err(PlayError::refused("the crew cannot be forked", &error, fix));
            }
        };
        let mut control = Control::new(stage, lines, crew, schedulers);
        control.on_a_tick = self.on_a_tick;
        control.wait_until_ready()?;
        control.say_other_slices(notes);
        let recorder = record.and_then(|wanted| match Recorder::start(&wanted) {
            Ok(recorder) => Some(recorder),
            Err(why) => {
                notes.say("no recorder", &why.to_string());
                None
            }
        });
        seen.recorded = recorder.is_some();
        // After the recorder's threads are there, which must not have this priority.
        rise(notes);
        let result = control.conduct(self.times, notes, seen);
        let ended = control.end();
        late_datagrams(stage, notes);
        let recording = recorder.and_then(|recorder| match recorder.stop() {
            Ok(recording) => {
                let missing = recording.missing();
                missing.iter().for_each(|what| notes.say("recording", what));
                Some(recording)
            }
            Err(why) => {
                notes.say("no recording", &why.to_string());
                None
            }
        });
        let unloaded = control.unload();
        Ok((result.and(ended).and(unloaded), recording))
    }
}

/// Says how many datagrams were late, if any.
fn late_datagrams(stage: &Stage, notes: &Notes) {
    let of = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
    let (sent, late) = (of(&stage.board.sent), of(&stage.board.late));
    if late > 0 {
        let why = format!("{late} of {sent} datagrams were sent only when the next one was due");
        notes.say("sources", &why);
    }
}

/// The threads of tasks and of sources, with their ids in the trace.
fn threads(stage: &Stage) -> Vec<(u32, TaskId)> {
    let tasks = stage.tasks();
    // Only the recorder reports those that hear no answers.
    let senders = (0..)
        .zip(&stage.senders)
        .filter(|(_, sender)| sender.echoes);
    let senders = senders.map(|(index, _)| (stage.sender_id(index), stage.sender_slots.of(index)));
    let tid = |slot: &crate::stage::slots::Slot| slot.tid.load(Ordering::Relaxed) as u32;
    tasks
        .chain(senders)
        .map(|(index, slot)| (tid(slot), TaskId(index)))
        // Those that were never started have none.
        .filter(|(tid, _)| *tid != 0)
        .collect()
}

/// When tasks started the tasks that they start: before, their thread ids may be of others.
fn started(own: &[(Instant, Own)]) -> BTreeMap<TaskId, Instant> {
    let births = own.iter().filter_map(|(at, own)| match own {
        Own::Record(Record::Fork {
            parent: Some(_),
            child,
            ..
        }) => Some((*child, *at)),
        _ => None,
    });
    births.collect()
}

/// Whether `record` says of a task that is not of the scenario what held during the run as well:
/// groups have other numbers here, and affinities of kernel threads may have changed.
fn tells_of_stranger(record: &Record) -> bool {
    !matches!(record, Record::Group { .. } | Record::Affinity { .. })
}

/// Writes everything that is known of a run.
fn write<W: Write>(
    stage: &Stage,
    seen: Seen,
    recording: Option<Recording>,
    writer: Writer<W>,
) -> Result<(), PlayError> {
    let start_ns = stage.board.start_ns.load(Ordering::Acquire);
    let tasks = TaskId(stage.sender_id(stage.senders.len() as u32));
    let end = instant(seen.end_ns, start_ns);
    let mut own = own_records(stage, recording.is_some(), end)?;
    for moment in &seen.moments {
        let at = instant(moment.at_ns, start_ns);
        own.extend(moment.records().map(|record| (at, Own::Record(record))));
    }
    // After what was counted at their time: what came before a phase is not of it.
    for (at_ns, record) in seen.records {
        own.push((instant(at_ns, start_ns), Own::Record(record)));
    }
    let started = started(&own);
    let mut merge = Merge::new(writer, own, tasks, end);
    if let Some(recording) = recording {
        let mut known = Tasks::with_strangers_from(tasks);
        for (tid, task) in threads(stage) {
            match started.get(&task) {
                Some(at) => known.know_from(start_ns + at.0 / 1_000, tid, task),
                None => known.know(tid, task),
            }
        }
        // Looked at after the run, so that looking takes nothing from it.
        let mut snapshot = Snapshot::default();
        snapshot.look();
        recording.records(&mut known, start_ns, &mut |at, record| match record {
            Record::Ids { task, .. } if task >= tasks => {
                snapshot.told(at, record, &mut |at, record| {
                    if tells_of_stranger(&record) {
                        merge.recorded(at, record);
                    }
                });
            }
            _ => merge.recorded(at, record),
        });
    }
    let fix = "look at the disk, or the reader";
    let written = merge.finish().finish().map(|_| ());
    written.map_err(|error| PlayError::refused("the trace cannot be written", &error, fix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use warmq_trace::Comm;

    #[test]
    fn tasks_that_others_start_have_their_thread_ids_from_then_on() {
        let fork = |parent, child| {
            let (child, comm) = (TaskId(child), Comm::default());
            let parent: Option<TaskId> = parent;
            Own::Record(Record::Fork {
                parent,
                child,
                comm,
            })
        };
        let own = [
            (Instant(0), fork(None, 0)),
            (Instant(7), fork(Some(TaskId(0)), 1)),
        ];
        assert_eq!(started(&own), BTreeMap::from([(TaskId(1), Instant(7))]));
    }
}
