//! Which kind of file somebody named, by its content, and which command reads it.

use std::fs::File;
use std::io::Read;

use warmq_config::{Document, read_text};
use warmq_recordings::Foreign;
use warmq_scenario::Scenario;
use warmq_units::printable;

use crate::failure::Failure;
use crate::recording;
use crate::typed;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A scenario in TOML, or a script of rt-app.
    Scenario,
    /// A scenario with bounds.
    Law,
    /// A machine in TOML, or a topology of hwloc.
    Machine,
    /// An instance of the affinity model.
    Instance,
    /// A recording, of whatever program.
    Recording,
    /// A file of another program, of a format that is known.
    Foreign(Foreign),
    /// An experiment, or what is none of the others.
    Experiment,
}

/// Bytes that distinguish one format from another.
const HEAD: u64 = 4096;

/// Tables that only this kind of document has, in the order in which they decide: laws have tasks,
/// and instances have them, too.
const TABLES: [(&str, Kind); 7] = [
    ("law", Kind::Law),
    ("fragment", Kind::Instance),
    ("task", Kind::Scenario),
    ("topology", Kind::Machine),
    ("coherence", Kind::Machine),
    ("cpu", Kind::Machine),
    ("like", Kind::Machine),
];

impl Kind {
    /// That of the file called `name`; nothing if it cannot be read.
    pub fn of(name: &str) -> Option<Kind> {
        let by_head = Kind::of_head(&head(name).ok()?);
        by_head.or_else(|| Some(Kind::of_text(name, &read_text(name).ok()?)))
    }

    /// The kind of what begins with `head`, unless more of it has to be read.
    fn of_head(head: &[u8]) -> Option<Kind> {
        if warmq_trace::file::is_trace(head) {
            return Some(Kind::Recording);
        }
        match Foreign::of(head) {
            // A script of rt-app is JSON, and so may be what looks like events of a browser.
            Foreign::Json | Foreign::ChromeJson => None,
            Foreign::Scenario | Foreign::Text | Foreign::Unknown => None,
            // What is in it shows when it is unpacked.
            Foreign::Compressed("gzip" | "zstd") => Some(Kind::Recording),
            format if format.is_recording() => Some(Kind::Recording),
            format => Some(Kind::Foreign(format)),
        }
    }

    fn of_text(name: &str, text: &str) -> Kind {
        let start = text.trim_start_matches('\u{feff}').trim_start();
        if start.starts_with('<') {
            return Kind::Machine;
        }
        let document = Document::parse(name, text).ok();
        let has = |table: &str| document.as_ref().is_some_and(|toml| toml.has(table));
        match TABLES.iter().find(|(table, _)| has(table)) {
            Some((_, kind)) => *kind,
            None if Scenario::is_one(name, text) => Kind::Scenario,
            None => Kind::Experiment,
        }
    }

    /// Why a command that plays what it is given cannot play the file `name`, and which one reads
    /// it; nothing if it can.
    pub fn not_played(self, name: &str) -> Option<Failure> {
        let of_it = |command| typed::line(command, &[name], &[]);
        let (what, help) = match self {
            Kind::Scenario | Kind::Law | Kind::Experiment => return None,
            Kind::Machine => {
                let on_it = typed::line("run", &["chat"], &typed::option("machine", name));
                ("a machine", format!("run something on it: {on_it}"))
            }
            Kind::Instance => (
                "an instance of the affinity model",
                format!(
                    "check it: {}; docs/affinity/model.md says what answers it",
                    of_it("check")
                ),
            ),
            Kind::Recording => (
                "a recording",
                format!(
                    "play it again: {}; or look at it: {}",
                    of_it("replay"),
                    of_it("diagnose")
                ),
            ),
            Kind::Foreign(format) => return Some(foreign(name, format)),
        };
        let what = format!(
            "{} is {what}, which is not played as it is",
            printable(name)
        );
        Some(Failure::usage(what, help))
    }
}

/// That a file is of another program.
pub fn foreign(name: &str, format: Foreign) -> Failure {
    let what = format!(
        "{}: this is {format}, which warmq does not read",
        printable(name)
    );
    Failure::usage(what, recording::instead(format))
}

fn head(name: &str) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(name)?.take(HEAD).read_to_end(&mut head)?;
    Ok(head)
}
