//! `--tune`: which settings of a scheduler are best under which scenarios.
//!
//! Every combination of the values is a scheduler of its own. They are judged in rounds (successive
//! halving): the first with one seed and no laws, each next with one seed more, and the better half
//! goes on, until few are left; those are judged as anybody is. What breaks a law is in the table
//! and is not recommended.

use std::cmp::Ordering;
use std::str::FromStr;

use comfy_table::Cell as Text;
use warmq_experiment::judgement::{Family, Judgement};

use super::text::{name, shown};
use super::{JudgeSeeds, NO_LAWS, Ring, Wanted};
use crate::failure::Failure;
use crate::seeds::Seeds;
use crate::{listing, output};

/// So many candidates are judged whole.
const LAST: usize = 4;
/// Values of a range.
const STEPS: u32 = 5;
/// More combinations take hours.
const MOST: usize = 256;

/// A setting and the values that are tried: `slice_us=500..8000`, `keep=true|false`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuned {
    key: String,
    values: Vec<String>,
}

impl FromStr for Tuned {
    type Err = String;

    /// A range has five values, each the same multiple of the one before, first and last included.
    fn from_str(text: &str) -> Result<Tuned, String> {
        let help = "write KEY=LEAST..MOST, as in slice_us=500..8000, or KEY=VALUE|VALUE";
        let (key, range) = text
            .split_once('=')
            .ok_or(format!("`{text}` is no range; {help}"))?;
        let values = match range.split_once("..") {
            Some((least, most)) => between(least, most).ok_or(format!(
                "`{range}` is no range of whole numbers above 0 that ascends; {help}"
            ))?,
            None => range.split('|').map(str::to_owned).collect(),
        };
        match key.is_empty() || values.iter().any(String::is_empty) {
            true => Err(format!("`{text}` lacks a name or a value; {help}")),
            false => Ok(Tuned {
                key: key.to_owned(),
                values,
            }),
        }
    }
}

/// Whole numbers with one unit: `500us..8000us`.
fn between(least: &str, most: &str) -> Option<Vec<String>> {
    let split = |text: &str| -> Option<(u64, String)> {
        let digits = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let number = text[..text.len() - digits.len()].parse().ok()?;
        Some((number, digits.to_owned()))
    };
    let ((least, unit), (most, last_unit)) = (split(least)?, split(most)?);
    if least == 0 || least >= most || !(unit.is_empty() || unit == last_unit) {
        return None;
    }
    let step = (most as f64 / least as f64).powf(1.0 / f64::from(STEPS - 1));
    let values = (0..STEPS).map(|place| (least as f64 * step.powf(f64::from(place))).round());
    let mut values: Vec<u64> = values.map(|value| value as u64).collect();
    values.dedup();
    Some(
        values
            .iter()
            .map(|value| format!("{value}{last_unit}"))
            .collect(),
    )
}

/// Tries all of `tuned` on the only scheduler of `wanted`; the table, and what is recommended.
///
/// # Errors
/// What cannot be played; several schedulers, or too many combinations.
pub fn run(wanted: &Wanted<'_>, tuned: &[Tuned]) -> Result<String, Failure> {
    let [scheduler] = wanted.schedulers else {
        let what = "--tune is about one scheduler";
        return Err(Failure::usage(what, "name one"));
    };
    let mut candidates = combinations(scheduler, tuned)?;
    let (mut seeds, tried) = (1, candidates.len());
    while candidates.len() > LAST {
        let kept = candidates.len().div_ceil(2).max(LAST);
        output::say(&format!(
            "warmq: {} candidates, {seeds} seeds each; the best {kept} go on",
            candidates.len()
        ));
        candidates = better(wanted, &candidates, seeds, kept)?;
        seeds += 1;
    }
    let last = Wanted {
        schedulers: &candidates,
        ..*wanted
    };
    let ring = Ring::new(&last)?;
    let played = ring.play()?;
    let judged = ring
        .contest
        .judged(&played.jobs, &played.runs, &played.cells);
    Ok(format!(
        "{tried} combinations, of which {} were judged whole.\n\n{}\n\n{}",
        judged.len() - 1,
        table(&judged[1..]),
        best(&judged[1..])
    ))
}

fn combinations(scheduler: &str, tuned: &[Tuned]) -> Result<Vec<String>, Failure> {
    let count: usize = tuned.iter().map(|one| one.values.len()).product();
    if count > MOST {
        let what = format!("--tune: these are {count} combinations");
        return Err(Failure::usage(what, format!("try at most {MOST}")));
    }
    let first = if scheduler.contains('=') { ";" } else { ":" };
    let mut all = vec![scheduler.to_owned()];
    for (place, Tuned { key, values }) in tuned.iter().enumerate() {
        let between = if place == 0 { first } else { ";" };
        let longer = all.iter().flat_map(|one| {
            let with = move |value: &String| format!("{one}{between}{key}={value}");
            values.iter().map(with)
        });
        all = longer.collect();
    }
    Ok(all)
}

