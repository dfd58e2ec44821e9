//! Recording: from the first event switched on to the last page read.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;

use crate::beside::{Beside, missing, most_bytes};
use crate::instance::Instance;
use crate::reader::{Limits, Reader, Source};
use crate::tracefs::{Folder, Tracefs};
use crate::wall::{ahead_ns, choose};
use crate::{RecordError, Recording, Wanted};
use warmq_recordings::page::Layout;
use warmq_recordings::recording::{CpuPages, Raw};

/// A recording that runs.
///
/// It uses a tracing instance of its own (`instances/warmq-PID` of tracefs), which is removed when
/// it is stopped or dropped; if its process is killed, by the next [`Recorder::start`].
///
/// ```no_run
/// # fn main() -> Result<(), warmq_record::RecordError> {
/// use warmq_record::{Recorder, Tasks, Wanted};
/// let recorder = Recorder::start(&Wanted::default())?;
/// // What is to be observed happens here.
/// let recording = recorder.stop()?;
/// recording.records(&mut Tasks::new(), 0, &mut |at, record| println!("{at:?} {record:?}"));
/// # Ok(())
/// # }
/// ```
pub struct Recorder {
    // Stopped before the instance goes: the kernel keeps one that is read.
    reader: Reader,
    limits: Limits,
    instance: Instance,
    raw: Raw,
    beside: Beside,
}

impl Recorder {
    /// Starts recording: what happens after the return is recorded.
    ///
    /// # Errors
    /// [`RecordError::Refused`] when this process may not record or this kernel cannot, and
    /// [`RecordError::System`] when the system fails.
    pub fn start(wanted: &Wanted) -> Result<Recorder, RecordError> {
        let instance = Instance::make(Tracefs::open()?)?;
        let (folder, shared) = (instance.folder(), instance.shared());
        folder.write("tracing_on", "0")?;
        let reports_half = set_up_buffers(folder, wanted)?;
        let mut raw = Raw {
            header_page: shared.read("events/header_page")?,
            clock: choose(folder)?.to_owned(),
            missing: missing(wanted),
            ..Raw::default()
        };
        switch_on(folder, wanted, &mut raw)?;
        let layout =
            Layout::parse(&raw.header_page, warmq_recordings::Order::Little).ok_or_else(|| {
                let why = "the layout of pages is not understood";
                RecordError::refused(
                    shared.shown("events/header_page"),
                    why,
                    "record on another kernel",
                )
            })?;
        let page = layout.size;
        let limits = Limits {
            page,
            pages: (wanted.buffer_kb_per_cpu as usize * 1024 / page).max(1),
            bytes: most_bytes(),
            reports_half,
        };
        let sources = sources(folder)?;
        let reader = Reader::start(sources, limits);
        let reader = reader.map_err(RecordError::of("start a reader of", &folder.shown("")))?;
        let recorder = Recorder {
            reader,
            limits,
            beside: Beside::look(),
            instance,
            raw,
        };
        recorder.instance.folder().write("tracing_on", "1")?;
        Ok(recorder)
    }

    /// Stops recording, reads what is left, and removes the tracing instance.
    ///
    /// # Errors
    /// When the system fails.
    pub fn stop(self) -> Result<Recording, RecordError> {
        let Recorder {
            reader,
            limits,
            instance,
            mut raw,
            beside,
        } = self;
        let folder = instance.folder();
        folder.write("tracing_on", "0")?;
        beside.end(&mut raw);
        raw.ahead_ns = ahead_ns(&raw.clock, folder)?;
        let read = reader.finish(limits);
        let (mut cpus, memory) = read.map_err(RecordError::of("read", &folder.shown("per_cpu")))?;
        for cpu in &mut cpus {
            cpu.dropped = dropped(folder, cpu)?;
        }
        Ok(Recording::new(raw, cpus, 0)?.in_memory(memory))
    }
}

/// Sets the size and the ways of the buffers. True if the kernel can report when one is half full.
fn set_up_buffers(folder: &Folder, wanted: &Wanted) -> Result<bool, RecordError> {
    folder.write("options/overwrite", "1")?;
    // Names are in the events; without these, a switch costs less.
    for option in ["options/record-cmd", "options/record-tgid"] {
        if folder.has(option) {
            folder.write(option, "0")?;
        }
    }
    let size = wanted.buffer_kb_per_cpu.max(1).to_string();
    folder.write("buffer_size_kb", &size)?;
    let reports_half = folder.has("buffer_percent");
    if reports_half {
        folder.write("buffer_percent", "50")?;
    }
    Ok(reports_half)
}

/// Switches on every wanted event that the kernel has. Tracing itself is still off.
fn switch_on(folder: &Folder, wanted: &Wanted, raw: &mut Raw) -> Result<(), RecordError> {
    for event in wanted.events() {
        let files = folder.folder("events").folder(event);
        if !files.has("enable") {
            let why = "this kernel has no such event";
            raw.missing.push(format!("{event}: {why}"));
            continue;
        }
        raw.formats.insert(event.to_owned(), files.read("format")?);
        files.write("enable", "1")?;
    }
    Ok(())
}

/// The buffers of all CPUs, in order.
fn sources(folder: &Folder) -> Result<Vec<Source>, RecordError> {
    let mut sources = Vec::new();
    for name in folder.folder("per_cpu").names()? {
        let number = name.strip_prefix("cpu");
        let Some(cpu) = number.and_then(|number| number.parse().ok()) else {
            continue;
        };
        let pipe = format!("per_cpu/{name}/trace_pipe_raw");
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(folder.path(&pipe))
            .map_err(RecordError::of("open", &folder.shown(&pipe)))?;
        sources.push(Source {
            cpu,
            file,
            pieces: Vec::new(),
        });
    }
    sources.sort_by_key(|source| source.cpu);
    Ok(sources)
}

/// Events of a CPU that were lost without a mark in its pages.
fn dropped(folder: &Folder, cpu: &CpuPages) -> Result<u64, RecordError> {
    let stats = folder.read(&format!("per_cpu/cpu{}/stats", cpu.cpu))?;
    let count = |key: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|line| line.trim().parse::<u64>().ok())
    };
    let counts = ["commit overrun:", "dropped events:"].map(count);
    Ok(counts.into_iter().flatten().sum())
}
