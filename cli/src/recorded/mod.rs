//! This machine, recorded into a trace.

mod bpf;
mod child;
pub mod cost;
mod facts;
mod options;
mod recorder;
mod sweeper;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::time::Duration as Real;

use warmq_output::temporary_folder;
use warmq_record::{EVENTS_A_TRIP, Recording, Snapshot, Tasks, Wanted};
use warmq_record::{cpu_time_ns, monotonic_ns, see_all_groups, trip_ns};
use warmq_trace::file::Writer;
use warmq_trace::{Header, Observer, Record};
use warmq_units::{Duration, Instant};

pub use self::child::Child;
pub use self::options::{Choice, Recorder};
use self::recorder::{Running, Stopped};
pub use self::sweeper::sweep_when_left;
use crate::failure::Failure;
use crate::files::{Unfinished, refused};
use crate::interrupt::Finishes;

/// How long is recorded where nobody says.
const USUAL: Duration = Duration::from_s(10);
/// How often it is looked whether the command still runs, and whether a signal came.
const LOOK: Real = Real::from_millis(20);
/// How often tasks that were forked meanwhile are looked at. A look reads four files of /proc for
/// each new task.
const NEW_TASKS: Real = Real::from_secs(1);

/// What is to be recorded.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// For how long at most.
    pub time: Option<Duration>,
    /// The kernel's buffer for each CPU, in KiB.
    pub buffer_kb: u32,
    /// Who records.
    pub recorder: Choice,
    /// While this command runs; empty: none.
    pub command: &'a [OsString],
}

/// The file of a recording: one that was asked for, or one that goes with this value. It is begun
/// before anything is recorded.
#[derive(Debug)]
pub struct Kept {
    path: PathBuf,
    begun: Option<(Unfinished, BufWriter<File>)>,
    _temporary: Option<tempfile::TempDir>,
}

