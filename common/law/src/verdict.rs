//! What was measured against what a law says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warmq_metrics::{MISSING, MOST_TAKEN, TAKEN};
use warmq_trace::OF_SCHEDULER;
use warmq_units::Release;

use crate::beside::{Spread, compared};
use crate::law::{Bound, Law, Limit, Side};

/// The figures of one repetition, by name.
pub type Figures = BTreeMap<String, f64>;

/// One repetition of a law's scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Repetition {
    /// Its seed.
    pub seed: u64,
    /// What was measured; none where it ended in another way than it should.
    pub outcome: Result<Figures, Fault>,
    /// For how long the machine had to wait for its own CPUs, in us: by so much its times may be
    /// too long. 0 where its clock does not run meanwhile.
    pub taken_us: f64,
}

impl Repetition {
    /// What was measured, if anything was.
    pub(crate) fn figures(&self) -> Option<&Figures> {
        self.outcome.as_ref().ok()
    }
}

/// Why there are no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The scheduler is at fault: it broke a rule, lost a task, or was thrown out.
    OfTheScheduler(String),
    /// The world could not play it.
    OfTheWorld(String),
}

warmq_units::named! {
    /// A verdict on a law, by its name in tables and JSON.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Verdict {
        /// Every bound was kept in every repetition.
        Holds = "holds",
        /// A bound was broken in at least half of the repetitions.
        Broken = "broken",
        /// Neither: repetitions disagree, or what was too long may have been the host's fault.
        Inconclusive = "inconclusive",
        /// It was not played.
        Skipped = "skipped",
        /// It was played, and has no bounds: it is compared alone.
        Compared = "compared",
    }
}

impl Verdict {
    /// Whether there is nothing to explain.
    pub fn is_well(self) -> bool {
        matches!(self, Verdict::Holds | Verdict::Compared)
    }
}

/// A verdict with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// What else is to be said: why it was skipped, what ended a repetition.
    pub why: String,
    /// The result of each bound, in the order of the law.
    pub bounds: Vec<Finding>,
    /// What is compared with the same law elsewhere.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub compared: BTreeMap<String, Spread>,
}

/// The result of a bound. A number that nothing gave is NaN, in JSON null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The bound's figure.
    pub figure: String,
    /// Its unit.
    pub unit: String,
    /// The side on which it may not lie.
    pub side: Side,
    /// The median of the limit.
    #[serde(with = "or_null")]
    pub limit: f64,
    /// The median of what was measured.
    #[serde(with = "or_null")]
    pub value: f64,
    /// The least of what was measured.
    #[serde(with = "or_null")]
    pub low: f64,
    /// The most.
    #[serde(with = "or_null")]
    pub high: f64,
    /// The verdict on this bound alone.
    pub verdict: Verdict,
}

