//! What somebody asks to be run: an experiment in a file, or a workload that is measured whole, of
//! which no file says anything. What was typed on a command line keeps its place, so that a mistake
//! is shown where it was made.

use std::collections::BTreeMap;

use warmq_config::{Document, Entry, Node, NodeKind, Place, Problems, Source, Value};
use warmq_units::Duration;

use crate::experiment::Experiment;
use crate::plan::Part;
use crate::simulator::Simulator;

/// What is asked for.
#[derive(Clone, Debug)]
pub enum Request {
    /// An experiment in a file, with what a command line changes in it.
    File(Document),
    /// A workload.
    Trial(Trial),
}

/// A workload that is played somewhere and measured whole.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    /// What messages call it; its rows are called so without the ending.
    pub file: String,
    /// The title for people.
    pub title: String,
    /// What it shows, in a paragraph.
    pub about: String,
    /// The names of the parts that are not swept. No world: the laboratory.
    pub parts: BTreeMap<Part, String>,
    /// What is set for all runs, by plain or dotted names.
    pub settings: BTreeMap<String, Value>,
    /// What is swept, in this order.
    pub sweep: Vec<(&'static str, Vec<String>)>,
    /// How long it is played before anything is measured.
    pub warmup: Duration,
    /// How long it is measured.
    pub time: Duration,
    /// The figures that are shown first, besides what is drawn.
    pub shown: Vec<String>,
    /// The figures that are drawn for each world.
    pub bars: Vec<String>,
    /// The swept keys whose values have bars of their own.
    pub series: Vec<String>,
    /// What a command line says instead of the above.
    pub changes: Vec<Change>,
}

/// A value that was typed on a command line, and where it belongs.
#[derive(Clone, Debug)]
pub struct Change {
    /// The keys that lead to it in an experiment's file.
    path: Vec<String>,
    typed: Typed,
}

/// What was typed.
#[derive(Clone, Debug)]
enum Typed {
    /// A value, which ends the text of the option.
    Value(Source, String),
    /// A list of texts after the option of this name.
    List(String, Vec<String>),
}

impl Change {
    /// `value`, which ends the `text` that was typed after `option`, in place of what is at `path`.
    pub fn value(path: &[&str], option: &str, text: &str, value: &str) -> Change {
        Change {
            path: path.iter().map(|key| (*key).to_owned()).collect(),
            typed: Typed::Value(Source::option(option, text), value.to_owned()),
        }
    }

    /// The list that was typed after `option`, in place of what is at `path`.
    pub fn list(path: &[&str], option: &str, texts: &[String]) -> Change {
        Change {
            path: path.iter().map(|key| (*key).to_owned()).collect(),
            typed: Typed::List(option.to_owned(), texts.to_vec()),
        }
    }

    /// Makes it in `document`.
    pub fn make(&self, document: &mut Document) {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        match &self.typed {
            Typed::Value(option, value) => document.set(&path, value, option.clone()),
            Typed::List(option, texts) => document.set_list(&path, option, texts),
        }
    }
}

impl Request {
    /// The experiment, checked against `simulator`.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with place and fix.
    pub fn experiment(&self, simulator: &dyn Simulator) -> Result<Experiment, Problems> {
        match self {
            Request::File(document) => Experiment::of(document, simulator),
            Request::Trial(trial) => trial.experiment(simulator),
        }
    }

    /// The same, for planning: see [`Experiment::planned`].
    ///
    /// # Errors
    /// Everything that is wrong with it, each with place and fix.
    pub fn planned(&self, simulator: &dyn Simulator) -> Result<Experiment, Problems> {
        match self {
            Request::File(document) => Experiment::planned(document, simulator),
            Request::Trial(trial) => trial.experiment(simulator),
        }
    }

    /// True if `text` occurs as a value anywhere in it.
    pub fn mentions(&self, text: &str) -> bool {
        match self {
            Request::File(document) => document.mentions(text),
            Request::Trial(trial) => trial.document().mentions(text),
        }
    }
}

impl Trial {
    /// The experiment that it is.
    ///
    /// # Errors
    /// A part that there is not, a setting that no part has, a value that is not allowed: each at
    /// the option that said so.
    pub fn experiment(&self, simulator: &dyn Simulator) -> Result<Experiment, Problems> {
        let document = self.document();
        document.read(|fields| crate::read::trial(self, fields, simulator))
    }

    /// Parts, settings, sweep and times, each with its place.
    fn document(&self) -> Document {
        let named = self.parts.iter();
        let named = named.map(|(part, name)| (part.key(), text(name)));
        let times = [("warmup", self.warmup), ("time", self.time)];
        let times = times.map(|(key, time)| (key, text(&time.exact())));
        let settings = self.settings.iter();
        let settings = settings.map(|(key, value)| (key.as_str(), node(value)));
        let sweep = self.sweep.iter().map(|(key, names)| {
            let names = names.iter().map(|name| text(name));
            (*key, at_no_place(NodeKind::List(names.collect())))
        });
        let tables = [("run", table(times)), ("settings", table(settings))];
        let swept = (!self.sweep.is_empty()).then(|| ("sweep", table(sweep)));
        let tables = tables.into_iter().chain(swept);
        let mut document = Document::without_text(&self.file, table(named.chain(tables)));
        for change in &self.changes {
            change.make(&mut document);
        }
        document
    }
}

/// What nobody typed stands nowhere.
fn at_no_place(kind: NodeKind) -> Node {
    Node {
        place: Place::in_file(0..0),
        kind,
    }
}

fn text(text: &str) -> Node {
    at_no_place(NodeKind::Text(text.to_owned()))
}

fn node(value: &Value) -> Node {
    match value {
        Value::Bool(flag) => at_no_place(NodeKind::Bool(*flag)),
        Value::Integer(count) => at_no_place(NodeKind::Integer(*count)),
        other => text(&other.to_string()),
    }
}

fn table<'k>(entries: impl IntoIterator<Item = (&'k str, Node)>) -> Node {
    let entry = |(key, node): (&str, Node)| Entry {
        key: key.to_owned(),
        place: Place::in_file(0..0),
        node,
    };
    at_no_place(NodeKind::Table(entries.into_iter().map(entry).collect()))
}
