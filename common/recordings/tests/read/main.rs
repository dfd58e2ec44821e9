//! Recordings that the tools of Debian 12 made on a machine with Linux 6.18 (perf 6.1, trace-cmd
//! 3.1.6, tracefs), with names replaced: what is read of them, whole, cut and damaged.

mod damaged;
mod packed;
mod touched;
mod whole;

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use warmq_recordings::{Contents, Recorded, records_of};
use warmq_trace::{Header, Record};
use warmq_units::Instant;

/// All of them.
const NAMES: [&str; 9] = [
    "ftrace.txt",
    "perf-pipe.data",
    "perf.data",
    "report-l.txt",
    "report.txt",
    "script.txt",
    "trace-v6.dat",
    "trace-v7-zstd.dat",
    "trace-v7.dat",
];

fn path(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    folder.join(format!("{name}.gz"))
}

/// The bytes of a recording.
fn bytes(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = File::open(path(name)).expect("it is there");
    GzDecoder::new(file)
        .read_to_end(&mut bytes)
        .expect("it is whole");
    bytes
}

/// What is read of a recording.
struct Whole {
    header: Header,
    records: Vec<(Instant, Record)>,
    contents: Contents,
}

/// Reads the file, which gzip compressed.
fn read(name: &str) -> Whole {
    let recorded = Recorded::of(File::open(path(name)).expect("it is there"));
    let mut records = recorded
        .and_then(|recorded| recorded.records())
        .expect("it is one");
    let header = records.header().clone();
    let all = records.by_ref().map(|record| record.expect("it is whole"));
    Whole {
        header,
        records: all.collect(),
        contents: records.contents().expect("it is of another program"),
    }
}

/// Reads what may be anything: the records and the contents, if it is a recording.
fn read_bytes(bytes: Vec<u8>) -> Option<(Vec<(Instant, Record)>, Contents)> {
    let mut records = records_of(bytes).ok()?;
    let all = records
        .by_ref()
        .map(|record| record.expect("damage ends it"));
    let all = all.collect();
    Some((all, records.contents()?))
}
