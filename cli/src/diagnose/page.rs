//! A diagnosis as a page that needs no network: verdicts with a picture of who ran meanwhile, and
//! tables of what they rest on.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use warmq_diagnose::{Diagnosis, Verdict};

use super::text::{NOTHING, facts, instead, time};
use super::{Found, Picture};
use crate::laws::page::{POLICY, STYLE, chart};

/// The page of what was `found` in `file`; pictures belong to the first verdicts.
pub fn page(found: &Found, pictures: &[Picture], file: &str) -> String {
    let diagnosis = &found.diagnosis;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { "Diagnosis of " (file) }
                style { (PreEscaped(STYLE)) "td.words { white-space: normal; min-width: 20rem; }" }
            }
            body {
                h1 { "Who waited, who ran instead, and why" }
                p class="lead" { (facts(found)) ". Made by " code { "warmq diagnose " (file) } "." }
                @if diagnosis.verdicts.is_empty() { section { h2 { (NOTHING) } } }
                @for (place, verdict) in diagnosis.verdicts.iter().enumerate() {
                    (section(verdict, pictures.get(place)))
                }
                (waiting(diagnosis))
                (woken(diagnosis))
                (bouncing(diagnosis))
                @for note in &diagnosis.notes { p class="because" { (note) } }
            }
        }
    };
    page.into_string()
}

fn section(verdict: &Verdict, picture: Option<&Picture>) -> Markup {
    html! {
        section {
            h2 { (verdict.kind.title()) " " code { (verdict.kind.name()) } }
            p { (verdict.says) }
            p class="because" { (verdict.because) }
            ul { @for cure in &verdict.cures { li { (cure) } } }
            @if verdict.tasks.len() > 1 {
                details { summary { "all " (verdict.tasks.len()) } p { (verdict.tasks.join(", ")) } }
            }
            @if let Some(Picture { evidence, lags }) = picture {
                p {
                    "The longest wait: " (time(evidence.to.since(evidence.from).as_ns()))
                    " from " (time(evidence.from.0 / 1_000)) " on."
                }
                (chart(evidence))
                @if let Some(lags) = lags { (lags.picture(&evidence.task)) }
            }
        }
    }
}

fn waiting(diagnosis: &Diagnosis) -> Markup {
    let all = &diagnosis.told.waiting;
    html! {
        @if !all.is_empty() {
            h2 { "Who was runnable and did not run" }
            div class="scroll" { table {
                thead { tr {
                    th { "task" } th { "group" } th { "ran" } th { "waited" } th { "longest" }
                    th { "due, about" } th { "idle beside: may use" } th { "may not" }
                    th { "who ran instead, and why it could" }
                } }
                tbody { @for it in all { tr {
                    th { (it.task) } td { (it.group) } td { (time(it.ran_ns)) }
                    td { (time(it.waited_ns)) } td { (time(it.longest_ns)) } td { (time(it.due_ns)) }
                    td { (time(it.idle_allowed_ns)) } td { (time(it.idle_excluded_ns)) }
                    td class="words" { (instead(it, it.instead.len())) }
                } } }
            } }
        }
    }
}

fn woken(diagnosis: &Diagnosis) -> Markup {
    let all = &diagnosis.told.woken;
    html! {
        @if !all.is_empty() {
            h2 { "Who is woken, and by whom" }
            div class="scroll" { table {
                thead { tr { th { "task" } th { "woken/s" } th { "took a CPU at once/s" } th { "by" } } }
                tbody { @for it in all { tr {
                    th { (it.task) } td { (it.per_second) } td { (it.took_per_second) }
                    td class="words" {
                        @for (place, by) in it.by.iter().enumerate() {
                            @if place > 0 { "; " } (by.waker) " " (by.per_second) "/s"
                        }
                    }
                } } }
            } }
        }
    }
}

fn bouncing(diagnosis: &Diagnosis) -> Markup {
    let all = &diagnosis.told.bouncing;
    html! {
        @if !all.is_empty() {
            h2 { "Who moves between caches" }
            div class="scroll" { table {
                thead { tr { th { "task" } th { "moves between caches/s" } th { "between CPUs/s" } } }
                tbody { @for it in all { tr {
                    th { (it.task) } td { (it.llc_moves_per_second) } td { (it.cpu_moves_per_second) }
                } } }
            } }
        }
    }
}
