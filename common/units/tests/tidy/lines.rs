//! How much code there is: lines of production Rust, without comments, blanks and tests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::tree::{Source, sources};

/// Crates that only tests use: what other tests draw from, and a program that tests scx_warmq in
/// guests (`make vm-test`). Scripts that measure for the docs use the latter, too, and no command.
const FOR_TESTS: [&str; 2] = ["lab/random", "live/drill"];

/// More is too much to know. Who needs more lines takes others away first. (14,000 of these run
/// compiled schedulers and their races in the lab.)
const MOST: usize = 126_508;

#[test]
fn there_is_no_more_code_than_can_be_known() {
    let sources = sources();
    let of_tests: BTreeSet<PathBuf> = sources.iter().flat_map(modules_of_tests).collect();
    let in_tests = |source: &Source| {
        let apart = ["tests", "benches", "examples"];
        let mut parts = source.path.iter();
        parts.any(|part| apart.iter().any(|folder| part == *folder))
            || FOR_TESTS.contains(&source.crate_name().as_str())
            || source.path.ancestors().any(|path| of_tests.contains(path))
    };
    let mut by_crate: BTreeMap<String, usize> = BTreeMap::new();
    for source in sources.iter().filter(|source| !in_tests(source)) {
        *by_crate.entry(source.crate_name()).or_default() += production(&source.text).count();
    }
    for (name, lines) in &by_crate {
        println!("{lines:>7} {name}");
    }
    let all: usize = by_crate.values().sum();
    println!("{all:>7} lines of production Rust");
    assert!(
        all <= MOST,
        "{all} lines of production Rust, {MOST} at most"
    );
}

/// The lines of `text` that are code and not only for tests. The text is as rustfmt writes it.
fn production(text: &str) -> impl Iterator<Item = &str> {
    let mut lines = text.lines();
    std::iter::from_fn(move || {
        loop {
            let line = lines.next()?;
            if line.trim() == "#[cfg(test)]" {
                skip_item(&mut lines, indent(line));
            } else if is_code(line) {
                return Some(line);
            }
        }
    })
}

fn is_code(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with("//")
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Goes past an item that begins with the next line, `depth` columns from the left. A module ends
/// with a brace alone: what else stands at the left in it is in a text.
fn skip_item<'t>(lines: &mut impl Iterator<Item = &'t str>, depth: usize) {
    let mut in_module = false;
    for line in lines {
        let text = line.trim_start();
        in_module |= text.starts_with("mod ") && text.ends_with('{');
        let ends = match in_module {
            true => text == "}",
            false => line.ends_with([';', '}', ',']) && !text.starts_with("#["),
        };
        if ends && indent(line) == depth {
            return;
        }
    }
}

/// The files and folders of modules that are only for tests.
fn modules_of_tests(source: &Source) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut for_tests = false;
    for line in source.text.lines().map(str::trim) {
        let name = line
            .strip_suffix(';')
            .and_then(|line| line.split("mod ").nth(1));
        if let Some(name) = name.filter(|_| for_tests) {
            let folder = source.folder_of_modules();
            found.extend([folder.join(name), folder.join(format!("{name}.rs"))]);
        }
        for_tests = line == "#[cfg(test)]" || for_tests && line.starts_with("#[");
    }
    found
}

#[test]
fn tests_comments_and_blanks_are_no_production_lines() {
    let text = "\
//! About.
use a::b;

/// What.
#[derive(Debug)]
struct One {
    #[cfg(test)]
    two: u8,
    three: u8,
}

#[cfg(test)]
use c::d;
#[cfg(test)]
mod apart;

#[cfg(test)]
mod tests {
    const TEXT: &str = \"
key = {}
\";
    fn in_a_test() {}
}
fn last() {}
";
    let counted: Vec<&str> = production(text).collect();
    let expected = [
        "use a::b;",
        "#[derive(Debug)]",
        "struct One {",
        "    three: u8,",
        "}",
        "fn last() {}",
    ];
    assert_eq!(counted, expected);
    let source = Source {
        path: "lab/sched/src/eevdf.rs".into(),
        text: text.to_owned(),
    };
    let modules = modules_of_tests(&source);
    assert_eq!(modules[1], PathBuf::from("lab/sched/src/eevdf/apart.rs"));
}
