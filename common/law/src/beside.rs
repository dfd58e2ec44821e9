//! What is compared where a law is played in the lab and in a guest of the same kernel, and by how
//! much the two may differ.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::law::{Law, Limit};
use crate::verdict::{Figures, Repetition};

/// A figure over the repetitions; in JSON a list of three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f64; 3]", into = "[f64; 3]")]
pub struct Spread {
    /// The median.
    pub value: f64,
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
}

impl From<[f64; 3]> for Spread {
    fn from([value, low, high]: [f64; 3]) -> Spread {
        Spread { value, low, high }
    }
}

impl From<Spread> for [f64; 3] {
    fn from(Spread { value, low, high }: Spread) -> [f64; 3] {
        [value, low, high]
    }
}

warmq_units::named! {
    /// What a figure is a figure of, by its name in tables.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Kind {
        /// Parts of a CPU's time, in %.
        Share = "shares",
        /// Waits and lengths, in us.
        Time = "times",
        /// What happens so and so often a second.
        Rate = "rates",
        /// Moves to another CPU a second.
        Moves = "migrations",
    }
}

/// Times below this, in us, are alike, and so are rates of moves of which there was at most one a
/// second.
const SHORT_US: f64 = 20.0;
const RARE: f64 = 1.0;

impl Kind {
    /// That of a figure, by its name.
    pub fn of(figure: &str) -> Kind {
        match figure {
            name if name.ends_with("_migrations_per_second") => Kind::Moves,
            name if name.ends_with("_per_second") => Kind::Rate,
            name if name.contains("_share") => Kind::Share,
            _ => Kind::Time,
        }
    }

    /// The unit of such figures.
    pub fn unit(self) -> &'static str {
        match self {
            Kind::Share => "%",
            Kind::Time => "us",
            Kind::Rate | Kind::Moves => "1/s",
        }
    }

    /// Whether two figures are within the bounds of a prediction: shares that differ by 3 points,
    /// times by a factor of 2, rates of 1.25, moves of 1.5.
    pub fn agrees(self, one: f64, other: f64) -> bool {
        let within = |times: f64, least: f64| {
            let (less, more) = (one.min(other), one.max(other));
            more <= least || more <= times * less
        };
        match self {
            Kind::Share => (one - other).abs() <= 3.0,
            Kind::Time => within(2.0, SHORT_US),
            Kind::Rate => within(1.25, 0.0),
            Kind::Moves => within(1.5, RARE),
        }
    }
}

/// The figures of `law` that are compared: those that it judges; what each table of tasks gets,
/// how long it waits and, between several CPUs, how often it moves; how often CPUs switch; and how
/// much work a scenario without bounds does.
pub fn compared(law: &Law, repetitions: &[Repetition]) -> BTreeMap<String, Spread> {
    let played = repetitions.iter().filter_map(Repetition::figures);
    let played: Vec<&Figures> = played.collect();
    let names = played.iter().flat_map(|figures| figures.keys());
    let names = names.filter(|name| is_judged(law, name) || is_general(law, name));
    let spread = |name: &String| {
        let values = played.iter().filter_map(|figures| figures.get(name));
        (name.clone(), spread(values.copied().collect()))
    };
    names.map(spread).collect()
}

fn is_judged(law: &Law, figure: &str) -> bool {
    law.bounds.iter().any(|bound| {
        let beside = match &bound.limit {
            Limit::Of { figure, .. } => Some(figure.as_str()),
            Limit::Number(_) => None,
        };
        bound.figure == figure || beside == Some(figure)
    })
}

/// Of the whole measurement, not of a phase, and of a table of tasks. Between several CPUs alone
/// tasks move.
fn is_general(law: &Law, figure: &str) -> bool {
    const ENDINGS: [&str; 5] = ["share", "share_least", "share_most", "wait_p50", "wait_p99"];
    let of_task = |task: &String| {
        let rest = figure.strip_prefix(task.as_str());
        rest.and_then(|rest| rest.strip_prefix('_'))
    };
    let tasks = law.scenario.names().tasks;
    let mut endings = tasks.iter().filter_map(of_task);
    endings.any(|ending| match ending {
        "migrations_per_second" => law.cpus > 1,
        ending => ENDINGS.contains(&ending),
    }) || figure == "switches_per_second"
        || figure == "work_per_second" && law.bounds.is_empty()
}

/// The median of `values`, of which there is at least one, and how far they reach.
pub(crate) fn spread(values: Vec<f64>) -> Spread {
    let (low, high) = crate::verdict::range(&values);
    Spread {
        value: crate::verdict::median(values),
        low,
        high,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agrees_by_table() {
        use Kind::{Moves, Rate, Share, Time};
        let table = [
            (Share, 50.0, 52.9, true),
            (Share, 50.0, 53.1, false),
            (Share, 0.1, 0.0, true),
            (Time, 100.0, 199.0, true),
            (Time, 100.0, 201.0, false),
            (Time, 1.0, 19.0, true),
            (Rate, 1000.0, 1249.0, true),
            (Rate, 1000.0, 1251.0, false),
            (Rate, 0.0, 0.0, true),
            (Rate, 0.0, 1.0, false),
            (Moves, 10.0, 14.9, true),
            (Moves, 10.0, 15.1, false),
            (Moves, 0.0, 1.0, true),
        ];
        for (kind, one, other, agrees) in table {
            assert_eq!(kind.agrees(one, other), agrees, "{kind:?} {one} {other}");
            assert_eq!(kind.agrees(other, one), agrees, "{kind:?} {other} {one}");
        }
    }

    #[test]
    fn judged_and_general_figures_are_compared_and_no_others() {
        let law = "title = \"a test\"\n[law]\nfamily = \"latency\"\nbecause = \"a test\"\n\
            [[law.bound]]\nfigure = \"hog_delay_max\"\nat_most = \"50 % of hog_wait_max\"\n\
            [task.hog]\nbody = [{ run = \"1ms\" }]\n";
        let law = Law::read("test", "test.toml", law).unwrap();
        let figures = [
            ("hog_share", Kind::Share, true),
            ("hog_delay_max", Kind::Time, true),
            ("hog_wait_max", Kind::Time, true),
            ("hog_wait_p50", Kind::Time, true),
            ("hog_migrations_per_second", Kind::Moves, true),
            ("switches_per_second", Kind::Rate, true),
            ("hog_wait_p999", Kind::Time, false),
            ("wait_p50", Kind::Time, false),
            ("others_share", Kind::Share, false),
            ("cpu_idle_share", Kind::Share, false),
            ("calm.hog_share", Kind::Share, false),
        ];
        let outcome = |more: f64| {
            let numbered = figures.iter().map(|(name, ..)| ((*name).to_owned(), more));
            Ok(numbered.collect())
        };
        let repetition = |more| Repetition {
            seed: 1,
            outcome: outcome(more),
            taken_us: 0.0,
        };
        let compared = compared(&law, &[repetition(1.0), repetition(3.0), repetition(2.0)]);
        for (name, kind, wanted) in figures {
            let found = compared.get(name).copied();
            let spread = Spread {
                value: 2.0,
                low: 1.0,
                high: 3.0,
            };
            assert_eq!(found, wanted.then_some(spread), "{name}");
            assert_eq!(Kind::of(name), kind, "{name}");
        }
    }
}
