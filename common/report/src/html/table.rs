//! The figures of one metric: published, ours and the ratio, side by side.

use maud::{Markup, html};

use crate::pivot::{Line, Pivot};
use crate::{Row, Section, Tolerance, number};

/// Longer tables are folded away; the plot shows what they hold.
const LINES_SHOWN: usize = 24;

pub(crate) fn pivot(section: &Section, pivot: &Pivot) -> Markup {
    let table = table(section, pivot);
    html! {
        @if pivot.lines.len() > LINES_SHOWN {
            details.long { summary { (pivot.metric) ", all " (pivot.lines.len()) " lines" } (table) }
        } @else {
            (table)
        }
    }
}

fn table(section: &Section, pivot: &Pivot) -> Markup {
    let compared: Vec<bool> = (0..pivot.columns.len())
        .map(|column| {
            pivot
                .lines
                .iter()
                .filter_map(move |line| line.cells[column])
        })
        .map(|mut rows| rows.any(|row| row.published.is_some()))
        .collect();
    let caption = html! {
        code { (pivot.metric) }
        @if !pivot.unit.is_empty() { ", " (pivot.unit) }
    };
    let lines = html! { @for line in &pivot.lines { (body_line(section, line, &compared)) } };
    figures(pivot.metric, caption, heads(pivot, &compared), lines)
}

/// A table of figures, of which readers of screens hear what it is of.
pub(super) fn figures(of: &str, caption: Markup, heads: Markup, lines: Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(of) {
            table.figures {
                caption { (caption) }
                thead { (heads) }
                tbody { (lines) }
            }
        }
    }
}

/// The columns' names, and where any has published figures, under each what its cells are.
fn heads(pivot: &Pivot, compared: &[bool]) -> Markup {
    let lines = if compared.contains(&true) { 2 } else { 1 };
    html! {
        tr {
            @for key in &pivot.keys { th.key scope="col" rowspan=(lines) { (key) } }
            @for (name, compared) in pivot.columns.iter().zip(compared) {
                th.group scope="colgroup" colspan=(if *compared { 3 } else { 1 }) { (name) }
            }
        }
        @if lines == 2 {
            tr {
                @for compared in compared {
                    @if *compared {
                        th.number.group scope="col" { "published" }
                        th.number scope="col" { "ours" }
                        th.number scope="col" { "ratio" }
                    } @else {
                        th.number.group scope="col" { "ours" }
                    }
                }
            }
        }
    }
}

fn body_line(section: &Section, line: &Line, compared: &[bool]) -> Markup {
    html! {
        tr {
            @for name in &line.names { th.key scope="row" { (name) } }
            @for (row, compared) in line.cells.iter().zip(compared) {
                @if *compared {
                    td.number.group { @if let Some(row) = row { (published(row)) } }
                    td.number { (ours(*row)) }
                    td.number { @if let Some(row) = row { (ratio(section, row)) } }
                } @else {
                    td.number.group { (ours(*row)) }
                }
            }
        }
    }
}

fn published(row: &Row) -> Markup {
    let (letter, word) = if row.calibration {
        ("C", "the model was calibrated on it")
    } else {
        ("P", "the model predicts it")
    };
    html! {
        @if let Some(published) = row.published {
            abbr.tag title=(word) { (letter) } " " (number::published(published, &row.unit))
        } @else {
            span.none { "–" }
        }
    }
}

/// Our figure, with its interval over the seeds under it.
fn ours(row: Option<&Row>) -> Markup {
    let Some(row) = row else {
        return html! { span.none { "–" } };
    };
    let number = |value| number::ours(value, &row.unit);
    html! {
        strong { (number(row.value)) }
        @if row.low < row.high && number(row.low) != number(row.high) {
            small { (number(row.low)) " to " (number(row.high)) }
        }
    }
}

/// Ours over published, marked where it is out of bounds.
fn ratio(section: &Section, row: &Row) -> Markup {
    let agreement = section.agreement(row).zip(row.published);
    let Some((agreement, published)) = agreement else {
        return html! {};
    };
    let in_points = matches!(
        section.tolerance(&row.metric, &row.unit),
        Tolerance::Difference(_)
    ) && row.unit == "%";
    let ratio = row.ratio().map_or_else(|| "–".into(), number::ratio);
    html! {
        span class=(if agreement.within { "within" } else { "outside" }) {
            @if !agreement.within { span.unseen { "out of bounds: " } span aria-hidden="true" { "✗ " } }
            (ratio)
            @if in_points { small { (number::points(row.value - published)) } }
        }
    }
}

/// What the marks mean, where there are any.
pub(crate) fn key(section: &Section) -> Markup {
    let any = |calibration: bool| {
        let published = section.rows.iter().filter(|row| row.published.is_some());
        published
            .into_iter()
            .any(|row| row.calibration == calibration)
    };
    let interval = section.rows.iter().any(|row| row.low < row.high);
    html! {
        p.marks {
            @if any(true) { span { abbr.tag { "C" } " the model was calibrated on this cell" } }
            @if any(false) { span { abbr.tag { "P" } " the model predicts this cell" } }
            @if interval { span { "small: lowest to highest over the seeds" } }
        }
    }
}
