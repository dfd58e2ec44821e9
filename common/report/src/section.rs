//! A report and its sections: one section an experiment.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{Plot, PointValue, Profile, Row, Tolerance};

/// Everything on a page.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The heading: `Cache coloring, reproduced`.
    pub title: String,
    /// What is reproduced, and from where, in a sentence.
    pub subtitle: String,
    /// The command that made this report.
    pub command: String,
    /// The version of WarmQ that made it.
    pub version: String,
    /// Short facts of the whole report: how many seeds, on which machine, how long.
    pub facts: Vec<Fact>,
    /// Nothing in it is claimed or published by others: it needs no summary of that.
    pub own: bool,
    /// One section an experiment, in reading order. Their ids differ.
    pub sections: Vec<Section>,
}

/// A short fact for the head of the page: `Seeds: 5`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fact {
    /// What it is about.
    pub name: String,
    /// What there is to know.
    pub value: String,
}

/// One experiment on the page.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Section {
    /// A word for links, unique in the report: `table5-walk-misses`.
    pub id: String,
    /// What a person would call it: `Cache misses of the walk`.
    pub title: String,
    /// Where in the paper: `Table 5`. Empty for an experiment of ours.
    pub paper: String,
    /// What it shows, in a paragraph.
    pub shows: String,
    /// Plots, the most important one first.
    pub plots: Vec<Plot>,
    /// Every row, in the order of the sweep. All rows of one metric share their sweep keys.
    pub rows: Vec<Row>,
    /// The sweep keys whose values become the columns of a table; the other keys become its rows.
    /// Empty: the last key of the sweep.
    pub columns: Vec<String>,
    /// All metrics in one table, a line each, with the points as its columns: for a few points and
    /// many metrics.
    pub together: bool,
    /// What was asked for: the metrics that such a table shows on a terminal, the others only where
    /// all are wanted. They are shown even where they are 0 at every point; of the many others, a
    /// line that is 0 everywhere is left out. Where nothing was asked for, all are wanted.
    pub asked_for: BTreeSet<String>,
    /// What people call a value of a sweep key: `colors = 1` is `vanilla`.
    pub labels: Vec<Label>,
    /// How close is close enough, by metric; [`Tolerance::usual`] for a metric that is not here.
    pub tolerances: BTreeMap<String, Tolerance>,
    /// The paper's statements, checked.
    pub verdicts: Vec<Verdict>,
    /// The numbers that went in, and where each comes from.
    pub parameters: Vec<Parameter>,
    /// What a reader must know to judge the figures: what is left out, which figures deviate and
    /// why.
    pub notes: Vec<String>,
    /// What the programs of compiled schedulers did, if they were profiled.
    pub profiles: Vec<Profile>,
    /// The command that makes this section again.
    pub command: String,
    /// Digests of the runs: equal digests, equal runs.
    pub digests: Vec<Digest>,
    /// How long the runs took, in seconds of real time.
    pub took_s: f64,
}

/// A statement of a paper, checked against the rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Verdict {
    /// What is claimed, in a sentence.
    pub statement: String,
    /// Whether the rows bear it out.
    pub holds: bool,
    /// What was compared with what: `32 colors 8.2 % < vanilla 99.5 %`.
    pub numbers: String,
    /// Who says so: `section 4.2`.
    pub source: String,
}

/// A number that went into a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Parameter {
    /// Its key in the file that sets it: `cache.l2.latency`.
    pub name: String,
    /// The value as a person writes it.
    pub value: String,
    /// Its unit; empty for a bare number.
    pub unit: String,
    /// Measured by whom, or calibrated on which published figure.
    pub source: String,
}

/// What people call a value of a sweep key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Label {
    /// The sweep key.
    pub key: String,
    /// Its value.
    pub value: PointValue,
    /// The name to show instead of key and value.
    pub text: String,
}

/// What a run did, in one number: equal digests, equal runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Digest {
    /// Of which run, or of all runs of a section.
    pub of: String,
    /// The digest, as it is printed elsewhere.
    pub value: String,
}

impl Section {
    /// How close is close enough for a metric.
    pub fn tolerance(&self, metric: &str, unit: &str) -> Tolerance {
        let named = self.tolerances.get(metric).copied();
        named.unwrap_or_else(|| Tolerance::usual(metric, unit))
    }

    /// What people call `value` of the sweep key `key`: its label, else the bare word of a name,
    /// else value and key (`32 colors`).
    pub fn name_of(&self, key: &str, value: &PointValue) -> String {
        let mut labels = self.labels.iter();
        let named = labels.find(|label| label.key == key && label.value == *value);
        match (named, value) {
            (Some(label), _) => label.text.clone(),
            (None, PointValue::Text(word)) => word.clone(),
            (None, PointValue::Integer(_) | PointValue::Number(_)) => format!("{value} {key}"),
            (None, PointValue::Flag(_)) => format!("{key}: {value}"),
        }
    }
}
