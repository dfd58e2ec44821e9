//! What recording and diagnosing cost: a load of pipes, without a recorder and with one.
//!
//! The load is a process of its own, so that its CPU time is not the recorder's. It makes so many
//! round trips a second through pipes; each is two switches, with a wakeup and what announces it.

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write, pipe};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration as Real, Instant as Now};

use serde::{Deserialize, Serialize};
use warmq_output::temporary_folder;
use warmq_record::cpu_time_ns;
use warmq_units::{Duration, Instant};

use super::{Asked, Choice, Kept, Took, record};
use crate::diagnose::{self, Span};
use crate::failure::Failure;
use crate::{files, output};

/// Pairs of threads that answer each other.
const PAIRS: u32 = 2;
/// About how many records a round trip makes: each way a block, a switch to idle, what announces
/// the wakeup, the wakeup, and a switch.
const RECORDS_A_TRIP: u32 = 12;
/// How often in a second the load catches up with its rate.
const PACE: u32 = 1_000;
/// The kernel's buffer for each CPU, in KiB.
const BUFFER_KB: u32 = 8_192;

/// What the load did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Played {
    /// Round trips.
    pub trips: u64,
    /// CPU time of all its threads, in ns.
    pub cpu_ns: u64,
}

impl Played {
    /// CPU time of a round trip, in ns.
    fn of_a_trip(self) -> u64 {
        self.cpu_ns / self.trips.max(1)
    }
}

/// What it costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Records a second.
    pub records_per_second: u64,
    /// All records.
    pub records: u64,
    /// Events that were lost.
    pub lost: u64,
    /// CPU time of the recorder, in thousandths of all CPUs.
    pub recorder_permille: u64,
    /// CPU time of a round trip of the load, in ns, without a recorder.
    pub trip_alone_ns: u64,
    /// The same while it is recorded: the kernel writes events.
    pub trip_recorded_ns: u64,
    /// How long the diagnosis of the trace took, in ms.
    pub diagnosis_ms: u64,
}

/// Plays a load of about `rate` records a second for `time`, without a recorder and with that one.
///
/// # Errors
/// A machine that cannot be recorded; no room for the trace.
pub fn measure(rate: u32, time: Duration, recorder: Choice) -> Result<Cost, Failure> {
    let folder = temporary_folder("warmq-bench-");
    let folder = folder.map_err(|error| Failure::system("make a temporary folder", &error))?;
    let result = folder.path().join("load.json");
    let load = command(rate, time, &result)?;
    let alone = unrecorded(&load, &result)?;
    let asked = Asked {
        time: None,
        buffer_kb: BUFFER_KB,
        recorder,
        command: &load,
    };
    let trace = folder.path().join("it.warmq");
    let took = record(&asked, &mut Kept::at(Some(&trace))?)?;
    let recorded = read(&result)?;
    let began = Now::now();
    let span = Span {
        from: Instant::START,
        until: Instant(u64::MAX),
    };
    diagnose::of_file(&trace, span)?;
    Ok(cost(&took, (alone, recorded), began.elapsed()))
}

fn cost(took: &Took, (alone, recorded): (Played, Played), diagnosis: Real) -> Cost {
    let cpus = thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    let ns = took.ns.max(1);
    Cost {
        records_per_second: (u128::from(took.records) * 1_000_000_000 / u128::from(ns)) as u64,
        records: took.records,
        lost: took.lost,
        recorder_permille: took.cpu_ns.saturating_mul(1_000) / ns.saturating_mul(cpus),
        trip_alone_ns: alone.of_a_trip(),
        trip_recorded_ns: recorded.of_a_trip(),
        diagnosis_ms: diagnosis.as_millis() as u64,
    }
}

