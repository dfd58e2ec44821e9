//! The reader accepts the examples of docs/experiments.md, and the page documents all keys.

use std::path::Path;

use crate::fake::{self, problems};

/// The TOML blocks of the page.
fn blocks() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/experiments.md");
    let page = std::fs::read_to_string(page).unwrap();
    let parts = page.split("```toml\n").skip(1);
    parts
        .map(|part| part.split("```").next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn every_example_of_the_page_is_read_without_a_problem() {
    let blocks = blocks();
    let whole = &blocks[0];
    assert!(blocks.len() > 8, "the page has lost its examples");
    for block in &blocks {
        let text = match block.lines().next() {
            Some("# after the whole example") => format!("{whole}\n{block}"),
            Some("# after the head of a file") => {
                fake::file(&format!("{block}\n[[measure]]\nmetric = \"made_up\"\n"))
            }
            _ => block.clone(),
        };
        assert_eq!(problems(&text), "no problem", "{block}");
    }
}

/// The keys of an experiment file, at the top or in one of its tables.
const KEYS: [&str; 53] = [
    "title",
    "about",
    "notes",
    "paper",
    "figure",
    "machine",
    "scheduler",
    "workload",
    "seeds",
    "run",
    "warmup",
    "time",
    "settings",
    "sweep",
    "quick",
    "measure",
    "metric",
    "name",
    "of",
    "relative_to",
    "as",
    "along",
    "take",
    "share",
    "better",
    "histogram",
    "published",
    "at",
    "value",
    "values",
    "over",
    "calibration",
    "tolerance",
    "claim",
    "says",
    "source",
    "not",
    "at_least",
    "at_most",
    "near",
    "within_factor",
    "within_percent",
    "within_points",
    "trend",
    "from",
    "to",
    "slack",
    "order",
    "by_factor",
    "plot",
    "labels",
    "columns",
    "shown",
];

#[test]
fn the_page_names_every_key() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/experiments.md");
    let page = std::fs::read_to_string(page).unwrap();
    for key in KEYS {
        let forms = [
            format!("`{key}`"),
            format!("{key} = "),
            format!("[{key}]"),
            format!("[{key}."),
        ];
        assert!(
            forms.iter().any(|form| page.contains(form)),
            "{key} is not in the page"
        );
    }
}
