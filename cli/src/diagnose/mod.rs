//! Diagnoses of traces: read, printed, and shown on a page.

mod lags;
mod page;
#[cfg(test)]
mod played;
pub mod text;

use std::path::Path;

use serde::Serialize;

use warmq_diagnose::{Diagnosis, Need, Verdict, Watcher};
use warmq_metrics::evidence::{Evidence, Pictures};
use warmq_recordings::Contents;
use warmq_trace::{Header, Observer};
use warmq_units::{Duration, Instant, TaskId, printable};

use crate::failure::Failure;
use crate::recording::{self, Recording};
use crate::{contents, files, output};
use lags::{Lags, Owing};

/// The ending of files that hold traces.
pub const ENDING: &str = "warmq";

/// Of more verdicts than these no picture is drawn.
const MOST_PICTURES: usize = 4;

/// What time of a trace is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The beginning.
    pub from: Instant,
    /// The end.
    pub until: Instant,
}

/// A diagnosis, and what it is of.
pub struct Found {
    /// What the trace is of.
    pub header: Header,
    /// What is in a recording of another program.
    pub contents: Option<Contents>,
    /// The diagnosis.
    pub diagnosis: Diagnosis,
}

/// What happened during the longest wait of a verdict.
pub struct Picture {
    /// Who ran when.
    evidence: Evidence,
    /// What groups were owed as it began, where that was recorded.
    lags: Option<Lags>,
}

/// Whether a file of this name holds a trace of ours.
pub fn is_trace(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == ENDING)
}

/// Diagnoses the trace in `file`.
///
/// # Errors
/// It cannot be read, is no trace, or is damaged or cut off: at which byte.
pub fn of_file(file: &Path, span: Span) -> Result<Found, Failure> {
    of(&Recording::open(file)?, span)
}

/// Diagnoses a recording.
///
/// # Errors
/// It is damaged, or has nothing in the time that is looked at.
pub fn of(recording: &Recording, span: Span) -> Result<Found, Failure> {
    let begin = |header: &Header| {
        let watcher = Watcher::new(header, span.from, span.until);
        (header.clone(), watcher, Instant::START)
    };
    let ((header, watcher, last), contents) = recording.each(begin, |seen, at, record| {
        seen.1.see(at, record);
        seen.2 = seen.2.max(at);
    })?;
    let converted = header.lacks.iter().filter_map(|name| Need::named(name));
    let lacks = contents.iter().flat_map(contents::lacks).chain(converted);
    let diagnosis = Diagnosis::of(watcher.lacking(lacks));
    match diagnosis.records {
        0 => {
            recording::has_events(recording.name(), contents.as_ref())?;
            Err(nothing_recorded(recording.name(), last))
        }
        _ => Ok(Found {
            header,
            contents,
            diagnosis,
        }),
    }
}

/// That nothing was recorded in the time that is looked at.
fn nothing_recorded(file: &Path, last: Instant) -> Failure {
    let ends = text::time(last.since(Instant::START).as_ns());
    let what = format!(
        "{}: there is no record in the time that is looked at; the trace ends at {ends}",
        printable(file)
    );
    Failure::usage(
        what,
        "give other times with --from and --until, or a longer trace",
    )
}

/// Prints a diagnosis: as text, or as a line of JSON.
///
/// # Errors
/// When standard output refuses.
pub fn print(found: &Found, json: bool) -> Result<(), Failure> {
    match json {
        true => output::print(&as_json(found)?),
        false => output::print(&text::of(found)),
    }
}

/// The same as a line of JSON, with what is in a recording of another program.
fn as_json(found: &Found) -> Result<String, Failure> {
    let diagnosis = &found.diagnosis;
    match &found.contents {
        None => output::json_of(diagnosis),
        Some(contents) => output::json_of(&Both {
            recording: contents::json(contents),
            diagnosis,
        }),
    }
}

/// A diagnosis, and what is in the recording.
#[derive(Serialize)]
struct Both<'a> {
    recording: serde_json::Value,
    #[serde(flatten)]
    diagnosis: &'a Diagnosis,
}

/// Makes `folder` and tries to write into it, before there is anything to write.
///
/// # Errors
/// It cannot be made or written.
pub fn prepare(folder: &Path) -> Result<(), Failure> {
    let make = |error| Failure::system(format!("make the folder {}", printable(folder)), &error);
    std::fs::create_dir_all(folder).map_err(make)?;
    let write = |error| Failure::system(format!("write into {}", printable(folder)), &error);
    tempfile::tempfile_in(folder).map(drop).map_err(write)
}

/// Writes the page and the JSON of the diagnosis of `recording` into `folder`, which was prepared.
///
/// # Errors
/// A folder that cannot be written, or a trace that cannot be read again.
pub fn write(
    found: &Found,
    recording: &Recording,
    folder: &Path,
    quiet: bool,
) -> Result<(), Failure> {
    let _taken = files::folder(folder)?;
    let pictures = pictures(found, recording)?;
    let page = folder.join("diagnosis.html");
    let text = page::page(found, &pictures, recording.name());
    files::write(&page, format!("{text}\n").as_bytes())?;
    let line = format!("{}\n", as_json(found)?);
    files::write(&folder.join("diagnosis.json"), line.as_bytes())?;
    match quiet {
        true => Ok(()),
        false => output::print(&format!("\nThe page: {}", printable(&page))),
    }
}

/// What the CPUs did during the longest wait of each verdict. The file is read once more, for all
/// of them, so that no more of it is kept than is shown.
fn pictures(found: &Found, recording: &Recording) -> Result<Vec<Picture>, Failure> {
    let verdicts = &found.diagnosis.verdicts;
    let verdicts = &verdicts[..verdicts.len().min(MOST_PICTURES)];
    let waits = verdicts.iter().map(wait);
    let mut pictures = Pictures::of(&found.header.names, waits.clone());
    let mut lags: Vec<Owing> = waits.map(|(_, began, _)| Owing::around(began)).collect();
    // What cannot be read now could not be read before either.
    let mut records = recording.records()?.map_while(Result::ok);
    while !(pictures.is_complete() && lags.iter().all(Owing::is_complete))
        && let Some((at, record)) = records.next()
    {
        pictures.see(at, &record);
        lags.iter_mut().for_each(|lags| lags.see(at, &record));
    }
    let pictures = pictures.finish(Instant::START);
    let each = verdicts.iter().zip(pictures).zip(lags);
    Ok(each
        .map(|((verdict, evidence), lags)| picture(verdict, evidence, lags))
        .collect())
}

/// The longest wait of a verdict.
fn wait(verdict: &Verdict) -> (TaskId, Instant, Instant) {
    let time = |ns| Instant::START + Duration::from_ns(ns);
    let (from, to) = verdict.longest_ns;
    let task = verdict.tasks.first().map_or(0, |about| about.task);
    (TaskId(task), time(from), time(to))
}

fn picture(verdict: &Verdict, mut evidence: Evidence, lags: Owing) -> Picture {
    // The diagnosis knows more names.
    if let Some(about) = verdict.tasks.first() {
        evidence.task = about.shown();
    }
    Picture {
        evidence,
        lags: lags.lags(),
    }
}