/// The `kept` of the candidates with the best scores, without laws, in `seeds` seeds.
fn better(
    wanted: &Wanted<'_>,
    candidates: &[String],
    seeds: u64,
    kept: usize,
) -> Result<Vec<String>, Failure> {
    let (none, seeds) = ([NO_LAWS.to_owned()], warmq_experiment::seeds(seeds));
    let seeds = JudgeSeeds::Given(Seeds(seeds));
    let ring = Ring::new(&Wanted {
        schedulers: candidates,
        laws: &none,
        seeds: Some(&seeds),
        ..*wanted
    })?;
    let played = ring.play()?;
    let judged = ring
        .contest
        .judged(&played.jobs, &played.runs, &played.cells);
    let mut judged: Vec<&Judgement<'_>> = judged[1..].iter().collect();
    judged.sort_by(|one, other| descending(one.score, other.score));
    let best = judged.into_iter().take(kept);
    Ok(best.map(|one| one.column.scheduler.clone()).collect())
}

fn descending(one: f64, other: f64) -> Ordering {
    other.partial_cmp(&one).unwrap_or(Ordering::Equal)
}

/// A row each, the best score first; those that no other one beats in throughput, latency and
/// fairness at once are marked.
fn table(judged: &[Judgement<'_>]) -> String {
    let mut table = listing::table();
    let families = Family::ALL.iter().map(|(name, _)| *name);
    let head = ["", "settings"].into_iter().chain(families);
    table.set_header(head.chain(["score", "laws"]));
    let mut rows: Vec<&Judgement<'_>> = judged.iter().collect();
    rows.sort_by(|one, other| descending(one.score, other.score));
    for row in rows {
        let mark = if is_beaten(row, judged) { "" } else { "*" };
        let families = Family::ALL.iter().map(|(_, family)| {
            let found = row.families.iter().find(|(known, _)| known == family);
            found.map_or("–".to_owned(), |(_, ratio)| shown(*ratio))
        });
        let laws = match row.laws.regressed.len() {
            0 => "kept".to_owned(),
            count => format!("{count} regressed"),
        };
        let head = [mark.to_owned(), name(row.column)].into_iter();
        let last = [format!("{:.3}", row.score), laws];
        table.add_row(head.chain(families).chain(last).map(Text::new));
    }
    format!(
        "{}\n* no other one is better in throughput, latency and fairness",
        table.trim_fmt()
    )
}

/// Whether another one that keeps the laws is at least as good in each of the three, and better in
/// one.
fn is_beaten(row: &Judgement<'_>, all: &[Judgement<'_>]) -> bool {
    let figures = |judged: &Judgement<'_>| {
        [Family::Throughput, Family::Latency, Family::Fairness].map(|family| {
            let found = judged.families.iter().find(|(known, _)| *known == family);
            found.map_or(1.0, |(_, ratio)| ratio.mid)
        })
    };
    let own = figures(row);
    let beats = |other: &Judgement<'_>| {
        let pairs = || figures(other).into_iter().zip(own);
        pairs().all(|(other, own)| other >= own) && pairs().any(|(other, own)| other > own)
    };
    row.is_regression()
        || all
            .iter()
            .any(|other| !other.is_regression() && beats(other))
}

/// What is recommended, and which is best in each scenario.
fn best(judged: &[Judgement<'_>]) -> String {
    let lawful = || judged.iter().filter(|one| !one.is_regression());
    let Some(best) = lawful().min_by(|one, other| descending(one.score, other.score)) else {
        return "Nothing is recommended: each breaks a law that the base keeps, or fails."
            .to_owned();
    };
    let mut lines = vec![format!("Recommended: {}", name(best.column))];
    let setups = best
        .figures
        .iter()
        .map(|figure| &figure.setup.scenario.name);
    let mut scenarios: Vec<&String> = setups.collect();
    scenarios.dedup();
    for scenario in scenarios {
        let of = |judged: &Judgement<'_>| judged.of_scenario(scenario).unwrap_or(0.0);
        let best = lawful().min_by(|one, other| descending(of(one), of(other)));
        let best = best.map(|best| format!("{} ({:.2})", name(best.column), of(best)));
        lines.push(format!("  {scenario}: {}", best.unwrap_or_default()));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        text.parse::<Tuned>().unwrap().values
    }

    #[test]
    fn a_range_has_five_values_and_a_list_those_that_it_names() {
        assert_eq!(
            values("slice=500..8000"),
            ["500", "1000", "2000", "4000", "8000"]
        );
        assert_eq!(
            values("slice=1ms..16ms"),
            ["1ms", "2ms", "4ms", "8ms", "16ms"]
        );
        assert_eq!(values("n=1..3"), ["1", "2", "3"]);
        assert_eq!(values("keep=true|false"), ["true", "false"]);
        for text in [
            "slice",
            "=1..2",
            "a=",
            "a=1|",
            "a=2..1",
            "a=0..5",
            "a=x..y",
            "a=1ms..2us",
        ] {
            assert!(text.parse::<Tuned>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_combination_is_a_scheduler_with_its_settings() {
        let tuned = ["a=1|2", "b=x|y"].map(|text| text.parse().unwrap());
        let all = combinations("mine", &tuned).unwrap();
        assert_eq!(
            all,
            [
                "mine:a=1;b=x",
                "mine:a=1;b=y",
                "mine:a=2;b=x",
                "mine:a=2;b=y"
            ]
        );
        assert_eq!(
            combinations("mine:c=1", &tuned[..1]).unwrap()[0],
            "mine:c=1;a=1"
        );
        let many = ["a=1..99", "b=1..99", "c=1..99", "d=1..99"].map(|text| text.parse().unwrap());
        assert!(combinations("mine", &many).is_err());
    }
}
