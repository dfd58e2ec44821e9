//! The matrix as a page: a cell leads to its evidence, with a chart of who ran when.

use maud::{Markup, html};
use warmq_law::shown::{asked, value};
use warmq_law::{Cell, Column, Family, Verdict};
use warmq_metrics::evidence::{Chart, Evidence};
use warmq_report::page_of;
use warmq_units::{Instant, printable};

use super::matrix;
use crate::colors::{self, Colors};

/// The page of a matrix; `command` makes it again.
pub fn page(cells: &[Cell<'_>], columns: &[Column], command: &str) -> String {
    let evidence = cells.iter().enumerate();
    let evidence = evidence.filter(|(_, cell)| !cell.judged.verdict.is_well());
    let body = html! {
        h1 { "What any decent scheduler keeps" }
        p class="lead" { (matrix::summary(cells)) ". Made by " code { (command) } "." }
        (table(cells, columns))
        @for (place, cell) in evidence { (section(place, cell)) }
    };
    page_of("Laws", "", &body)
}

fn table(cells: &[Cell<'_>], columns: &[Column]) -> Markup {
    let rows: Vec<&[Cell<'_>]> = cells.chunks(columns.len().max(1)).collect();
    let of = |family: Family| {
        rows.iter()
            .enumerate()
            .filter(move |(_, row)| row[0].law.family == family)
    };
    html! {
        div class="scroll" {
            table {
                thead { tr { th { "law" } @for column in columns { th { (column) } } } }
                @for (name, family) in Family::NAMES {
                    tbody {
                        @if of(family).next().is_some() {
                            tr class="family" { th colspan=(columns.len() + 1) { (name) } }
                        }
                        @for (row, cells) in of(family) {
                            tr {
                                th title=(cells[0].law.says) { (cells[0].law.name) }
                                @for (place, cell) in cells.iter().enumerate() {
                                    (shown(row * columns.len() + place, cell))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn shown(place: usize, cell: &Cell<'_>) -> Markup {
    let verdict = cell.judged.verdict;
    let figure = cell
        .decisive()
        .map(|(finding, bound)| value(finding.value, bound.unit));
    let text = match (verdict, figure) {
        (Verdict::Skipped, _) => "skipped".to_owned(),
        (_, Some(figure)) => format!("{} {figure}", matrix::sign(verdict)),
        (_, None) => matrix::sign(verdict).to_owned(),
    };
    html! {
        td class=(verdict.name()) {
            @if verdict.is_well() { (text) } @else { a href=(format!("#c{place}")) { (text) } }
        }
    }
}

fn section(place: usize, cell: &Cell<'_>) -> Markup {
    let judged = &cell.judged;
    let evidence = cell.kept.as_ref().and_then(|kept| kept.evidence.as_ref());
    let trace = cell.kept.as_ref().and_then(|kept| kept.trace.as_ref());
    html! {
        section id=(format!("c{place}")) {
            h2 { (cell.law.name) " in " (cell.column) ": " (judged.verdict.name()) }
            p { (cell.law.says) "." }
            p class="because" { (cell.law.because) }
            ul class="bounds" {
                @for (finding, bound) in judged.bounds.iter().zip(&cell.law.bounds) {
                    li class=(finding.verdict.name()) {
                        (asked(bound)) ": it was " (value(finding.value, bound.unit))
                    }
                }
            }
            @if !judged.why.is_empty() { p { (judged.why) } }
            @if let Some(evidence) = evidence {
                p { (matrix::instead(cell)) "." }
                (chart(evidence))
            }
            @if let Some(trace) = trace { p { "Trace: " code { (printable(trace)) } } }
            @if judged.verdict != Verdict::Skipped { p { "Again: " code { (cell.again) } } }
        }
    }
}

/// Who ran when in a run that does not hold, in colors of its own.
fn chart(evidence: &Evidence) -> Markup {
    let mut colors = Colors::default();
    colors.take(&evidence.chart);
    drawn(evidence, &colors)
}

const WIDTH: f64 = 960.0;
const LEFT: f64 = 52.0;
const ROW: f64 = 26.0;
const BAR: f64 = 18.0;

/// Who ran when on each CPU; the longest wait is framed.
pub(crate) fn drawn(evidence: &Evidence, colors: &Colors) -> Markup {
    let Chart {
        from,
        to,
        who,
        cpus,
    } = &evidence.chart;
    let span = to.since(*from).0.max(1) as f64;
    let x = |at: Instant| LEFT + (WIDTH - LEFT) * at.since(*from).0 as f64 / span;
    let height = ROW * cpus.len() as f64 + 20.0;
    let ms = |at: Instant| format!("{:.1} ms", at.0 as f64 / 1e9);
    let (began, ended) = (x(evidence.from.max(*from)), x(evidence.to.min(*to)));
    html! {
        div class="chart" { svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img"
            aria-label=(format!("who ran while {} waited", evidence.task)) {
            @for (row, (cpu, cells)) in cpus.iter().enumerate() {
                @let y = ROW * row as f64;
                text x="0" y=(y + 14.0) { "CPU " (cpu.0) }
                @for (first, length, place) in runs(cells) {
                    @let cell = (WIDTH - LEFT) / cells.len() as f64;
                    rect x=(format!("{:.1}", LEFT + cell * first as f64)) y=(y)
                        width=(format!("{:.1}", cell * length as f64)) height=(BAR)
                        fill=(colors.of(&who[place])) {
                        title { (who[place]) }
                    }
                }
            }
            rect class="wait" x=(format!("{began:.1}")) y="1" rx="3"
                width=(format!("{:.1}", (ended - began).max(1.0))) height=(format!("{:.1}", ROW * cpus.len() as f64 - 6.0)) {}
            text x=(LEFT) y=(height - 4.0) { (ms(*from)) }
            text x=(WIDTH) y=(height - 4.0) text-anchor="end" { (ms(*to)) }
        } }
        div class="key" {
            @for name in who.iter().filter(|name| colors.knows(name)) {
                span { i style=(format!("background:{}", colors.of(name))) {} (name) }
            }
            @let others = who.iter().filter(|name| !colors.knows(name)).count();
            @if others > 0 {
                span { i style=(format!("background:{}", colors::OTHERS)) {} (others) " others" }
            }
            span { i style="border:2px solid var(--broken)" {} (evidence.task) " waits" }
        }
    }
}

/// Parts of the same task, as one: where it begins, how many parts, who.
fn runs(cells: &[Option<usize>]) -> Vec<(usize, usize, usize)> {
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    for (at, cell) in cells.iter().enumerate() {
        match (cell, runs.last_mut()) {
            (Some(who), Some((first, length, last))) if who == last && *first + *length == at => {
                *length += 1;
            }
            (Some(who), _) => runs.push((at, 1, *who)),
            (None, _) => {}
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn parts_of_one_task_in_a_row_are_one() {
        let cells = [None, Some(1), Some(1), None, Some(1), Some(0), Some(0)];
        assert_eq!(runs(&cells), [(1, 2, 1), (4, 1, 1), (5, 2, 0)]);
        assert_eq!(runs(&[]), []);
    }
}
