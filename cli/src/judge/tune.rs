//! `--tune`: which settings of a scheduler are best under which scenarios.
//!
//! Every combination of the values is a scheduler of its own. They are judged in rounds (successive
//! halving): the first with one seed and no laws, each next with one seed more, and the better half
//! goes on, with whichever is best in a scenario, until few are left; those are judged as anybody
//! is. What breaks a law is in the table and is not recommended.

mod page;

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use itertools::join;
use warmq_experiment::Runs;
use warmq_experiment::judgement::{Contest, Family, Judgement, Ratio};
use warmq_law::Column;
use warmq_units::{Duration, printable};

use super::Ring;
use super::text::{name, place, shown};
use crate::failure::Failure;
use crate::{listing, output};

/// So many candidates are judged whole.
const LAST: usize = 4;
/// Values of a range.
const STEPS: u32 = 5;
/// More combinations take hours.
const MOST: usize = 256;
/// What the mark in the table means.
const FRONT: &str = "* no other one is better in throughput, latency and fairness";
/// In place of a recommendation.
const NOTHING: &str = "Nothing is recommended: each breaks a law that the base keeps, or fails.";

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

/// As it is read: with all values.
impl fmt::Display for Tuned {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", self.key, self.values.join("|"))
    }
}

/// Whole numbers, alone or with units: `500..8000`, `1..16ms`, `250us..1ms`.
fn between(least: &str, most: &str) -> Option<Vec<String>> {
    let split = |text: &str| -> Option<(u64, String)> {
        let digits = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let number = text[..text.len() - digits.len()].parse().ok()?;
        Some((number, digits.to_owned()))
    };
    let ((least, unit), (count, last_unit)) = (split(least)?, split(most)?);
    let (unit, most) = match (unit.as_str(), last_unit.as_str()) {
        (first, last) if first == last || first.is_empty() => (last_unit, count),
        (first, _) => {
            let one: Duration = format!("1{first}").parse().ok()?;
            let most: Duration = most.parse().ok()?;
            (unit, most.0 / one.0.max(1))
        }
    };
    if least == 0 || least >= most {
        return None;
    }
    let step = (most as f64 / least as f64).powf(1.0 / f64::from(STEPS - 1));
    let values = (0..STEPS).map(|place| (least as f64 * step.powf(f64::from(place))).round());
    let mut values: Vec<u64> = values.map(|value| value as u64).collect();
    values.dedup();
    Some(
        values
            .iter()
            .map(|value| format!("{value}{unit}"))
            .collect(),
    )
}