/// The command that is the load, which writes what it did to `result`.
fn command(rate: u32, time: Duration, result: &Path) -> Result<Vec<OsString>, Failure> {
    let program = std::env::current_exe();
    let program = program.map_err(|error| Failure::system("find this program", &error))?;
    let ns = format!("{}ns", time.as_ns());
    let words: [OsString; 6] = [
        "bench".into(),
        "record".into(),
        format!("--rate={rate}").into(),
        format!("--time={ns}").into(),
        "--play".into(),
        result.into(),
    ];
    Ok(std::iter::once(program.into_os_string())
        .chain(words)
        .collect())
}

fn unrecorded(load: &[OsString], result: &Path) -> Result<Played, Failure> {
    let status = Command::new(&load[0]).args(&load[1..]).status();
    status.map_err(|error| Failure::system("start the load", &error))?;
    read(result)
}

fn read(result: &Path) -> Result<Played, Failure> {
    let text = fs::read_to_string(result);
    let text = text.map_err(|error| Failure::system("read what the load did", &error))?;
    let read = serde_json::from_str(&text);
    read.map_err(|error| Failure::System("read what the load did".into(), error.to_string()))
}

/// Is the load: plays, and writes what it did to `result`.
///
/// # Errors
/// No pipe, or no place to write to.
pub fn play(rate: u32, time: Duration, result: &Path) -> Result<(), Failure> {
    let trips = (rate / RECORDS_A_TRIP / PAIRS / PACE).max(1);
    let time = Real::from_nanos(time.as_ns());
    let pairs: Vec<_> = (0..PAIRS)
        .map(|_| thread::Builder::new().spawn(move || pair(trips, time)))
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::system("start the threads of the load", &error))?;
    let trips = pairs.into_iter().map(|pair| match pair.join() {
        Ok(Ok(trips)) => Ok(trips),
        Ok(Err(error)) => Err(Failure::system("use a pipe", &error)),
        Err(_) => Err(Failure::System(
            "play the load".into(),
            "a thread panicked".into(),
        )),
    });
    let played = Played {
        trips: trips.sum::<Result<u64, Failure>>()?,
        cpu_ns: cpu_time_ns(),
    };
    files::write(result, output::json_of(&played)?.as_bytes())
}

/// Sends a byte to and fro, `trips` times in each period.
fn pair(trips: u32, time: Real) -> std::io::Result<u64> {
    let (mut here, mut away) = pipe()?;
    let (mut there, mut back) = pipe()?;
    let answering = thread::Builder::new().spawn(move || {
        let mut byte = [0];
        while matches!(here.read(&mut byte), Ok(1)) && back.write_all(&byte).is_ok() {}
    })?;
    let (began, mut done) = (Now::now(), 0);
    let mut byte = [0];
    while began.elapsed() < time {
        for _ in 0..trips {
            away.write_all(&byte)?;
            there.read_exact(&mut byte)?;
            done += 1;
        }
        let next = Real::from_secs(1) / PACE * (done / trips);
        thread::sleep(next.saturating_sub(began.elapsed()));
    }
    drop(away);
    // The other one ends with its pipe.
    let _ = answering.join();
    Ok(done.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_writes_what_it_did() {
        let folder = tempfile::tempdir().unwrap();
        let result = folder.path().join("load.json");
        play(50_000, Duration::from_ms(20), &result).unwrap();
        let played = read(&result).unwrap();
        assert!(played.trips > 0 && played.cpu_ns > 0, "{played:?}");
    }

    #[test]
    fn costs_are_shares_of_all_cpus() {
        let took = Took {
            ns: 2_000_000_000,
            cpu_ns: 0,
            records: 200_000,
            lost: 3,
            ..Took::default()
        };
        let played = |cpu_ns| Played { trips: 10, cpu_ns };
        let cost = cost(
            &took,
            (played(50_000), played(70_000)),
            Real::from_millis(120),
        );
        assert_eq!((cost.records_per_second, cost.lost), (100_000, 3));
        assert_eq!((cost.trip_alone_ns, cost.trip_recorded_ns), (5_000, 7_000));
        assert_eq!((cost.recorder_permille, cost.diagnosis_ms), (0, 120));
    }
}
