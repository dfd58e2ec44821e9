//! What the names on a command line ask for, and what its options change in that.
//!
//! A change (`--machine`, `--set`) obeys the rules of the files, and what is wrong with it is
//! reported as for a file, at the option.

use std::path::Path;

use warmq_config::{Document, Pair, most_like};
use warmq_experiment::laws::LAWS;
use warmq_experiment::papers::{self, Shipped};
use warmq_experiment::{Change, Request};
use warmq_machine::builtin_names;

use crate::failure::{self, Failure};
use crate::kind::Kind;
use crate::nearby;
use crate::oracle_gap;
use crate::scenario::{self, Worlds};

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

/// What each of `files` asks for: the file, or what comes with WarmQ under that name.
///
/// # Errors
/// A name of neither, a file that cannot be read, texts that are not TOML.
pub fn requests(files: &[String], changes: &Changes) -> Result<Vec<Request>, Failure> {
    failure::all(files.iter().map(|name| changes.request(name)))
}

/// An experiment that comes with WarmQ.
///
/// # Errors
/// None, unless the file is broken: then what is wrong with it.
pub fn shipped((id, text): &Shipped) -> Result<Request, Failure> {
    let document = Document::parse(&format!("{id}.toml"), text)?;
    Ok(Request::File(document))
}

impl Changes {
    /// What `name` asks for, with all changes.
    fn request(&self, name: &str) -> Result<Request, Failure> {
        let changes = self.of_options();
        if scenario::is_named(name) {
            let mut trial = scenario::trial(name, &self.worlds)?;
            trial.changes.extend(changes);
            return Ok(Request::Trial(trial));
        }
        let mut document = self.document(name)?;
        changes.iter().for_each(|change| change.make(&mut document));
        Ok(Request::File(document))
    }

    /// The document of an experiment.
    fn document(&self, name: &str) -> Result<Document, Failure> {
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
        Ok(Document::parse(&file, &text)?)
    }

    fn of_options(&self) -> Vec<Change> {
        let machine = self.machine.iter();
        let machine = machine.map(|name| Change::value(&["machine"], "--machine", name, name));
        machine.chain(settings(&self.settings)).collect()
    }
}

/// What `--set` changes.
pub fn settings(pairs: &[Pair]) -> impl Iterator<Item = Change> {
    pairs.iter().map(|pair| {
        let Pair { key, value } = pair;
        let path: Vec<&str> = std::iter::once("settings").chain(key.split('.')).collect();
        Change::value(&path, "--set", &pair.to_string(), value)
    })
}

/// What to call the file `name` in messages, and its text.
fn text_of(name: &str) -> Result<(String, String), Failure> {
    if let Some((id, text)) = papers::find(name).filter(|_| !Path::new(name).exists()) {
        return Ok((format!("{id}.toml"), text.to_owned()));
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
    let experiments: Vec<&str> = papers::all()
        .map(|(id, _)| id)
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