impl Kept {
    /// At `path`, or for now.
    ///
    /// # Errors
    /// It cannot be written, or there is no room for temporary files.
    pub fn at(path: Option<&Path>) -> Result<Kept, Failure> {
        let (path, temporary) = match path {
            Some(path) => (path.to_owned(), None),
            None => {
                let folder = temporary_folder("warmq-watch-");
                let folder =
                    folder.map_err(|error| Failure::system("make a temporary folder", &error))?;
                (folder.path().join("it.warmq"), Some(folder))
            }
        };
        Ok(Kept {
            begun: Some(Unfinished::private(&path)?),
            path,
            _temporary: temporary,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// What a recording took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Took {
    /// For how long was recorded, in ns.
    pub ns: u64,
    /// The CPU time of the recorder meanwhile, in ns, all its processes together.
    pub cpu_ns: u64,
    /// How many bytes of the kernel's pages were kept in memory.
    pub kept_bytes: u64,
    /// How many bytes could have been kept at most.
    pub most_bytes: u64,
    /// Whether no more could be kept before the end.
    pub full: bool,
    /// How many records there are.
    pub records: u64,
    /// How many of them are events of the kernel.
    pub events: u64,
    /// What an event costs here, in ns; none: it could not be measured.
    pub event_ns: Option<u64>,
    /// For how long CPUs did anything, all together, in ns.
    pub busy_ns: u64,
    /// How many events were lost.
    pub lost: u64,
    /// How many switches and wakeups the kernel did not report, as in some virtual machines.
    pub inferred: u64,
    /// What is missing, a sentence each.
    pub missing: Vec<String>,
    /// Why another recorder than the usual was used.
    pub note: Option<String>,
    /// The status of the command, if it ended before the recording.
    pub status: Option<u8>,
}

impl Took {
    /// As sentences.
    pub fn text(&self) -> String {
        let seconds = self.ns as f64 / 1e9;
        let share = 100.0 * self.cpu_ns as f64 / self.ns.max(1) as f64;
        let each = self.records as f64 / seconds.max(1e-9);
        let mut text = format!(
            "warmq: recorded {seconds:.2} s: {} records, {each:.0} a second; {}; the recorder took \
             {share:.1} % of a CPU and {} of memory, of at most {}; {}",
            self.records,
            self.losses(),
            mebibytes(self.kept_bytes),
            mebibytes(self.most_bytes),
            self.cost(),
        );
        if let Some(note) = &self.note {
            text.push_str(&format!("\nwarmq: note: {note}"));
        }
        if self.inferred > 0 {
            text.push_str(&format!(
                "\nwarmq: note: the kernel did not show {} switches and wakeups, which were inferred",
                self.inferred
            ));
        }
        for missing in &self.missing {
            text.push_str(&format!("\nwarmq: note: not recorded: {missing}"));
        }
        text
    }

    /// What the events took of what ran, as far as that was measured here.
    fn cost(&self) -> String {
        let Some(event_ns) = self.event_ns else {
            return "each event took the kernel some hundreds of ns".to_owned();
        };
        let all = self.events.saturating_mul(event_ns);
        let share = 100.0 * all as f64 / self.busy_ns.max(all).max(1) as f64;
        match event_ns {
            0 => "what an event takes here could not be measured".to_owned(),
            _ => format!(
                "an event took about {event_ns} ns here: {share:.1} % of what ran meanwhile"
            ),
        }
    }

    /// What was lost, and what helps.
    fn losses(&self) -> String {
        match (self.lost, self.full) {
            (0, _) => "nothing was lost".to_owned(),
            (lost, false) => format!("{lost} events were lost (give more --buffer)"),
            (lost, true) => format!(
                "{lost} events were lost, because the recorder may keep no more in memory (record for \
                 less time with --for, or free memory: it keeps a quarter of what is free, 1 GiB at most)"
            ),
        }
    }
}

/// What an event costs, of how long a round trip takes without a recorder and with it.
fn event_ns(alone: io::Result<u64>, recorded: io::Result<u64>) -> Option<u64> {
    let more = recorded.ok()?.saturating_sub(alone.ok()?);
    Some(more / EVENTS_A_TRIP)
}

/// Whether the kernel said it by an event of its own.
fn is_event(record: &Record) -> bool {
    matches!(
        record,
        Record::Switch { .. }
            | Record::Waking { .. }
            | Record::Wakeup { .. }
            | Record::Migrate { .. }
            | Record::Fork { .. }
            | Record::InterruptEnter { .. }
            | Record::InterruptExit { .. }
            | Record::RescheduleSent { .. }
            | Record::Idle { .. }
            | Record::Packet { .. }
            | Record::Drop { .. }
            | Record::Poll { .. }
    )
}

/// `12.3 MiB`.
fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// Records into `kept`.
///
/// # Errors
/// A machine that cannot be recorded, a command that does not start, a file that cannot be written.
pub fn record(asked: &Asked<'_>, kept: &mut Kept) -> Result<Took, Failure> {
    let wanted = Wanted {
        buffer_kb_per_cpu: asked.buffer_kb,
        ..Wanted::default()
    };
    let unseen = see_all_groups();
    let mut snapshot = Snapshot::default();
    snapshot.look();
    let finishes = Finishes::begin();
    let alone = trip_ns();
    let running = Running::start(asked.recorder, &wanted)?;
    // Before the beginning, so that no trace has it.
    let event_ns = event_ns(alone, trip_ns());
    let busy_ns = warmq_record::busy_ns();
    let note = running.note.clone();
    let (start_ns, cpu_ns) = (monotonic_ns(), cpu_time_ns());
    let status = wait(asked, &mut snapshot, &finishes)?;
    snapshot.look();
    let (end_ns, cpu_end_ns) = (monotonic_ns(), cpu_time_ns());
    let (accounts, pressure) = snapshot.accounts();
    let stopped = running.stop()?;
    let Stopped { recording, .. } = &stopped;
    let took = Took {
        ns: end_ns.saturating_sub(start_ns),
        cpu_ns: cpu_end_ns.saturating_sub(cpu_ns) + stopped.cpu_ns,
        kept_bytes: recording.size() as u64,
        most_bytes: stopped.most_bytes,
        full: stopped.full,
        missing: recording.missing().iter().cloned().chain(unseen).collect(),
        event_ns,
        busy_ns: warmq_record::busy_ns().saturating_sub(busy_ns),
        note,
        status,
        ..Took::default()
    };
    let header = Header {
        accounts,
        pressure,
        ..facts::header()?
    };
    written(
        recording,
        (&snapshot, &header),
        (start_ns, end_ns),
        kept,
        took,
    )
}

/// Until the time is over, the command ends or a signal asks for the end: with what status the
/// command ended.
fn wait(
    asked: &Asked<'_>,
    snapshot: &mut Snapshot,
    finishes: &Finishes,
) -> Result<Option<u8>, Failure> {
    let mut child = Child::start(asked.command)?;
    let usual = child.is_none().then_some(USUAL);
    let time = asked.time.or(usual);
    let began = std::time::Instant::now();
    let mut looked = began;
    loop {
        let left = time.map(|time| {
            let time = Real::from_nanos(time.as_ns());
            time.saturating_sub(began.elapsed())
        });
        let ended = child.as_mut().and_then(Child::ended);
        if ended.is_some() || left == Some(Real::ZERO) || finishes.is_asked() {
            return Ok(ended);
        }
        std::thread::sleep(left.map_or(LOOK, |left| left.min(LOOK)));
        if looked.elapsed() >= NEW_TASKS {
            snapshot.look();
            looked = std::time::Instant::now();
        }
    }
}

/// Writes the records, and counts them.
fn written(
    recording: &Recording,
    (snapshot, header): (&Snapshot, &Header),
    (start_ns, end_ns): (u64, u64),
    kept: &mut Kept,
    mut took: Took,
) -> Result<Took, Failure> {
    let begun = kept
        .begun
        .take()
        .map_or_else(|| Unfinished::private(&kept.path), Ok);
    let (unfinished, out) = begun?;
    let mut writer: Writer<BufWriter<File>> = Writer::new(out, header);
    let end = Instant::START + Duration::from_ns(end_ns.saturating_sub(start_ns));
    {
        let mut count = |at: Instant, record: Record| {
            // What the recorder does when it stops is no part of it.
            let at = at.min(end);
            took.records += 1;
            match record {
                // So the recorder marks what must have happened and was not reported.
                Record::Lost { events: 1, .. } => took.inferred += 1,
                Record::Lost { events, .. } => took.lost += events.max(1),
                _ => took.events += u64::from(is_event(&record)),
            }
            writer.see(at, &record);
        };
        snapshot.groups(&mut count);
        recording.records(&mut Tasks::new(), start_ns, &mut |at, record| {
            if at <= end || matches!(record, Record::Lost { .. } | Record::Steal { .. }) {
                snapshot.told(at, record, &mut count);
            }
        });
        snapshot.throttled(end, &mut count);
    }
    let out = writer
        .finish()
        .map_err(|error| refused(&kept.path, &error))?;
    unfinished.finish(out)?;
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_recording_took_is_printed() {
        let took = Took {
            ns: 2_000_000_000,
            cpu_ns: 10_000_000,
            kept_bytes: 5_000_000,
            most_bytes: 1 << 30,
            full: false,
            records: 50_000,
            events: 40_000,
            event_ns: Some(150),
            busy_ns: 1_000_000_000,
            lost: 3,
            inferred: 2,
            missing: vec!["locks".to_owned()],
            note: Some("recorded by BPF".to_owned()),
            status: None,
        };
        insta::assert_snapshot!(took.text(), @"
        warmq: recorded 2.00 s: 50000 records, 25000 a second; 3 events were lost (give more --buffer); the recorder took 0.5 % of a CPU and 4.8 MiB of memory, of at most 1024.0 MiB; an event took about 150 ns here: 0.6 % of what ran meanwhile
        warmq: note: recorded by BPF
        warmq: note: the kernel did not show 2 switches and wakeups, which were inferred
        warmq: note: not recorded: locks
        ");
    }

    #[test]
    fn a_recorder_whose_memory_was_full_does_not_ask_for_larger_buffers() {
        let lost = |full| Took {
            lost: 3,
            full,
            ..Took::default()
        };
        assert!(lost(false).text().contains("--buffer"));
        let full = lost(true).text();
        assert!(
            !full.contains("--buffer") && full.contains("--for"),
            "{full}"
        );
    }
}