/// A number, or null for what is none.
mod or_null {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(number: &f64, to: S) -> Result<S::Ok, S::Error> {
        let known = Some(*number).filter(|number| number.is_finite());
        known.serialize(to)
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<f64, D::Error> {
        let known = Option::deserialize(from)?;
        Ok(known.unwrap_or(f64::NAN))
    }
}

/// Judges `law` by repetitions of its scenario, of which there is at least one.
pub fn judge(law: &Law, repetitions: &[Repetition]) -> Judged {
    judge_kernel(law, repetitions, None)
}

/// The same; `kernel` is the release whose own scheduler was played, none if it was another one.
pub fn judge_kernel(law: &Law, repetitions: &[Repetition], kernel: Option<Release>) -> Judged {
    let faults = repetitions
        .iter()
        .filter_map(|repetition| repetition.outcome.as_ref().err());
    let faults: Vec<&Fault> = faults.collect();
    let bounds = law.bounds.iter();
    let bounds: Vec<Finding> = bounds
        .map(|bound| finding(bound, bound.limit_in(kernel), repetitions))
        .collect();
    let of_scheduler = |fault: &&&Fault| matches!(fault, Fault::OfTheScheduler(_));
    let guilty = faults.iter().filter(of_scheduler).count();
    let verdicts = bounds.iter().map(|bound| bound.verdict);
    let worst = if 2 * guilty >= repetitions.len() && guilty > 0 {
        Verdict::Broken
    } else if !faults.is_empty() {
        let broken = verdicts.clone().any(|verdict| verdict == Verdict::Broken);
        if broken {
            Verdict::Broken
        } else {
            Verdict::Inconclusive
        }
    } else if law.bounds.is_empty() {
        Verdict::Compared
    } else {
        worst_of(verdicts)
    };
    let why = faults.iter().map(|fault| match fault {
        Fault::OfTheScheduler(why) | Fault::OfTheWorld(why) => why.clone(),
    });
    let why = why.chain(missing(repetitions)).chain(unfit(repetitions));
    Judged {
        verdict: worst,
        bounds,
        why: why.collect::<Vec<_>>().join("; "),
        compared: compared(law, repetitions),
    }
}

/// That a repetition's recording lost events, if one did: nobody knows who waited then.
fn missing(repetitions: &[Repetition]) -> Option<String> {
    let figures = repetitions.iter().filter_map(Repetition::figures);
    let most = figures
        .filter_map(|figures| figures.get(MISSING).copied())
        .reduce(f64::max)?;
    Some(format!(
        "for {most:.1} % of the time the recording lost events of a CPU, and who waited then is not known"
    ))
}

/// Whether others had so much of the CPUs that a broken bound may be their fault.
fn is_unfit(figures: &Figures) -> bool {
    figures.get(TAKEN).is_some_and(|taken| *taken >= MOST_TAKEN)
}

/// That a repetition is not fit to judge by, if one is not.
fn unfit(repetitions: &[Repetition]) -> Option<String> {
    let figures = repetitions.iter().filter_map(Repetition::figures);
    let unfit = figures.filter(|figures| is_unfit(figures));
    let taken = unfit.map(|figures| figures[TAKEN]);
    let most = taken.reduce(f64::max)?;
    Some(format!(
        "not fit to judge by: others had {most:.0} % of the CPUs' time, so that what is broken is inconclusive"
    ))
}

/// A verdict on a law that was not played.
pub fn skipped(why: impl Into<String>) -> Judged {
    Judged {
        verdict: Verdict::Skipped,
        bounds: Vec::new(),
        why: why.into(),
        compared: BTreeMap::new(),
    }
}

fn worst_of(verdicts: impl Iterator<Item = Verdict> + Clone) -> Verdict {
    let has = |wanted| verdicts.clone().any(|verdict| verdict == wanted);
    if has(Verdict::Broken) {
        Verdict::Broken
    } else if has(Verdict::Inconclusive) {
        Verdict::Inconclusive
    } else {
        Verdict::Holds
    }
}

/// How one repetition stands to a bound.
enum Stands {
    Kept,
    Broken,
    /// Beyond the limit, but by no more than what was taken from the machine, or on a machine so
    /// busy that it says nothing.
    Excused,
}

fn finding(bound: &Bound, at: &Limit, repetitions: &[Repetition]) -> Finding {
    let mut values = Vec::new();
    let mut limits = Vec::new();
    let mut stands = Vec::new();
    for repetition in repetitions {
        let Ok(figures) = &repetition.outcome else {
            continue;
        };
        let value = figures.get(&bound.figure).copied();
        let limit = limit(at, figures);
        let stand = stand(bound, value, limit, repetition.taken_us);
        stands.push(match stand {
            Stands::Broken if is_unfit(figures) => Stands::Excused,
            stand => stand,
        });
        values.extend(value);
        limits.extend(limit);
    }
    let count = |wanted: fn(&Stands) -> bool| stands.iter().filter(|stands| wanted(stands)).count();
    let broken = count(|stands| matches!(stands, Stands::Broken));
    let kept = count(|stands| matches!(stands, Stands::Kept));
    let verdict = if broken > 0 && 2 * broken >= stands.len() {
        Verdict::Broken
    } else if kept == stands.len() && kept > 0 {
        Verdict::Holds
    } else {
        Verdict::Inconclusive
    };
    let (low, high) = range(&values);
    Finding {
        figure: bound.figure.clone(),
        unit: bound.unit.to_owned(),
        side: bound.side,
        limit: median(limits),
        value: median(values),
        low,
        high,
        verdict,
    }
}

/// A figure that nothing gave (the wait of a task that was never woken) breaks every bound: what
/// the law speaks of did not happen.
fn stand(bound: &Bound, value: Option<f64>, limit: Option<f64>, taken_us: f64) -> Stands {
    let (Some(value), Some(limit)) = (value, limit) else {
        // A scheduler that does not count this cannot be judged by it.
        return match bound.figure.starts_with(OF_SCHEDULER) {
            true => Stands::Excused,
            false => Stands::Broken,
        };
    };
    let excess = match bound.side {
        Side::AtLeast => limit - value,
        Side::AtMost => value - limit,
    };
    match excess {
        excess if excess <= 0.0 => Stands::Kept,
        excess if bound.is_time() && excess <= taken_us => Stands::Excused,
        _ => Stands::Broken,
    }
}

fn limit(limit: &Limit, figures: &Figures) -> Option<f64> {
    match limit {
        Limit::Number(number) => Some(*number),
        Limit::Of { part, figure } => figures.get(figure).map(|value| part * value),
    }
}

pub(crate) fn range(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::NAN, f64::min);
    let most = values.iter().copied().fold(f64::NAN, f64::max);
    (least, most)
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_busy_machine_a_broken_bound_is_inconclusive() {
        let figures = |taken| {
            let figures = [
                ("hog_share_least", 1.0),
                ("hog_share_most", 9.0),
                (TAKEN, taken),
            ];
            saw(&figures, 0.0)
        };
        let judged = |taken| judge(&shares(), &[figures(taken)]);
        assert_eq!(judged(MOST_TAKEN - 1.0).verdict, Verdict::Broken);
        let busy = judged(88.0);
        assert_eq!(busy.verdict, Verdict::Inconclusive);
        assert!(busy.why.contains("88 % of the CPUs"), "{}", busy.why);
    }

