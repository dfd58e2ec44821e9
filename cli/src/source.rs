//! Where an experiment comes from, and what the command line changes in it.
//!
//! A change (`--machine`, `--set`) sets a value in the parsed document. So it obeys the rules of
//! the files, and what is wrong with it is reported as for a file, at the option.

use std::path::Path;

use warmq_config::{Document, Source, most_like};
use warmq_machine::builtin_names;

use crate::failure::Failure;
use crate::kind::Kind;
use crate::laws::shipped::LAWS;
use crate::nearby;
use crate::oracle_gap;
use crate::pair::Pair;
use crate::scenario::{self, Worlds};
use crate::shipped::{self, Shipped};

/// What the command line changes in every experiment that it names.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// In which worlds scenarios are played.
    pub worlds: Worlds,
    /// Another machine.
    pub machine: Option<String>,
    /// Settings, by their plain or dotted names.
    pub settings: Vec<Pair>,
}

/// The documents of `files`: of each the file, or the shipped experiment of that name.
///
/// # Errors
/// A name of neither, a file that cannot be read, texts that are not TOML.
pub fn documents(files: &[String], changes: &Changes) -> Result<Vec<Document>, Failure> {
    let (mut documents, mut wrong) = (Vec::new(), Vec::new());
    for name in files {
        match changes.document(name) {
            Ok(document) => documents.push(document),
            Err(Failure::Problems(problems)) => wrong.extend(problems),
            Err(failure) => return Err(failure),
        }
    }
    if wrong.is_empty() {
        Ok(documents)
    } else {
        Err(Failure::Problems(wrong))
    }
}

/// The document of an experiment that comes with WarmQ.
///
/// # Errors
/// None, unless the file is broken: then what is wrong with it.
pub fn shipped(shipped: &Shipped) -> Result<Document, Failure> {
    parsed(&format!("{}.toml", shipped.id), shipped.text)
}

fn parsed(name: &str, text: &str) -> Result<Document, Failure> {
    Document::parse(name, text).map_err(|problems| Failure::Problems(vec![problems]))
}

impl Changes {
    /// The document of the file `name`, with all changes; a scenario becomes an experiment.
    fn document(&self, name: &str) -> Result<Document, Failure> {
        let mut document = self.unchanged(name)?;
        self.make(&mut document);
        Ok(document)
    }

    fn unchanged(&self, name: &str) -> Result<Document, Failure> {
        if scenario::is_named(name) {
            return scenario::experiment(name, &self.worlds);
        }
        if let Some(elsewhere) = Kind::of(name).and_then(|kind| kind.not_played(name)) {
            return Err(elsewhere);
        }
        let (file, text) = text_of(name)?;
        if self.worlds.any() {
            return Err(Failure::usage(
                format!("{name} is an experiment, which says itself in which worlds it is run"),
                "write `world`, `scheduler`, `kernel`, `preempt` and [run] into it, or name a scenario; of what it sweeps \
                 --point runs a part, as in --point world=lab",
            ));
        }
        parsed(&file, &text)
    }

    pub fn make(&self, document: &mut Document) {
        if let Some(machine) = &self.machine {
            document.set(&["machine"], machine, Source::option("--machine", machine));
        }
        for pair in &self.settings {
            let Pair { key, value } = pair;
            let path: Vec<&str> = std::iter::once("settings").chain(key.split('.')).collect();
            let option = Source::option("--set", &pair.to_string());
            document.set(&path, value, option);
        }
    }
}

/// What to call the file `name` in messages, and its text.
fn text_of(name: &str) -> Result<(String, String), Failure> {
    if let Some(shipped) = shipped::find(name).filter(|_| !Path::new(name).exists()) {
        return Ok((format!("{}.toml", shipped.id), shipped.text.to_owned()));
    }
    let text = warmq_config::read_text(name).map_err(|error| unreadable(name, &error))?;
    Ok((name.to_owned(), text))
}

fn unreadable(name: &str, error: &std::io::Error) -> Failure {
    let help = match error.kind() {
        std::io::ErrorKind::NotFound => known_as(name),
        _ => "give the file of an experiment".to_owned(),
    };
    Failure::File {
        file: name.to_owned(),
        what: format!("cannot read it: {error}"),
        help,
    }
}

/// What to write in place of `name`, which is neither a file nor what comes with WarmQ to be run.
fn known_as(name: &str) -> String {
    let experiments: Vec<&str> = shipped::all()
        .map(|experiment| experiment.id)
        .chain([oracle_gap::GAP])
        .collect();
    let scenarios = scenario::shipped();
    let others = [
        (
            LAWS.iter().any(|(law, _)| *law == name),
            "a law: warmq laws",
        ),
        (
            builtin_names().any(|machine| machine == name),
            "a machine: warmq run chat --machine",
        ),
        (
            name == oracle_gap::GAP,
            "computed, not simulated: warmq run",
        ),
    ];
    if let Some((_, command)) = others.iter().find(|(is, _)| *is) {
        return format!("it is {command} {name}");
    }
    let runs: Vec<&str> = experiments.into_iter().chain(scenarios).collect();
    let few = most_like(name.trim_end_matches(".toml"), runs.iter().copied(), FEW);
    let otherwise = format!(
        "give a file, or what comes with warmq, such as {}; `warmq scenarios` lists the scenarios",
        few.join(", ")
    );
    nearby::or_one_of(Path::new(name), &runs, &otherwise)
}

/// So many names help somebody who mistyped one.
const FEW: usize = 5;
