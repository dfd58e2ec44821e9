//! A judgement as a table.

use std::cmp::Ordering;

use comfy_table::{Cell as Text, Color};
use itertools::join;
use warmq_experiment::judgement::{
    Compared, Comparison, Contest, FORMULA, Family, Judgement, Ratio, Setup,
};
use warmq_law::Column;
use warmq_units::printable;

use crate::listing;

/// So many losses of a scheduler are named below the table.
const MOST_LOSSES: usize = 3;
/// So many scenarios of which a scheduler lacks figures are named below the table.
const MOST_ABSENT: usize = 5;

/// The table, what regressed, and what the numbers mean.
pub fn all(contest: &Contest, judgements: &[Judgement<'_>], each: bool) -> String {
    let notes = judgements.iter().skip(1).map(|judged| {
        let said = said(judged).into_iter();
        join(said.map(|line| listing::paragraph(&line)), "\n")
    });
    let mut parts = vec![table(judgements)];
    if each {
        parts.push(figures(&judgements[1..]));
    }
    parts.extend(notes);
    parts.push(listing::paragraph(&legend(contest)));
    parts.join("\n\n")
}

fn table(judgements: &[Judgement<'_>]) -> String {
    let rows = judgements.iter().enumerate().map(|(place, judged)| {
        let (word, color, _) = verdict(place, judged);
        let mut row = vec![listing::name(name(judged.column))];
        row.extend(cells(judged).into_iter().map(Text::new));
        row.push(Text::new(word).fg(color));
        row
    });
    listing::headed(head(), rows)
}

/// The columns of schedulers: name, numbers, and a word.
pub(super) fn head() -> impl Iterator<Item = &'static str> {
    let first = ["scheduler", "laws kept", "broken", "regressed"].into_iter();
    first.chain(Family::WORDS).chain(["score", "verdict"])
}

/// The numbers of a scheduler below these.
pub(super) fn cells(judged: &Judgement<'_>) -> Vec<String> {
    let [holds, broken, ..] = judged.laws.counts;
    let counts = [holds, broken, judged.laws.regressed.len()].map(|count| count.to_string());
    let families = Family::ALL.iter().map(|family| {
        let found = judged.families.iter().find(|(known, _)| known == family);
        found.map_or("–".to_owned(), |(_, ratio)| brief(*ratio))
    });
    let score = format!("{:.2}", judged.score);
    counts.into_iter().chain(families).chain([score]).collect()
}

/// The word of a scheduler, its color, and its class on a page. The first is the base.
pub(super) fn verdict(place: usize, judged: &Judgement<'_>) -> (&'static str, Color, &'static str) {
    match (place, judged.is_regression()) {
        (0, _) => ("base", Color::Grey, "skipped"),
        (_, true) => ("regression", Color::Red, "broken"),
        (_, false) => ("no regression", Color::Green, "holds"),
    }
}

/// `1.12 ±0.04`: how far the farthest seed is from the mean.
fn brief(ratio: Ratio) -> String {
    let spread = (ratio.mid - ratio.low).max(ratio.high - ratio.mid);
    format!("{:.2} ±{spread:.2}", ratio.mid)
}

/// `1.12 (1.08..1.15)`; without the spread where there is none.
pub fn shown(ratio: Ratio) -> String {
    let [mid, low, high] = [ratio.mid, ratio.low, ratio.high].map(|one| format!("{one:.2}"));
    match low == high {
        true => mid,
        false => format!("{mid} ({low}..{high})"),
    }
}

/// What is to be said of a scheduler: what regressed, and its largest losses.
pub(super) fn said(judged: &Judgement<'_>) -> Vec<String> {
    let who = name(judged.column);
    let mut lines = Vec::new();
    if !judged.laws.regressed.is_empty() {
        let laws = judged.laws.regressed.join(", ");
        lines.push(format!("✗ {who} breaks what the base keeps: {laws}"));
    }
    if !judged.laws.gained.is_empty() {
        let laws = judged.laws.gained.join(", ");
        lines.push(format!("✓ {who} keeps what the base breaks: {laws}"));
    }
    lines.extend(absent(judged).map(|text| format!("✗ {who} has no {text}")));
    lines.push(counts(judged, &who));
    lines
}

/// In how many figures it is better, worse and neither, and its largest losses.
fn counts(judged: &Judgement<'_>, who: &str) -> String {
    let count = |word| {
        let all = judged.figures.iter();
        all.filter(|one| one.comparison.name() == word).count()
    };
    let words = ["better", "worse", "same", "inconclusive"].map(|word| (word, count(word)));
    let words = words.iter().filter(|(_, count)| *count > 0);
    let words = join(
        words.map(|(word, count)| format!("{word} in {count}")),
        ", ",
    );
    let losses = losses(judged).into_iter().take(MOST_LOSSES);
    let losses = losses.filter_map(|figure| {
        let ratio = figure.ratio?;
        Some(format!("{} {}", place(figure), shown(ratio)))
    });
    let worst = match join(losses, ", ").as_str() {
        "" => String::new(),
        losses => format!("; worst: {losses}"),
    };
    let all = judged.figures.len();
    format!("- {who}, of {all} figures: {words}{worst}")
}

/// What is absent, a sentence for each setup, and why.
fn absent<'j>(judged: &'j Judgement<'_>) -> impl Iterator<Item = String> + 'j {
    let mut setups: Vec<(&Setup, Vec<&str>, &str)> = Vec::new();
    for figure in judged.absent() {
        let why = figure.why.as_deref();
        let why = why.unwrap_or("nothing of it ended in the time that is measured");
        match setups.last_mut() {
            Some((setup, names, _)) if *setup == figure.setup => names.push(&figure.figure.name),
            _ => setups.push((figure.setup, vec![&figure.figure.name], why)),
        }
    }
    let more = setups.len().saturating_sub(MOST_ABSENT);
    let more = (more > 0).then(|| format!("figures of {more} more scenarios on machines"));
    let each = setups.into_iter().take(MOST_ABSENT);
    let each = each.map(|(setup, names, why)| {
        let setup = printable(&setup.to_string()).to_string();
        format!("{} of {setup}: {why}", names.join(", "))
    });
    each.chain(more)
}

/// The scheduler as tables call it: the lab is what is usual.
pub fn name(column: &Column) -> String {
    let name = column.to_string();
    let short = name.strip_prefix("lab ").unwrap_or(&name);
    printable(short).to_string()
}

/// `key_p99 of desktop on 2cpus`.
pub fn place(figure: &Compared<'_>) -> String {
    format!(
        "{} of {}",
        figure.figure.name,
        printable(&figure.setup.to_string())
    )
}

/// What is worse, the largest loss first.
pub fn losses<'j, 'c>(judged: &'j Judgement<'c>) -> Vec<&'j Compared<'c>> {
    let all = judged.figures.iter();
    let worse = all.filter(|one| one.comparison == Comparison::Worse);
    let mut worse: Vec<_> = worse.collect();
    let mid = |figure: &Compared<'_>| figure.ratio.map_or(0.0, |ratio| ratio.mid);
    worse.sort_by(|one, other| mid(one).partial_cmp(&mid(other)).unwrap_or(Ordering::Equal));
    worse
}

/// Each figure a row, a column for each scheduler.
fn figures(judgements: &[Judgement<'_>]) -> String {
    let head = ["scenario", "machine", "figure"].map(str::to_owned);
    let names = judgements.iter().map(|judged| name(judged.column));
    let rows = 0..judgements.first().map_or(0, |judged| judged.figures.len());
    let rows = rows.map(|row| {
        let first = &judgements[0].figures[row];
        let head = [
            printable(&first.setup.scenario.name).to_string(),
            printable(&first.setup.machine.name).to_string(),
            first.figure.name.clone(),
        ];
        let each = judgements.iter().map(|judged| {
            let Compared {
                comparison, ratio, ..
            } = judged.figures[row];
            let text = ratio.map_or(comparison.name().to_owned(), shown);
            let doubt = match comparison {
                Comparison::Inconclusive => " ?",
                _ => "",
            };
            let text = format!("{text}{doubt}");
            let color = match comparison {
                Comparison::Better => Color::Green,
                found if found.is_loss() => Color::Red,
                _ => Color::Reset,
            };
            Text::new(text).fg(color)
        });
        head.map(Text::new)
            .into_iter()
            .chain(each)
            .collect::<Vec<_>>()
    });
    listing::headed(head.into_iter().chain(names), rows)
}

pub(super) fn legend(contest: &Contest) -> String {
    let of_chance = match contest.seeds.len() {
        1 => " One seed says nothing of chance: margins alone decide.",
        _ => "",
    };
    format!(
        "Set {}, seeds {}, pairs of scenario and machine: {}, {}. Ratios are to {}, and above 1 is better whatever the \
         figure; ± is the farthest seed, in parentheses are the least and the most; `?` is inconclusive. Score: \
         {FORMULA}.{of_chance}",
        contest.set.version,
        join(&contest.seeds, ", "),
        contest.setups.len(),
        contest.columns[0].world.name(),
        name(&contest.columns[0]),
    )
}