    fn law(bounds: &str) -> Law {
        let text = format!(
            "title = \"a test\"\n[law]\nfamily = \"shares\"\nbecause = \"a test\"\n{bounds}\n\
             [task.hog]\ncount = 2\nbody = [{{ run = \"1ms\" }}]\n"
        );
        Law::read("test", "test.toml", &text).unwrap_or_else(|problems| panic!("{problems}"))
    }

    fn shares() -> Law {
        law("[[law.bound]]\nfigure = \"hog_share_least\"\nat_least = \"80 % of hog_share_most\"")
    }

    fn waits() -> Law {
        law("[[law.bound]]\nfigure = \"hog_delay_max\"\nat_most = \"8ms\"")
    }

    fn saw(figures: &[(&str, f64)], taken_us: f64) -> Repetition {
        let figures = figures
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        Repetition {
            seed: 1,
            outcome: Ok(figures.collect()),
            taken_us,
        }
    }

    fn failed(fault: Fault) -> Repetition {
        Repetition {
            seed: 1,
            outcome: Err(fault),
            taken_us: 0.0,
        }
    }

    fn least(least: f64) -> Repetition {
        saw(&[("hog_share_least", least), ("hog_share_most", 50.0)], 1e9)
    }

    fn delay(ms: f64, taken_ms: f64) -> Repetition {
        saw(&[("hog_delay_max", 1e3 * ms)], 1e3 * taken_ms)
    }

