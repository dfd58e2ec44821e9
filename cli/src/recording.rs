//! The file of a recording: WarmQ's own, or one of perf, trace-cmd, ftrace or Perfetto.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use warmq_recordings::{Contents, Foreign, Recorded, Records, Unreadable};
use warmq_trace::file::Damage;
use warmq_trace::{Header, Record};
use warmq_units::{Instant, printable};

use crate::failure::Failure;
use crate::nearby;
use crate::progress::Late;

/// After so many records it is said how far reading is.
const EACH: u32 = 1 << 16;

/// What people write for standard input.
const STDIN: &str = "-";

/// Whether `name` is standard input or a pipe, which can be read once.
pub fn is_read_once(name: &str) -> bool {
    let kind = std::fs::metadata(name).map(|about| about.file_type());
    name == STDIN || kind.is_ok_and(|kind| kind.is_fifo())
}

/// Why a folder is not read.
fn folder(file: &Path) -> Failure {
    let what = format!("{}: this is a folder", printable(file));
    // `perf record --threads` writes one file for each thread, and `data` with what is common.
    Failure::usage(
        what,
        match file.join("data").is_file() {
            true => "perf record --threads wrote it, which is not read: record without --threads",
            false => "give a recording in a file",
        },
    )
}

/// A recording in a file, which may be read several times.
pub struct Recording {
    name: PathBuf,
    recorded: Recorded,
}

impl Recording {
    /// The one in `file`; `-` is standard input.
    ///
    /// # Errors
    /// It is not there, or no recording.
    pub fn open(file: &Path) -> Result<Recording, Failure> {
        let opened = match file.as_os_str() == STDIN {
            true => io::stdin().as_fd().try_clone_to_owned().map(File::from),
            false => File::open(file),
        };
        let opened = opened.map_err(|error| {
            let what = format!("{}: cannot read it: {error}", printable(file));
            let usual = "give a recording of `warmq watch`, perf, trace-cmd, ftrace or Perfetto";
            Failure::usage(what, nearby::or(file, usual))
        })?;
        let kind = opened.metadata().map(|about| about.file_type());
        if kind.as_ref().is_ok_and(|kind| kind.is_dir()) {
            return Err(folder(file));
        }
        if kind.is_ok_and(|kind| kind.is_char_device() || kind.is_block_device()) {
            let what = format!("{}: this is a device, and no recording", printable(file));
            return Err(Failure::usage(what, "give a file, or a pipe"));
        }
        let recorded = Recorded::of(opened).map_err(|error| unreadable(file, &error))?;
        Ok(Recording {
            name: file.to_owned(),
            recorded,
        })
    }

    /// What to call it.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Its records, from the first one on.
    ///
    /// # Errors
    /// It is damaged before them.
    pub fn records(&self) -> Result<Records, Failure> {
        let records = self.recorded.records();
        records.map_err(|error| unreadable(&self.name, &error))
    }

    /// Hands all records to `see`, in the order of time, and returns what is in a recording of
    /// another program. What `see` needs to know of it, it is given by `begin`.
    ///
    /// # Errors
    /// A recording of WarmQ that is damaged: at which byte.
    pub fn each<S>(
        &self,
        begin: impl FnOnce(&Header) -> S,
        mut see: impl FnMut(&mut S, Instant, &Record),
    ) -> Result<(S, Option<Contents>), Failure> {
        let mut records = self.records()?;
        let mut state = begin(records.header());
        let mut late = Late::over("MiB");
        let name = printable(&self.name).to_string();
        let total = self.recorded.length().unwrap_or(0) >> 20;
        let mut seen = 0_u32;
        while let Some(entry) = records.next() {
            let (at, record) = entry.map_err(|error| unreadable(&self.name, &error))?;
            see(&mut state, at, &record);
            seen = seen.wrapping_add(1);
            if seen.is_multiple_of(EACH) {
                let read = (records.read_bytes() >> 20).min(total);
                late.see(read as usize, total as usize, &name);
            }
        }
        Ok((state, records.contents()))
    }
}

/// What is wrong with the recording in `file`, and where.
pub fn unreadable(file: &Path, error: &Unreadable) -> Failure {
    let name = printable(file);
    let help = match error {
        Unreadable::NotOne(format) => instead(*format),
        Unreadable::Own(error) if matches!(error.damage, Damage::NotATrace) => {
            instead(Foreign::Unknown)
        }
        Unreadable::Damaged { .. } | Unreadable::Packed { .. } => {
            "copy it again, or record it again and let the recorder end".to_owned()
        }
        Unreadable::Own(_) | Unreadable::Io(_) => String::new(),
    };
    Failure::usage(format!("{name}: {error}"), help)
}

/// Refuses a recording of another program that has nothing to be looked at.
///
/// # Errors
/// It has no event that is read.
pub fn has_events(file: &Path, contents: Option<&Contents>) -> Result<(), Failure> {
    let Some(contents) = contents.filter(|contents| contents.is_empty()) else {
        return Ok(());
    };
    let (name, format) = (printable(file), contents.format);
    if let Some(option) = contents.option {
        let without = match option.strip_prefix("no") {
            Some(option) => option.to_owned(),
            None => format!("no{option}"),
        };
        let what = format!(
            "{name}: this is {format}, written with the option `{option}`: its lines do not say in \
             words what happened, where and when"
        );
        let help = format!(
            "switch it off (`echo {without} > /sys/kernel/tracing/trace_options`) and copy `trace` \
             again: the events stay in the buffer"
        );
        return Err(Failure::usage(what, help));
    }
    let what = format!("{name}: this is {format}, and it has no events of the scheduler");
    let help = "record them: `perf sched record`, `trace-cmd record -e sched`, or `warmq watch`";
    Err(Failure::usage(what, help))
}

/// That a recording of another program is damaged in its middle, after what was read was used.
pub fn cut(file: &Path, contents: Option<&Contents>) -> Result<(), Failure> {
    match contents.and_then(|contents| contents.damage.as_ref()) {
        None => Ok(()),
        Some(damage) => Err(Failure::usage(
            format!(
                "{}: {damage}; what stands before it was used, and what follows was not",
                printable(file)
            ),
            "copy it again, or record it again and let the recorder end",
        )),
    }
}

/// How to come by a recording, for somebody who has a file of another format.
pub fn instead(format: Foreign) -> String {
    const RECORD: &str = "record this machine with `warmq watch --only-record --out NAME.warmq`, \
                          `perf sched record` or `trace-cmd record -e sched`, or a run with `warmq \
                          run ... --trace NAME.warmq`";
    match format {
        Foreign::Scenario => "play it: `warmq run ... --trace NAME.warmq` makes a recording".into(),
        Foreign::Compressed(by) => {
            format!("decompress it: what gzip and zstd compressed is read, and {by} is not")
        }
        Foreign::Tar => "unpack it (`tar -xf`), and give the recording in it".into(),
        Foreign::RawPages => format!(
            "they do not say what their events are: `trace-cmd record` keeps that beside them, and \
             tracefs' `trace` file has them as text; {RECORD}"
        ),
        Foreign::Text | Foreign::Json => format!(
            "text is read as tracefs' `trace` file, `trace-cmd report` and `perf script` print it, \
             a line an event; {RECORD}"
        ),
        Foreign::ChromeJson => format!(
            "slices in JSON do not say who waits: give the trace in Perfetto's own format; {RECORD}"
        ),
        Foreign::Ctf => {
            format!("`babeltrace2` converts it for other tools, not for this one; {RECORD}")
        }
        _ => RECORD.into(),
    }
}
