//! Two recordings beside each other: read from files, and shown as text or as JSON.

mod json;
mod read;
mod text;

pub use json::{about, json};
pub use read::read;
pub use text::text;

use warmq_metrics::compare::{Comparison, Recording};

/// Two recordings, what they are called, and how they differ.
pub struct Compared<'a> {
    /// What each is called: the name of its file.
    pub names: [&'a str; 2],
    /// The recordings.
    pub both: [&'a Recording; 2],
    /// How they differ.
    pub comparison: &'a Comparison,
}

/// The names of the figures that are shown: of each table of tasks, and of all together.
fn figures(compared: &Compared<'_>) -> Vec<(String, &'static str)> {
    let mut tables: Vec<&String> = Vec::new();
    for recording in compared.both {
        for table in &recording.header.names.tasks {
            if !tables.contains(&table) {
                tables.push(table);
            }
        }
    }
    let of_table = |table: &String| {
        let named = |what: &str, unit| (format!("{table}_{what}"), unit);
        [
            named("share", "%"),
            named("wait_p50", "us"),
            named("wait_p99", "us"),
        ]
    };
    let mut names: Vec<_> = tables.into_iter().flat_map(of_table).collect();
    for (name, unit) in [
        ("wait_p50", "us"),
        ("wait_p99", "us"),
        ("others_share", "%"),
        ("switches_per_second", "1/s"),
    ] {
        names.push((name.to_owned(), unit));
    }
    let known = |(name, _): &(String, _)| {
        let mut both = compared.comparison.figures.iter();
        both.any(|figures| figures.contains_key(name))
    };
    names.retain(known);
    names
}
