//! Whatever becomes of a shipped file, the reader answers.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use warmq_config::{Chosen, Problems};
use warmq_scenario::{Scenario, Site, WorldKind};

/// The texts of a folder whose names end with `extension`.
fn texts(folder: &str, extension: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the folder")
        .flatten()
        .map(|entry| entry.path())
        .filter(|file| file.extension().is_some_and(|ending| ending == extension))
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| fs::read_to_string(file).expect("a text"))
        .collect()
}

/// Pieces that mean something somewhere.
const PIECES: &[&str] = &[
    "\"",
    "[",
    "]",
    "{",
    "}",
    "=",
    "\n",
    ",",
    "-1",
    "0",
    "99999999999999999999",
    "9223372036854775807",
    "body = []",
    "{ run = \"1ms\" }",
    "times = 1\n",
    "\"a[0].near\"",
    "i % 0",
    "((((",
    "\u{e4}",
    "1.5",
    "true",
    "count = 5\n",
    "[[change]]\n",
    "GB",
    "* 4000000",
    "null",
    "\"loop\" : -1,",
    "/*",
    "\"timer\" : { \"period\" : 5 },",
    "\"fork\" : \"child\",",
];

/// Replaces what lies at `place`, so long, by a piece or by another part of the text.
fn mutated(text: &str, changes: &[(usize, usize, usize)]) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for (place, length, piece) in changes {
        let start = place % (letters.len() + 1);
        let end = (start + length).min(letters.len());
        let new: Vec<char> = match PIECES.get(piece % (PIECES.len() + 6)) {
            Some(piece) => piece.chars().collect(),
            None => {
                let from = (place * 7 + piece) % (letters.len() + 1);
                letters[from..(from + 30).min(letters.len())].to_vec()
            }
        };
        letters.splice(start..end, new);
    }
    letters.into_iter().collect()
}

static SCHEMA: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/scenario.schema.json");
    let schema = fs::read_to_string(file).expect("a text");
    let schema = serde_json::from_str(&schema).expect("JSON");
    jsonschema::validator_for(&schema).expect("a schema")
});

/// Mutates one of `files`, which `read` then reads, and which is returned, or refuses with a place.
fn is_read_or_refused(
    files: &[String],
    file: prop::sample::Index,
    changes: &[(usize, usize, usize)],
    read: fn(&str, &str) -> Result<Scenario, Problems>,
) -> Result<Option<String>, TestCaseError> {
    let changes = changes.iter();
    let changes: Vec<_> = changes
        .map(|(at, length, piece)| (at % (1 << 20), *length, piece % (1 << 20)))
        .collect();
    let text = mutated(&files[file.index(files.len())], &changes);
    match read("mutated", &text) {
        Ok(scenario) => {
            let defaults = Chosen::new(scenario.settings(), Default::default());
            let defaults = defaults.expect("none is chosen");
            prop_assert!(scenario.bind(&defaults, &Site::default()).is_ok());
            scenario.fidelity(WorldKind::Host);
            Ok(Some(text))
        }
        Err(problems) => {
            prop_assert!(!problems.list.is_empty());
            prop_assert!(
                problems
                    .list
                    .iter()
                    .all(|problem| text.get(problem.span.clone()).is_some())
            );
            Ok(None)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn a_mutated_file_is_read_or_refused(
        file: prop::sample::Index,
        changes in prop::collection::vec((any::<usize>(), 0..12_usize, any::<usize>()), 1..4),
    ) {
        let files = texts("../../scenarios", "toml");
        if let Some(text) = is_read_or_refused(&files, file, &changes, Scenario::read)? {
            // What the reader accepts, editors must accept.
            let value = toml::from_str::<serde_json::Value>(&text);
            let value = value.map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert!(SCHEMA.is_valid(&value), "{}", text);
        }
    }

    #[test]
    fn a_mutated_script_of_rt_app_is_read_or_refused(
        file: prop::sample::Index,
        changes in prop::collection::vec((any::<usize>(), 0..12_usize, any::<usize>()), 1..4),
    ) {
        let files = texts("tests/rt_app", "json");
        is_read_or_refused(&files, file, &changes, Scenario::read_rt_app)?;
    }
}
