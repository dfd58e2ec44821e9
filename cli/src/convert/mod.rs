//! Recordings in another form.

mod rows;

use std::path::Path;

use warmq_diagnose::count;
use warmq_recordings::Contents;
use warmq_trace::file::Writer;
use warmq_trace::{Header, Observer, Perfetto};
use warmq_units::{Instant, printable};

use self::rows::Rows;
use crate::diagnose::{ENDING, is_trace};
use crate::failure::Failure;
use crate::files::{Unfinished, refused};
use crate::recording::{self, Recording};
use crate::trace::is_for_perfetto;
use crate::{contents, output};

/// Endings of files of rows.
const ROWS: [&str; 2] = ["ndjson", "jsonl"];

/// The form of a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Own,
    Perfetto,
    Rows,
}

impl Form {
    /// That which the name of a file says.
    fn of(file: &Path) -> Result<Form, Failure> {
        let ending = file.extension();
        if is_trace(file) {
            return Ok(Form::Own);
        }
        if is_for_perfetto(file) {
            return Ok(Form::Perfetto);
        }
        match ending.is_some_and(|ending| ROWS.iter().any(|known| ending == *known)) {
            true => Ok(Form::Rows),
            false => Err(Failure::usage(
                format!("{}: its name says no form", printable(file)),
                format!("let it end in .{ENDING}, .perfetto-trace or .ndjson"),
            )),
        }
    }
}

/// Writes the recording in `from` to `to`, and says what the new form does not have.
///
/// # Errors
/// What is no recording, a name of no form, a file that cannot be written, damage in the middle.
pub fn file(from: &Path, to: &Path) -> Result<(), Failure> {
    let form = Form::of(to)?;
    let recording = Recording::open(from)?;
    let (unfinished, out) = Unfinished::private(to)?;
    let failed = |error: std::io::Error| refused(to, &error);
    let header = match form {
        Form::Own => with_lacks(&recording)?,
        Form::Perfetto | Form::Rows => recording.records()?.header().clone(),
    };
    let mut left = without_facts(&header, form);
    let (out, read) = match form {
        Form::Own => {
            let (writer, read) = handed(&recording, Writer::new(out, &header))?;
            (writer.finish().map_err(failed)?, read)
        }
        Form::Perfetto => {
            let perfetto = Perfetto::new(out, &header.machine).named(header.names.clone());
            let (perfetto, read) = handed(&recording, perfetto)?;
            left.push(FOR_ITS_UI.to_owned());
            (perfetto.finish().map_err(failed)?, read)
        }
        Form::Rows => {
            let (rows, read) = handed(&recording, Rows::new(out, &header))?;
            let (out, records) = rows.finish().map_err(failed)?;
            left.extend(records);
            (out, read)
        }
    };
    recording::has_events(from, read.contents.as_ref())?;
    unfinished.finish(out)?;
    said(to, &read, left)?;
    recording::cut(from, read.contents.as_ref())
}

/// What was read of a recording.
#[derive(Default)]
struct Read {
    records: u64,
    end: Instant,
    /// Of another program: what is in it.
    contents: Option<Contents>,
}

/// Hands all records to an observer.
fn handed<O: Observer>(recording: &Recording, to: O) -> Result<(O, Read), Failure> {
    let begin = |_: &Header| (to, Read::default());
    let ((to, read), contents) = recording.each(begin, |(to, read), at, record| {
        read.records += 1;
        read.end = read.end.max(at);
        to.see(at, record);
    })?;
    Ok((to, Read { contents, ..read }))
}

/// The header, which says what a recording of another program lacks. That is known once all of it
/// was read.
fn with_lacks(recording: &Recording) -> Result<Header, Failure> {
    let (mut header, contents) = recording.each(Clone::clone, |_, _, _| {})?;
    if let Some(contents) = contents {
        let lacks = contents::lacks(&contents);
        header.lacks = lacks.iter().map(|need| need.name().to_owned()).collect();
    }
    Ok(header)
}

/// Facts of a header that a form has no place for, in words.
fn without_facts(header: &Header, form: Form) -> Vec<String> {
    let names = &header.names;
    // What it is, whether the header has it, and whether rows have it as well.
    let facts = [
        (
            "which CPUs share caches and memory",
            !header.places.is_empty() || !header.nodes.is_empty(),
            true,
        ),
        ("the kernel's tick", !header.hz.is_empty(), true),
        ("its preemption model", !header.preemption.is_empty(), true),
        ("the scheduler", !header.scheduler.is_empty(), true),
        (
            "pressure stall information",
            header.pressure.is_some(),
            true,
        ),
        ("the sizes of caches", !header.hardware.is_empty(), false),
        (
            "what the kernel counted of threads",
            !header.accounts.is_empty(),
            false,
        ),
        ("which events it lacks", !header.lacks.is_empty(), false),
        (
            "the names of spans and counters",
            form == Form::Rows && (!names.spans.is_empty() || !names.counters.is_empty()),
            false,
        ),
    ];
    let missing = facts.into_iter().filter(|(_, present, rows)| {
        *present
            && match form {
                Form::Own => false,
                Form::Perfetto => true,
                Form::Rows => !rows,
            }
    });
    missing.map(|(fact, ..)| fact.to_owned()).collect()
}

/// What Perfetto's form has in a way that is not read back.
const FOR_ITS_UI: &str = "as events, but as slices and instants for its UI: all but switches, \
                          wakings and idle states";

/// Says what was written, and what was not.
fn said(to: &Path, read: &Read, mut left: Vec<String>) -> Result<(), Failure> {
    let (records, end) = (read.records, read.end);
    let others: u64 = read
        .contents
        .iter()
        .flat_map(|contents| contents.others.values())
        .sum();
    if others > 0 {
        left.push(format!(
            "{} events of kinds that are not read",
            count(others)
        ));
    }
    let left = match left.is_empty() {
        true => "everything that was read is in it".to_owned(),
        false => format!("not in it: {}", left.join(", ")),
    };
    output::print(&format!(
        "{}: {} records, which end at {end}; {left}",
        printable(to),
        count(records)
    ))
}
