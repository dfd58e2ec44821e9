//! The matrix for a terminal.

use comfy_table::{Cell as Text, Color, ColumnConstraint};
use itertools::join;
use warmq_law::shown::{asked, value};
use warmq_law::{Cell, Column, Verdict};
use warmq_metrics::evidence::Evidence;
use warmq_units::printable;

use crate::listing;

/// The matrix: a law a row, a column for each scheduler; and what is to be said below it.
pub fn table(cells: &[Cell<'_>], columns: &[Column]) -> String {
    let mut table = listing::table();
    let head = columns.iter().map(Column::to_string);
    table.set_header(["law".to_owned()].into_iter().chain(head));
    let mut family = None;
    for row in cells.chunks(columns.len()) {
        let law = row[0].law;
        if family.replace(law.family) != Some(law.family) {
            table.add_row([listing::name(law.family.name())]);
        }
        let name = Text::new(format!("  {}", law.name));
        table.add_row([name].into_iter().chain(row.iter().map(text)));
    }
    // Names are read better whole; where the screen is narrow, figures are wrapped instead.
    if let Some(names) = table.column_mut(0) {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
    let notes = join(cells.iter().filter_map(note), "\n");
    let texts = [table.trim_fmt(), notes, summary(cells)];
    join(texts.iter().filter(|text| !text.is_empty()), "\n\n")
}

/// The matrix in Markdown, and how many cells of each column hold, are broken or inconclusive.
pub fn markdown(cells: &[Cell<'_>], columns: &[Column]) -> String {
    let line = |name: &str, texts: Vec<String>| format!("| {name} | {} |\n", texts.join(" | "));
    let heads = columns.iter().map(Column::to_string).collect();
    let mut text = line("law", heads);
    text.push_str(&format!("|{}\n", "---|".repeat(columns.len() + 1)));
    for row in cells.chunks(columns.len()) {
        let texts = row.iter().map(|cell| match cell.judged.verdict {
            Verdict::Broken => format!("**{}**", brief(cell)),
            _ => brief(cell),
        });
        text.push_str(&line(&row[0].law.name, texts.collect()));
    }
    let sums = (0..columns.len()).map(|column| {
        let count = |verdict| {
            let those = cells.iter().skip(column).step_by(columns.len());
            those.filter(|cell| cell.judged.verdict == verdict).count()
        };
        let counts = [Verdict::Holds, Verdict::Broken, Verdict::Inconclusive].map(count);
        counts.map(|count| count.to_string()).join(", ")
    });
    text.push_str(&line("holds, broken, inconclusive", sums.collect()));
    text
}

fn text(cell: &Cell<'_>) -> Text {
    Text::new(brief(cell)).fg(color(cell.judged.verdict))
}

/// A cell's sign, and its figure if it has one.
fn brief(cell: &Cell<'_>) -> String {
    let mark = sign(cell.judged.verdict);
    match cell.decisive() {
        Some((finding, bound)) => format!("{mark} {}", value(finding.value, bound.unit)),
        None => mark.to_owned(),
    }
}

/// The sign of a verdict.
pub fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "✓",
        Verdict::Broken => "✗",
        Verdict::Inconclusive => "?",
        Verdict::Skipped => "–",
        Verdict::Compared => "·",
    }
}

fn color(verdict: Verdict) -> Color {
    match verdict {
        Verdict::Holds => Color::Green,
        Verdict::Broken => Color::Red,
        Verdict::Inconclusive => Color::Yellow,
        Verdict::Skipped | Verdict::Compared => Color::Grey,
    }
}

/// Why a cell is not green, or what is to be said though it is.
fn note(cell: &Cell<'_>) -> Option<String> {
    let verdict = cell.judged.verdict;
    let lead = format!("{} in {}", cell.law.name, cell.column);
    let why = &cell.judged.why;
    match verdict {
        Verdict::Holds | Verdict::Compared if why.is_empty() => None,
        Verdict::Holds | Verdict::Compared => Some(format!("{} {lead}: {why}", sign(verdict))),
        Verdict::Skipped => Some(format!("– {lead}: skipped: {why}")),
        Verdict::Broken | Verdict::Inconclusive => {
            let sign = sign(verdict);
            let found = cell.decisive().map(|(finding, bound)| {
                format!(
                    "{}, and it was {}",
                    asked(bound),
                    value(finding.value, bound.unit)
                )
            });
            let parts = [found.unwrap_or_default(), why.clone(), instead(cell)];
            let said = join(parts.iter().filter(|part| !part.is_empty()), "; ");
            let mut lines = format!("{sign} {lead}: {said}");
            if let Some(trace) = cell.kept.as_ref().and_then(|kept| kept.trace.as_ref()) {
                lines.push_str(&format!("\n    trace: {}", printable(trace)));
            }
            lines.push_str(&format!("\n    again: {}", cell.again));
            Some(lines)
        }
    }
}

/// Who waited longest in a cell's run, and who ran instead.
pub fn instead(cell: &Cell<'_>) -> String {
    let evidence = cell.kept.as_ref().and_then(|kept| kept.evidence.as_ref());
    evidence.map(waited).unwrap_or_default()
}

/// Who waited longest, and who ran instead.
pub fn waited(evidence: &Evidence) -> String {
    let waited = evidence.to.since(evidence.from);
    let us = |span: warmq_units::Duration| value(span.0 as f64 / 1e6, "us");
    let ran = evidence.ran.iter().take(3);
    let ran = ran.map(|(name, span)| format!("{name} ({})", us(*span)));
    let instead = match join(ran, ", ").as_str() {
        "" => "nobody ran on its CPUs".to_owned(),
        ran => format!("meanwhile ran {ran}"),
    };
    format!(
        "{} waited longest, {}; {instead}",
        evidence.task,
        us(waited)
    )
}

/// How many cells there are of each verdict.
pub fn summary(cells: &[Cell<'_>]) -> String {
    let count = |verdict| {
        cells
            .iter()
            .filter(|cell| cell.judged.verdict == verdict)
            .count()
    };
    let parts = [
        Verdict::Holds,
        Verdict::Broken,
        Verdict::Inconclusive,
        Verdict::Skipped,
    ];
    let parts = parts.map(|verdict| format!("{} {}", count(verdict), verdict.name()));
    parts.join(", ")
}
