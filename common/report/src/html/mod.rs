//! The page: one file that needs no network, for a desk, a phone and paper.
//!
//! Summary first, then an experiment a section. All words of a report are escaped; the style sheet
//! and the scripts (values under
//! the cursor, copy buttons, tables that are sorted and filtered, plots that are zoomed) are in the page, and its content
//! security policy forbids everything else.

mod figure;
mod frame;
mod profile;
mod section;
mod style;
mod summary;
mod table;
mod zoom;

use std::io::Write;

use maud::{Markup, PreEscaped, html};

pub use self::frame::page_of;
use crate::{Report, WriteError};

/// Writes `report` as one self-contained HTML page.
///
/// # Errors
/// When `out` cannot be written to or a plot cannot be drawn.
pub fn write_html(report: &Report, mut out: impl Write) -> Result<(), WriteError> {
    let page = page(report)?;
    out.write_all(page.into_string().as_bytes())?;
    Ok(())
}

fn page(report: &Report) -> Result<Markup, WriteError> {
    let anchors = anchors(report);
    let sections = report.sections.iter().zip(&anchors).enumerate();
    let sections = sections
        .map(|(index, (section, anchor))| section::section(section, index + 1, anchor))
        .collect::<Result<Vec<Markup>, WriteError>>()?;
    let more = html! {
        meta name="color-scheme" content="light dark";
        meta name="generator" content=(format!("warmq {}", report.version));
        link rel="icon" href="data:,";
    };
    let plots = report.sections.iter().flat_map(|section| &section.plots);
    let has_lines = plots.into_iter().any(zoom::is_worth_it);
    let body = html! {
        main {
            (head(report))
            // What claims nothing and is compared with nothing published needs no summary.
            @let claims = !report.own && (report.sections.is_empty() || !report.sections.iter().all(|section| section.together));
            @if claims { (summary::summary(report, &anchors)) }
            @if claims || report.own { (contents(report, &anchors, claims)) }
            @for section in &sections { (section) }
            footer { p { "Made by WarmQ " (report.version) ". Equal digests, equal runs." } }
        }
        script { (PreEscaped(include_str!("script.js"))) }
        script { (PreEscaped(frame::TABLES)) }
        @if has_lines { @for part in zoom::SCRIPT { script { (PreEscaped(part)) } } }
    };
    Ok(frame::frame(&report.title, &more, &style::sheet(), &body))
}

fn head(report: &Report) -> Markup {
    html! {
        header.top {
            h1 { (report.title) }
            @if !report.subtitle.is_empty() { p.subtitle { (report.subtitle) } }
            @if !report.facts.is_empty() {
                dl.facts {
                    @for fact in &report.facts { div { dt { (fact.name) } dd { (fact.value) } } }
                }
            }
            (command(&report.command))
        }
    }
}

fn contents(report: &Report, anchors: &[String], claims: bool) -> Markup {
    html! {
        nav.contents aria-labelledby="contents" {
            h2 #contents { "Contents" }
            ol {
                @if claims { li.first { a href="#summary" { "Summary" } } }
                @for (section, anchor) in report.sections.iter().zip(anchors) {
                    li {
                        a href=(format!("#{anchor}")) {
                            (section.title)
                            @if !section.paper.is_empty() { " " small { (section.paper) } }
                        }
                    }
                }
            }
        }
    }
}

/// A command with a button that copies it.
fn command(command: &str) -> Markup {
    html! {
        @if !command.is_empty() {
            div.command {
                code { @for word in command.split(' ') { span { (word) } " " } }
                button type="button" hidden aria-label="Copy the command" { "Copy" }
            }
        }
    }
}

/// A tick or a cross, with a word for those who cannot see it.
fn mark(good: bool, word: &str) -> Markup {
    html! {
        span class=(if good { "mark good" } else { "mark bad" }) aria-hidden="true" {
            @if good { "✓" } @else { "✗" }
        }
        span.unseen { (word) }
    }
}

/// The fragment of each section: its id in letters that a link can carry, and no two alike.
fn anchors(report: &Report) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for section in &report.sections {
        let plain = |letter: char| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '-'
            }
        };
        let wanted: String = section.id.to_lowercase().chars().map(plain).collect();
        let taken = |anchor: &String| {
            anchor.is_empty()
                || ["summary", "contents"].contains(&anchor.as_str())
                || anchors.contains(anchor)
        };
        let mut anchor = wanted.clone();
        let mut again = 1;
        while taken(&anchor) {
            again += 1;
            anchor = format!("{wanted}-{again}");
        }
        anchors.push(anchor);
    }
    anchors
}