/// The scheduler of `wanted` with each combination of the values of `tuned`.
///
/// # Errors
/// Several schedulers; a setting that is named twice; too many combinations.
pub fn combinations(schedulers: &[String], tuned: &[Tuned]) -> Result<Vec<String>, Failure> {
    let [scheduler] = schedulers else {
        let what = "--tune is about one scheduler";
        return Err(Failure::usage(what, "name one"));
    };
    let (name, set) = scheduler.split_once(':').unwrap_or((scheduler, ""));
    let set = set.split(';').filter_map(|pair| pair.split_once('='));
    let keys = tuned.iter().map(|one| one.key.as_str());
    let mut keys = set.map(|(key, _)| key).chain(keys);
    let mut seen = BTreeSet::new();
    if let Some(key) = keys.find(|key| !seen.insert(*key)) {
        let what = format!("--tune: `{key}` of {name} is set twice");
        return Err(Failure::usage(
            what,
            "give all its values at once, as in KEY=VALUE|VALUE",
        ));
    }
    let counts = tuned.iter().map(|one| one.values.len());
    if counts.fold(1, usize::saturating_mul) > MOST {
        let what = format!("--tune: these are more than {MOST} combinations");
        return Err(Failure::usage(
            what,
            "try fewer settings or values at a time",
        ));
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

/// All that was tried.
pub struct Tuning<'r> {
    /// What was asked for.
    contest: &'r Contest,
    /// Each round; the last one has the laws.
    rounds: Vec<Vec<Tried>>,
}

/// A candidate in a round.
pub struct Tried {
    column: Column,
    /// Those that were tried, and the same as people write them.
    settings: Vec<(String, String)>,
    label: String,
    /// As in a [`Judgement`].
    families: Vec<(Family, Ratio)>,
    score: f64,
    /// What it breaks that the base keeps; nothing, if that is nothing.
    breaks: String,
    /// Its mean ratio in each scenario.
    scenarios: Vec<(String, f64)>,
    /// How many seeds it was played with.
    seeds: usize,
}

impl Tried {
    fn of(judged: &Judgement<'_>, tuned: &[Tuned], seeds: usize) -> Tried {
        let names = judged.figures.iter().map(|one| &one.setup.scenario.name);
        let mut names: Vec<&String> = names.collect();
        names.dedup();
        let ratio = |name: &String| (name.clone(), judged.of_scenario(name).unwrap_or(0.0));
        let absent = judged.absent().next().map(|one| match &one.why {
            Some(why) => format!("no {}: {why}", place(one)),
            None => format!("no {}", place(one)),
        });
        let breaks = judged.laws.regressed.iter().cloned().chain(absent);
        let mut settings = judged.column.settings().unwrap_or_default();
        settings.retain(|pair| tuned.iter().any(|one| one.key == pair.key));
        let text = |text: &str| printable(text).to_string();
        let settings = settings
            .iter()
            .map(|pair| (text(&pair.key), text(&pair.value)));
        let settings: Vec<(String, String)> = settings.collect();
        let label = settings.iter().map(|(key, value)| format!("{key}={value}"));
        Tried {
            column: judged.column.clone(),
            label: join(label, ";"),
            settings,
            families: judged.families.clone(),
            score: judged.score,
            breaks: join(breaks, ", "),
            scenarios: names.into_iter().map(ratio).collect(),
            seeds,
        }
    }

    fn ratio(&self, family: Family) -> Option<Ratio> {
        let found = self.families.iter().find(|(known, _)| *known == family);
        found.map(|(_, ratio)| *ratio)
    }

    /// Whether it is at least as good as `other` in throughput, latency and fairness, and better in
    /// one.
    fn beats(&self, other: &Tried) -> bool {
        let mid = |one: &Tried, family| one.ratio(family).map_or(1.0, |ratio| ratio.mid);
        let families = [Family::Throughput, Family::Latency, Family::Fairness];
        let pairs = families.map(|family| (mid(self, family), mid(other, family)));
        pairs.iter().all(|(own, other)| own >= other)
            && pairs.iter().any(|(own, other)| own > other)
    }
}

impl<'r> Tuning<'r> {
    /// Tries all schedulers of `ring`, which [`combinations`] made of `tuned`. What a run gave in a
    /// round is known in the next.
    ///
    /// # Errors
    /// As [`Ring::play`].
    pub fn of(ring: &'r Ring, tuned: &[Tuned]) -> Result<Tuning<'r>, Failure> {
        let (contest, all) = (&ring.contest, ring.contest.seeds.len());
        let (base, columns) = contest.columns.split_at(1);
        let (mut columns, mut known) = (columns.to_vec(), Runs::default());
        let (mut rounds, mut kept) = (Vec::new(), columns.len());
        loop {
            let (seeds, laws) = match kept <= LAST {
                true => (all, &ring.laws[..]),
                false => (all.min(rounds.len() + 1), &[][..]),
            };
            let part = Contest {
                columns: base.iter().chain(&columns).cloned().collect(),
                seeds: contest.seeds[..seeds].to_vec(),
                ..contest.clone()
            };
            let played = ring.played(&part, laws, known)?;
            let judged = part.judged(&played.jobs, &played.runs, &played.cells);
            let round = judged[1..].iter().map(|one| Tried::of(one, tuned, seeds));
            rounds.push(round.collect());
            if kept <= LAST {
                return Ok(Tuning { contest, rounds });
            }
            known = played.runs;
            kept = kept.div_ceil(2).max(LAST);
            let before = columns.len();
            columns = going_on(&rounds[rounds.len() - 1], kept);
            let go_on = columns.len();
            output::say(&format!(
                "warmq: {before} candidates, seeds {seeds}: {go_on} go on"
            ));
        }
    }

    /// Those that were judged whole, the best score first.
    fn whole(&self) -> Vec<&Tried> {
        by_score(self.rounds.last().map_or(&[], Vec::as_slice))
    }

    /// Those of them that break nothing.
    fn lawful(&self) -> impl Iterator<Item = &Tried> {
        self.whole().into_iter().filter(|one| one.breaks.is_empty())
    }

    /// The best of them.
    pub fn recommended(&self) -> Option<&Tried> {
        self.lawful().next()
    }

    /// Whether one that was judged whole breaks nothing and nobody beats it who breaks nothing.
    fn is_front(&self, one: &Tried) -> bool {
        one.breaks.is_empty() && !self.lawful().any(|other| other.beats(one))
    }

    /// Of each scenario the settings that are best in it among those that break nothing, with
    /// their ratio and that of what is recommended. Those are named where none is better by more
    /// than what counts as a difference.
    fn by_scenario(&self) -> Vec<(&str, &Tried, [f64; 2])> {
        let least = 1.0 / (1.0 - self.contest.set.margins.difference);
        let of_each = |recommended: &'_ Tried| recommended.scenarios.len();
        let scenarios = 0..self.recommended().map_or(0, of_each);
        let each = scenarios.filter_map(|at| {
            let (usual, of) = (self.recommended()?, |one: &Tried| one.scenarios[at].1);
            let best = self
                .lawful()
                .min_by(|one, other| descending(of(one), of(other)))?;
            let is_better = of(best) > of(usual) * least;
            let best = if is_better { best } else { usual };
            Some((usual.scenarios[at].0.as_str(), best, [of(best), of(usual)]))
        });
        each.collect()
    }

    /// The table of those that were judged whole, what is recommended, and what is best where.
    pub fn text(&self) -> String {
        let (tried, whole) = (self.rounds[0].len(), self.whole().len());
        let best = self.recommended();
        let best = best.map(|best| format!("Recommended: {}", name(&best.column)));
        let first = format!("{tried} combinations, of which {whole} were judged whole.");
        let mut parts = vec![first, self.table(), best.unwrap_or(NOTHING.to_owned())];
        let rows = self
            .by_scenario()
            .into_iter()
            .map(|(scenario, best, ratios)| {
                let [ratio, usual] = ratios.map(|ratio| format!("{ratio:.2}"));
                [
                    printable(scenario).to_string(),
                    best.label.clone(),
                    ratio,
                    usual,
                ]
            });
        let head = ["scenario", "best settings", "ratio", "recommended"];
        parts.extend((rows.len() > 0).then(|| listing::headed(head, rows)));
        parts.join("\n\n")
    }

    /// A row each; those that no other one beats are marked.
    fn table(&self) -> String {
        let head = ["", "settings"].into_iter().chain(Family::WORDS);
        let head = head.chain(["score", "breaks"]);
        let rows = self.whole().into_iter().map(|row| {
            let mark = if self.is_front(row) { "*" } else { "" };
            let ratio = |family| row.ratio(family).map_or("–".to_owned(), shown);
            let families = Family::ALL.map(ratio).into_iter();
            let first = [mark.to_owned(), row.label.clone()].into_iter();
            let last = [format!("{:.3}", row.score), row.breaks.clone()];
            first.chain(families).chain(last).collect::<Vec<String>>()
        });
        format!("{}\n{FRONT}", listing::headed(head, rows))
    }
}

fn by_score(round: &[Tried]) -> Vec<&Tried> {
    let mut all: Vec<&Tried> = round.iter().collect();
    all.sort_by(|one, other| descending(one.score, other.score));
    all
}

/// The `kept` of a round with the best scores, and whichever is best in a scenario.
fn going_on(round: &[Tried], kept: usize) -> Vec<Column> {
    let all = by_score(round);
    let scenarios = 0..all.first().map_or(0, |tried| tried.scenarios.len());
    let best = scenarios.filter_map(|at| {
        let whole = all.iter().filter(|tried| tried.breaks.is_empty());
        let of = |tried: &&&Tried| tried.scenarios[at].1;
        whole.min_by(|one, other| descending(of(one), of(other)))
    });
    let mut columns: Vec<Column> = Vec::new();
    for tried in all.iter().take(kept).chain(best) {
        if !columns.contains(&tried.column) {
            columns.push(tried.column.clone());
        }
    }
    columns
}

fn descending(one: f64, other: f64) -> Ordering {
    other.partial_cmp(&one).unwrap_or(Ordering::Equal)
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
        assert_eq!(
            values("slice=250us..1ms"),
            ["250us", "354us", "500us", "707us", "1000us"]
        );
        assert_eq!(values("slice=1..2ms"), ["1ms", "2ms"]);
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
        let combined = |name: &str, texts: &[&str]| {
            let tuned: Vec<Tuned> = texts.iter().map(|text| text.parse().unwrap()).collect();
            combinations(&[name.to_owned()], &tuned)
        };
        assert_eq!(
            combined("mine", &["a=1|2", "b=x|y"]).unwrap(),
            [
                "mine:a=1;b=x",
                "mine:a=1;b=y",
                "mine:a=2;b=x",
                "mine:a=2;b=y"
            ]
        );
        assert_eq!(combined("mine:c=1", &["a=1"]).unwrap(), ["mine:c=1;a=1"]);
        for twice in [["a=1|2", "a=3"], ["b=1", "c=2"]] {
            assert!(combined("mine:c=1", &twice).is_err(), "{twice:?}");
        }
        let many: Vec<String> = (0..40).map(|key| format!("k{key}=1..99")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(combined("mine", &many).is_err());
    }
}
