//! What was found as a page: how the addresses lie over places in a page and over sets, what each
//! level holds, and what visits take.

use maud::{Markup, html};
use warmq_conflicts::Held;
use warmq_report::page_of;
use warmq_units::printable;

use super::table::{HEAD, LEGEND, advice, frames, process, row, title, visits};
use super::{Conflict, Found};

const STYLE: &str = "\
    figure { margin: 1rem 0; } figcaption, .ends { font-size: .85rem; color: var(--soft); } \
    svg.bars { min-width: 0; height: 7rem; border-bottom: 1px solid var(--line); fill: var(--link); } \
    svg.bars line { stroke: var(--broken); stroke-width: 2; stroke-dasharray: 6 4; vector-effect: non-scaling-stroke; } \
    .ends { display: flex; justify-content: space-between; } \
    td, th { text-align: right; font-variant-numeric: tabular-nums; } figure, section { break-inside: avoid; }";

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 110.0;

/// The page; `command` makes it again.
pub fn page(found: &Found, command: &str) -> String {
    let notes = [Some(LEGEND), frames(found), Some(&found.times)];
    let body = html! {
        h1 { "Which hot addresses share the sets of caches" }
        p class="lead" {
            @if let Some(looks) = &found.process { (process(looks)) ". " }
            "Made by " code { (printable(command)) } "."
        }
        @for conflict in &found.kinds { (section(conflict)) }
        @if found.kinds.is_empty() { section { h2 { "There is no address that could conflict" } } }
        @else { @for note in notes.into_iter().flatten() { p class="because" { (note) } } }
    };
    page_of("Conflicts in caches", STYLE, &body)
}

fn section(conflict: &Conflict) -> Markup {
    let colors = conflict.colors;
    html! {
        section {
            h2 { (title(conflict)) }
            p { strong { (advice(conflict)) } }
            p class="because" { "From " (conflict.source) "." }
            (histogram("lines at each place in a page, by line, as it is", &conflict.by_offset, None))
            @if let Some(counts) = &conflict.colored_by_offset {
                (histogram(&format!("the same with {colors} colors"), counts, None))
            }
            @for held in &conflict.levels { (sets(held)) }
            div class="scroll" tabindex="0" role="region" aria-label="levels" { table {
                thead { tr { @for head in HEAD { th scope="col" { (head) } } } }
                tbody { @for held in &conflict.levels { tr {
                    @for (place, cell) in row(conflict, held).into_iter().enumerate() {
                        @if place == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                    }
                } } }
            } }
            @for line in visits(conflict) { p { (line) } }
        }
    }
}

/// How the lines lie over the sets of a level, where that is known.
fn sets(held: &Held) -> Markup {
    let level = held.level;
    if held.by_set.is_empty() {
        return html! { p class="because" { "The sets of level " (level) " are not known." } };
    }
    let mut counts = vec![0; held.sets as usize];
    for (set, count) in &held.by_set {
        counts[*set as usize] = *count;
    }
    let title = format!(
        "lines in each set of level {level}, which holds {}",
        held.ways
    );
    histogram(&title, &counts, Some(held.ways))
}

/// A bar for each of `counts`, and a dashed line at what each can hold. It is as wide as the page,
/// and words stay as large as they are.
fn histogram(title: &str, counts: &[u64], holds: Option<u64>) -> Markup {
    let fullest = counts.iter().copied().max().unwrap_or(0);
    let high = fullest.max(holds.unwrap_or(1)).max(1);
    let step = WIDTH / counts.len().max(1) as f64;
    let y = |count: u64| HEIGHT * (1.0 - count as f64 / high as f64);
    let used = counts.iter().filter(|count| **count > 0).count();
    let bars = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    // Where many bars have to share a point, each is still seen.
    let wide = (step * 0.85).max(0.8);
    let bars = bars.map(|(at, count)| {
        let (x, y) = (step * at as f64, y(*count));
        format!("M{x:.1} {HEIGHT}V{y:.1}h{wide:.2}V{HEIGHT}z")
    });
    let said = format!(
        "{title}: {used} of {} used, {fullest} at most",
        counts.len()
    );
    html! {
        figure {
            figcaption { (said) }
            svg class="bars" viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(said) {
                path d=(bars.collect::<String>()) {}
                @if let Some(holds) = holds {
                    line x1="0" x2=(WIDTH) y1=(y(holds)) y2=(y(holds)) {}
                }
            }
            div class="ends" { span { "0" } span { (counts.len().saturating_sub(1)) } }
        }
    }
}
