//! One experiment on the page.

use maud::{Markup, html};

use crate::html::{command, figure, mark, profile, table};
use crate::pivot::pivots;
use crate::{Section, WriteError};

pub(crate) fn section(
    section: &Section,
    number: usize,
    anchor: &str,
) -> Result<Markup, WriteError> {
    let figures = section
        .plots
        .iter()
        .map(|plot| figure::figure(plot, section.plots.len() > 1));
    let figures = figures.collect::<Result<Vec<Markup>, WriteError>>()?;
    Ok(html! {
        section.experiment #(anchor) {
            header {
                p.paper { @if section.paper.is_empty() { "Not from a paper" } @else { (section.paper) } }
                h2 { span.count { (number) } " " (section.title) }
            }
            @if !section.shows.is_empty() { p.shows { (section.shows) } }
            @if !figures.is_empty() { div.plots { @for figure in &figures { (figure) } } }
            (claims(section))
            (profile::profiles(&section.profiles))
            (tables(section))
            (notes(section))
            (parameters(section))
            (again(section))
        }
    })
}

fn claims(section: &Section) -> Markup {
    html! {
        @if !section.verdicts.is_empty() {
            h3 { "Claims" }
            ul.claims {
                @for verdict in &section.verdicts {
                    li {
                        (mark(verdict.holds, if verdict.holds { "holds:" } else { "fails:" }))
                        div {
                            p { (verdict.statement) }
                            p.numbers {
                                (verdict.numbers)
                                @if !verdict.source.is_empty() { " " cite { (verdict.source) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn tables(section: &Section) -> Markup {
    let pivots = pivots(section);
    html! {
        @if !pivots.is_empty() {
            h3 { "Numbers" }
            @for pivot in &pivots { (table::pivot(section, pivot)) }
            (table::key(section))
        }
    }
}

fn notes(section: &Section) -> Markup {
    html! {
        @if !section.notes.is_empty() {
            h3 { "Notes" }
            ul.notes { @for note in &section.notes { li { (note) } } }
        }
    }
}

fn parameters(section: &Section) -> Markup {
    html! {
        @if !section.parameters.is_empty() {
            details {
                summary { "Parameters and their sources (" (section.parameters.len()) ")" }
                div.scroll tabindex="0" role="region" aria-label="Parameters" {
                    table.parameters {
                        caption.unseen { "Parameters of " (section.title) }
                        thead {
                            tr {
                                th scope="col" { "Parameter" }
                                th.number scope="col" { "Value" }
                                th scope="col" { "Unit" }
                                th scope="col" { "Source" }
                            }
                        }
                        tbody {
                            @for parameter in &section.parameters {
                                tr {
                                    th scope="row" { code { (parameter.name) } }
                                    td.number { (parameter.value) }
                                    td { (parameter.unit) }
                                    td { (parameter.source) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// How to make it again, and how to know that it is the same.
fn again(section: &Section) -> Markup {
    html! {
        div.again {
            @if !section.command.is_empty() {
                h3 { "Reproduce it" }
                (command(&section.command))
            }
            @if section.took_s > 0.0 { p.took { "Took " (took(section.took_s)) "." } }
            @if !section.digests.is_empty() {
                details {
                    summary { "Digests (" (section.digests.len()) ")" }
                    dl.digests {
                        @for digest in &section.digests {
                            div { dt { (digest.of) } dd { code { (digest.value) } } }
                        }
                    }
                }
            }
        }
    }
}

/// Real time as a person says it.
fn took(seconds: f64) -> String {
    if seconds < 100.0 {
        format!("{seconds:.1} s")
    } else {
        format!(
            "{:.0} min {:.0} s",
            (seconds / 60.0).floor(),
            seconds % 60.0
        )
    }
}
