//! The summary: claims that hold, cells that agree, and the largest deviations.

use maud::{Markup, html};

use crate::html::mark;
use crate::{Cells, Report, Section, SectionSummary, Summary, WorstCell, number};

/// More cells out of bounds than this are folded away.
const WORST_SHOWN: usize = 6;

pub(crate) fn summary(report: &Report, anchors: &[String]) -> Markup {
    let summary = report.summary();
    let (held, claims) = summary.claims();
    let (calibration, prediction) = (summary.calibration(), summary.prediction());
    let unpublished: usize = summary
        .sections
        .iter()
        .map(|section| section.unpublished)
        .sum();
    html! {
        section #summary {
            h2 { "Summary" }
            div.tiles {
                (tile("Claims that hold", held, claims, "statements of the paper, checked"))
                (cells_tile("Predicted cells within bounds", prediction,
                    "published, and not used to set any parameter"))
                (cells_tile("Calibrated cells within bounds", calibration,
                    "published, and used to set parameters"))
                (typical_tile(&summary))
            }
            p.bounds {
                "Within bounds: at most a factor of 1.5 off, or 10 percentage points for a ratio in %, "
                "unless the experiment sets its own."
                @if unpublished > 0 {
                    " " (number::exact(unpublished as f64))
                    " more rows have no published figure to be compared with."
                }
            }
            (off(report, &summary, anchors))
            (by_experiment(&summary, anchors))
        }
    }
}

fn cells_tile(label: &str, cells: Cells, what: &str) -> Markup {
    tile(label, cells.within, cells.compared, what)
}

/// How far off the middle cell is.
fn typical_tile(summary: &Summary) -> Markup {
    html! {
        div.tile {
            p.label { "Typical distance from the published figure" }
            p.big {
                @if let Some(factor) = summary.typical_factor { (number::ratio(factor)) }
                @else { "–" }
            }
            p.what { "half of the compared cells are closer, as a factor up or down" }
        }
    }
}

/// A big figure: so many of so many, with a bar.
fn tile(label: &str, part: usize, whole: usize, what: &str) -> Markup {
    let percent = (part * 100).checked_div(whole).unwrap_or(0);
    let class = if part == whole { "tile all" } else { "tile" };
    html! {
        div class=(class) {
            p.label { (label) }
            @if whole == 0 {
                p.big { "–" }
            } @else {
                p.big { (part) span.of { " of " (whole) } }
                div.share aria-hidden="true" { div style=(format!("width:{percent}%")) {} }
            }
            p.what { (what) }
        }
    }
}

/// What does not hold and what is out of bounds, the furthest first.
fn off(report: &Report, summary: &Summary, anchors: &[String]) -> Markup {
    let failed: Vec<(&Section, &String, &crate::Verdict)> = report
        .sections
        .iter()
        .zip(anchors)
        .flat_map(|(section, anchor)| {
            section
                .verdicts
                .iter()
                .map(move |verdict| (section, anchor, verdict))
        })
        .filter(|(_, _, verdict)| !verdict.holds)
        .collect();
    let (shown, folded) = summary.worst.split_at(summary.worst.len().min(WORST_SHOWN));
    html! {
        @if summary.claims().1 + summary.compared() == 0 {
            p.fine { "No claim was checked, and no row has a published figure to be compared with." }
        } @else if failed.is_empty() && shown.is_empty() {
            p.fine { (mark(true, "good")) " Every claim that was checked holds, and every published cell is within bounds." }
        } @else {
            h3 { "Deviations" }
            ul.off {
                @for (section, anchor, verdict) in failed {
                    li {
                        (mark(false, "fails")) " " (verdict.statement) " "
                        span.numbers { (verdict.numbers) } " "
                        a href=(format!("#{anchor}")) { (section.title) }
                    }
                }
                @for cell in shown { (off_cell(report, cell, anchors)) }
            }
            @if !folded.is_empty() {
                details {
                    summary { (folded.len()) " more cells out of bounds" }
                    ul.off { @for cell in folded { (off_cell(report, cell, anchors)) } }
                }
            }
        }
    }
}

fn off_cell(report: &Report, cell: &WorstCell, anchors: &[String]) -> Markup {
    let section = report
        .sections
        .iter()
        .position(|section| section.id == cell.section);
    let row = &cell.row;
    let ours = number::ours(row.value, &row.unit);
    let published = row
        .published
        .map(|value| number::published(value, &row.unit))
        .unwrap_or_default();
    html! {
        li {
            (mark(false, "out of bounds")) " " (row.place()) ": "
            strong { (ours) " " (row.unit) } ", published " (published)
            @if let Some(ratio) = row.ratio() { " (" (number::ratio(ratio)) ")" }
            @if row.calibration { ", calibrated" }
            " "
            @if let Some(index) = section {
                a href=(format!("#{}", anchors[index])) { (report.sections[index].title) }
            }
        }
    }
}

fn by_experiment(summary: &Summary, anchors: &[String]) -> Markup {
    html! {
        h3 { "By experiment" }
        div.scroll tabindex="0" role="region" aria-label="By experiment" {
            table.overview {
                caption.unseen { "Claims and cells by experiment" }
                thead {
                    tr {
                        th scope="col" { "Experiment" }
                        th scope="col" { "Paper" }
                        th.number scope="col" { "Claims" }
                        th.number scope="col" { "Predicted" }
                        th.number scope="col" { "Calibrated" }
                    }
                }
                tbody {
                    @for (section, anchor) in summary.sections.iter().zip(anchors) {
                        (experiment(section, anchor))
                    }
                }
            }
        }
    }
}

fn experiment(section: &SectionSummary, anchor: &str) -> Markup {
    html! {
        tr {
            th scope="row" { a href=(format!("#{anchor}")) { (section.title) } }
            td { @if section.paper.is_empty() { "ours" } @else { (section.paper) } }
            td.number { (share(section.held, section.held + section.failed)) }
            td.number { (share(section.prediction.within, section.prediction.compared)) }
            td.number { (share(section.calibration.within, section.calibration.compared)) }
        }
    }
}

fn share(part: usize, whole: usize) -> Markup {
    html! {
        @if whole == 0 {
            span.none { "–" }
        } @else {
            (part) " of " (whole) " "
            (mark(part == whole, if part == whole { "all" } else { "not all" }))
        }
    }
}
