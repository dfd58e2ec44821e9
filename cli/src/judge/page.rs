//! Judgements as a page: the table, then of each scheduler every figure with its ratio as a bar.

use maud::{Markup, html};
use warmq_experiment::judgement::{Compared, Comparison, Contest, Judgement, Ratio};
use warmq_report::page_of;
use warmq_units::printable;

use super::text;

/// Bars, from the middle, where the ratio is 1, to the sides, where it is a quarter and four.
const STYLE: &str = "\
    .ratio { position: relative; min-width: 9rem; } \
    .ratio i { position: absolute; top: .45rem; bottom: .45rem; border-radius: 2px; background: var(--muted); opacity: .35; } \
    .ratio::before { content: ''; position: absolute; top: .2rem; bottom: .2rem; left: 50%; border-left: 1px solid var(--muted); } \
    .better .ratio i { background: var(--holds); opacity: .55; } \
    .worse .ratio i { background: var(--broken); opacity: .55; } \
    tr.better td.word { color: var(--holds); } tr.worse td.word, tr.absent td.word { color: var(--broken); font-weight: 600; } \
    td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }";
/// A ratio of four, or of a quarter, takes half of the bar's cell: more is cut.
const DOUBLINGS: f64 = 2.0;

/// The page; `command` makes it again, and `why` explains losses where that was asked for.
pub fn page(
    contest: &Contest,
    judgements: &[Judgement<'_>],
    why: Option<&str>,
    command: &str,
) -> String {
    let body = html! {
        h1 { "Judged against " (text::name(&contest.columns[0])) }
        p class="lead" { (text::legend(contest)) " Made by " code { (command) } "." }
        (table(judgements))
        @for judged in &judgements[1..] { (section(judged)) }
        @if let Some(why) = why {
            section { h2 { "Who waited for whom" } pre { (why) } }
        }
    };
    page_of("Judge", STYLE, &body)
}

fn table(judgements: &[Judgement<'_>]) -> Markup {
    let numbers = 1..text::head().count() - 1;
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="schedulers" { table {
            thead { tr {
                @for (place, head) in text::head().enumerate() {
                    @if numbers.contains(&place) { th class="number" { (head) } }
                    @else { th { (head) } }
                }
            } }
            tbody { @for (place, judged) in judgements.iter().enumerate() { (row(place, judged)) } }
        } }
    }
}

fn row(place: usize, judged: &Judgement<'_>) -> Markup {
    let (verdict, _, class) = text::verdict(place, judged);
    html! {
        tr {
            th scope="row" { (text::name(judged.column)) }
            @for cell in text::cells(judged) { td class="number" { (cell) } }
            td class=(class) { (verdict) }
        }
    }
}

fn section(judged: &Judgement<'_>) -> Markup {
    let name = text::name(judged.column);
    html! {
        section {
            h2 { (name) }
            @for line in text::said(judged) { p { (line) } }
            div class="scroll" tabindex="0" role="region" aria-label=(format!("figures of {name}")) { table {
                thead { tr {
                    @for head in ["scenario", "machine", "figure", "about", "verdict"] { th { (head) } }
                    @for head in ["ratio", "least", "most"] { th class="number" { (head) } }
                    th { "¼ to 4" }
                } }
                tbody { @for compared in &judged.figures { (figure(compared)) } }
            } }
        }
    }
}

fn figure(compared: &Compared<'_>) -> Markup {
    let ratio = compared.ratio;
    let class = match compared.comparison {
        Comparison::Better => "better",
        Comparison::Worse => "worse",
        Comparison::Absent => "absent",
        _ => "neither",
    };
    let numbers = |ratio: Ratio| [ratio.mid, ratio.low, ratio.high];
    html! {
        tr class=(class) title=(compared.why.as_deref().unwrap_or_default()) {
            th scope="row" { (printable(&compared.setup.scenario.name)) }
            td { (printable(&compared.setup.machine.name)) }
            td { (compared.figure.name) }
            td { (compared.figure.family.name()) }
            td class="word" { (compared.comparison.name()) }
            @match ratio.map(numbers) {
                Some(numbers) => {
                    @for number in numbers { td class="number" { (format!("{number:.2}")) } }
                }
                None => { @for _ in 0..3 { td class="number" { "–" } } }
            }
            td class="ratio" { @if let Some(ratio) = ratio { i style=(bar(ratio.mid)) {} } }
        }
    }
}

/// Where the bar of a ratio is in its cell.
fn bar(ratio: f64) -> String {
    let long = (ratio.log2() / DOUBLINGS).clamp(-1.0, 1.0) * 50.0;
    let from = 50.0 + long.min(0.0);
    format!("left:{from:.1}%;width:{:.1}%", long.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_begin_in_the_middle_and_end_at_the_sides() {
        assert_eq!(bar(1.0), "left:50.0%;width:0.0%");
        assert_eq!(bar(2.0), "left:50.0%;width:25.0%");
        assert_eq!(bar(0.5), "left:25.0%;width:25.0%");
        assert_eq!(bar(1_000.0), "left:50.0%;width:50.0%");
    }
}
