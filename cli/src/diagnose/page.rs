//! A diagnosis as a page that needs no network: verdicts with a picture of who ran meanwhile, and
//! tables of what they rest on.

use std::path::Path;

use maud::{Markup, html};
use warmq_diagnose::{Diagnosis, Verdict, summed};
use warmq_report::page_of;
use warmq_units::printable;

use super::text::{facts, instead, nothing, time, unfit};
use super::{Found, Picture};
use crate::colors::Colors;
use crate::contents;
use crate::laws::page::drawn;
use crate::typed;

/// Rows of a table.
const MOST: usize = 40;
/// What tables of words need beside the style of all pages: they are as wide as the page, and no
/// wider.
const WORDS: &str = "th, td { white-space: normal; overflow-wrap: anywhere; } \
                     td.figure { white-space: nowrap; } td.words { min-width: 18rem; } td.group { min-width: 6rem; } tbody th { min-width: 9rem; } \
                     thead th { overflow-wrap: normal; }";

/// The page of what was `found` in `file`; pictures belong to the first verdicts.
pub fn page(found: &Found, pictures: &[Picture], file: &Path) -> String {
    let diagnosis = &found.diagnosis;
    let colors = colors(pictures);
    let again = typed::line("diagnose", &[&file.to_string_lossy()], &[]);
    let (again, file) = (printable(&again), printable(file));
    let body = html! {
        h1 { "Who waited, who ran instead, and why" }
        p class="lead" { (facts(found)) ". Made by " code { (again) } "." }
        @if !diagnosis.unfit.is_empty() { p { strong { (unfit(diagnosis)) } } }
        @if let Some(contents) = &found.contents {
            table {
                tbody {
                    @for (key, value) in contents::rows(contents) {
                        tr { th { (key) } td class="words" { (value) } }
                    }
                }
            }
        }
        @if diagnosis.verdicts.is_empty() { section { h2 { (nothing(diagnosis)) } } }
        @for (place, verdict) in diagnosis.verdicts.iter().enumerate() {
            (section(verdict, pictures.get(place), &colors))
        }
        (waiting(diagnosis))
        (woken(diagnosis))
        (bouncing(diagnosis))
        @for note in &diagnosis.notes { p class="because" { (note) } }
    };
    page_of(&format!("Diagnosis of {file}"), WORDS, &body)
}

/// Whoever is in a picture, and each group, has one color on the page.
fn colors(pictures: &[Picture]) -> Colors {
    let mut colors = Colors::default();
    let lags = pictures.iter().filter_map(|picture| picture.lags.as_ref());
    lags.for_each(|lags| lags.give(&mut colors));
    pictures
        .iter()
        .for_each(|picture| colors.take(&picture.evidence.chart));
    colors
}

fn section(verdict: &Verdict, picture: Option<&Picture>, colors: &Colors) -> Markup {
    html! {
        section {
            h2 { (verdict.kind.title()) " " code { (verdict.kind.name()) } }
            p { (verdict.says) }
            p class="because" { (verdict.because) }
            ul { @for cure in &verdict.cures { li { (cure.to_string()) } } }
            p class="because" { "True of: " (verdict.kernels) "." }
            @if verdict.tasks.len() > 1 {
                p { "All of them: " (summed(&verdict.tasks).join(", ")) "." }
            }
            @if let Some(Picture { evidence, lags }) = picture {
                p {
                    "The longest wait: " (time(evidence.to.since(evidence.from).as_ns()))
                    " from " (time(evidence.from.0 / 1_000)) " on."
                }
                (drawn(evidence, colors))
                @if let Some(lags) = lags { (lags.picture(&evidence.task, colors)) }
            }
        }
    }
}

fn waiting(diagnosis: &Diagnosis) -> Markup {
    let head = [
        "task",
        "who ran instead, and why it could",
        "group",
        "ran",
        "waited",
        "longest",
        "due, about",
        "idle beside: may use",
        "may not",
    ];
    listed(
        "Who was runnable and did not run",
        &head,
        &diagnosis.activity.waiting,
        |task| {
            let times = [task.ran_ns, task.waited_ns, task.longest_ns, task.due_ns];
            let idle = [task.idle_allowed_ns, task.idle_excluded_ns];
            html! {
                th { (task.about.shown()) } td class="words" { (instead(task, task.instead.len())) }
                td class="group" { (task.about.group) }
                @for ns in times.into_iter().chain(idle) { td class="figure" { (time(ns)) } }
            }
        },
    )
}

fn woken(diagnosis: &Diagnosis) -> Markup {
    let head = ["task", "woken/s", "took a CPU at once/s", "by"];
    listed(
        "Who is woken, and by whom",
        &head,
        &diagnosis.activity.woken,
        |task| {
            html! {
                th { (task.about.shown()) } td { (task.per_second) } td { (task.took_per_second) }
                td class="words" {
                    @for (place, by) in task.by.iter().enumerate() {
                        @if place > 0 { "; " } (by.waker) " " (by.per_second) "/s"
                    }
                }
            }
        },
    )
}

fn bouncing(diagnosis: &Diagnosis) -> Markup {
    let head = ["task", "moves between caches/s", "between CPUs/s"];
    listed(
        "Who moves between caches",
        &head,
        &diagnosis.activity.bouncing,
        |task| {
            html! {
                th { (task.about.shown()) } td { (task.llc_moves_per_second) } td { (task.cpu_moves_per_second) }
            }
        },
    )
}

/// A table of the first of `all`, if there are any, and how many there are beyond these.
fn listed<T>(title: &str, head: &[&str], all: &[T], row: impl Fn(&T) -> Markup) -> Markup {
    html! {
        @if !all.is_empty() {
            h2 { (title) }
            div class="scroll" { table {
                thead { tr { @for name in head { th { (name) } } } }
                tbody { @for task in all.iter().take(MOST) { tr { (row(task)) } } }
            } }
            @if all.len() > MOST { p class="because" { (all.len() - MOST) " more are in diagnosis.json." } }
        }
    }
}
