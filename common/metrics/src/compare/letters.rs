//! Decisions as a text that is small enough to be kept: two letters for each.

use std::collections::BTreeMap;

use super::{Decision, Left};

/// Decisions on a line.
const ON_A_LINE: usize = 50;

/// For each decision why the task before it left (`+` it was preempted, `-` it slept, `.` nobody
/// was there) and a letter for who runs; before them lines that begin with `#`: what `about` says,
/// and who the letters are. More than 26 tasks share the last letter.
pub fn letters(about: &str, decisions: &[Decision]) -> String {
    let mut letters: BTreeMap<String, char> = BTreeMap::new();
    let mut words = Vec::new();
    for decision in decisions {
        let known = letters.len().min(25) as u8;
        let letter = letters.entry(decision.next.to_string());
        let letter = *letter.or_insert(char::from(b'a' + known));
        words.push(format!("{}{letter}", why(decision)));
    }
    let legend: Vec<String> = letters
        .iter()
        .map(|(who, letter)| format!("{letter} {who}"))
        .collect();
    let lines = words.chunks(ON_A_LINE).map(|line| line.concat() + "\n");
    format!(
        "# {about}\n# {}\n{}",
        legend.join(", "),
        lines.collect::<String>()
    )
}

fn why(decision: &Decision) -> char {
    match decision.prev {
        None => '.',
        Some((_, Left::Preempted)) => '+',
        Some((_, Left::Slept)) => '-',
    }
}