    #[test]
    fn verdicts_by_table() {
        use Verdict::{Broken, Holds, Inconclusive};
        let scheduler = || failed(Fault::OfTheScheduler("it lost a task".to_owned()));
        let world = || failed(Fault::OfTheWorld("no KVM".to_owned()));
        let table: Vec<(Law, Vec<Repetition>, Verdict)> = vec![
            (shares(), vec![least(40.0)], Holds),
            (shares(), vec![least(39.0)], Broken),
            // Most of three.
            (
                shares(),
                vec![least(45.0), least(39.0), least(30.0)],
                Broken,
            ),
            (
                shares(),
                vec![least(45.0), least(41.0), least(30.0)],
                Inconclusive,
            ),
            (shares(), vec![least(45.0), least(30.0)], Broken),
            // What the law speaks of did not happen.
            (waits(), vec![saw(&[], 0.0)], Broken),
            (waits(), vec![delay(8.0, 0.0)], Holds),
            (waits(), vec![delay(9.0, 0.9)], Broken),
            // The host had the CPUs for longer than the excess: never green, and not red.
            (waits(), vec![delay(9.0, 1.0)], Inconclusive),
            (
                waits(),
                vec![delay(9.0, 1.0), delay(2.0, 0.0), delay(3.0, 0.0)],
                Inconclusive,
            ),
            (waits(), vec![delay(7.0, 50.0)], Holds),
            (shares(), vec![scheduler()], Broken),
            (
                shares(),
                vec![least(45.0), least(45.0), scheduler()],
                Inconclusive,
            ),
            (shares(), vec![world()], Inconclusive),
            (
                shares(),
                vec![least(45.0), least(45.0), world()],
                Inconclusive,
            ),
            (shares(), vec![least(5.0), least(6.0), world()], Broken),
        ];
        for (number, (law, repetitions, verdict)) in table.into_iter().enumerate() {
            let judged = judge(&law, &repetitions);
            assert_eq!(judged.verdict, verdict, "row {number}: {judged:?}");
        }
    }

    #[test]
    fn a_scenario_is_compared_by_its_work_too_and_judged_by_nothing() {
        let scenario = shares().scenario;
        let compared = Law::compared("some", &scenario, 2);
        let played = saw(&[("work_per_second", 7.0)], 0.0);
        let judged = judge(&compared, std::slice::from_ref(&played));
        assert_eq!(judged.verdict, Verdict::Compared);
        assert_eq!(judged.compared["work_per_second"].value, 7.0);
        assert!(
            !judge(&shares(), &[played])
                .compared
                .contains_key("work_per_second")
        );
        let lost = failed(Fault::OfTheWorld("why".to_owned()));
        assert_eq!(judge(&compared, &[lost]).verdict, Verdict::Inconclusive);
    }

    #[test]
    fn a_law_that_holds_says_what_was_not_recorded() {
        let judged = |missing: &[(&str, f64)]| {
            let figures = [&[("hog_share_least", 45.0)], missing].concat();
            judge(&shares(), &[least(50.0), saw(&figures, 0.0)])
        };
        assert_eq!(judged(&[]).why, "");
        let gaps = judged(&[(MISSING, 12.34)]);
        assert_eq!(gaps.verdict, judged(&[]).verdict);
        assert!(
            gaps.why.starts_with("for 12.3 % of the time"),
            "{}",
            gaps.why
        );
    }

    #[test]
    fn a_kernel_is_judged_by_the_limit_of_its_release() {
        let since = law(
            "[[law.bound]]\nfigure = \"hog_share_least\"\nat_least = 60\n\
             since = { \"7.3\" = 40 }",
        );
        let under = |kernel: &str| {
            let judged = judge_kernel(&since, &[least(45.0)], Release::within(kernel));
            (judged.verdict, judged.bounds[0].limit)
        };
        assert_eq!(under("7.2"), (Verdict::Broken, 60.0));
        assert_eq!(under("7.3"), (Verdict::Holds, 40.0));
        assert_eq!(under("bpfland"), (Verdict::Broken, 60.0));
    }

    #[test]
    fn a_finding_has_the_median_and_its_limit() {
        let judged = judge(&shares(), &[least(45.0), least(30.0), least(35.0)]);
        let finding = &judged.bounds[0];
        assert_eq!((finding.value, finding.limit), (35.0, 40.0));
        assert_eq!((finding.low, finding.high), (30.0, 45.0));
        let none = judge(&shares(), &[failed(Fault::OfTheWorld("why".to_owned()))]);
        assert!(none.bounds[0].value.is_nan());
        assert_eq!(none.why, "why");
    }
}
