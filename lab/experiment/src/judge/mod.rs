//! Claims against figures. A claim is about items (points, or groups of points along a key); each
//! item passes or not, and the claim holds when enough of them pass.

mod group;
mod point;

use std::collections::BTreeMap;

use crate::experiment::{Claim, Experiment, Test};
use crate::figures::Figures;
use crate::point::Point;

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Enough of its items passed.
    Holds,
    /// Too few did.
    Fails,
    /// None of its points was run: a quick run leaves some out.
    NotChecked,
}

/// A claim, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The statement in words.
    pub says: String,
    /// Who says so, and where.
    pub source: String,
    /// What became of it.
    pub finding: Finding,
    /// What was compared with what.
    pub numbers: String,
}

/// An item of a claim that was checked.
pub(crate) struct Checked {
    /// Whether it passes the test.
    pub(crate) passes: bool,
    /// What was compared with what.
    pub(crate) numbers: String,
}

/// Where an item's values come from.
pub(crate) struct View<'a> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) figures: &'a Figures,
}

/// An item: a measure, and the points that it takes.
pub(crate) struct Subject<'a> {
    pub(crate) metric: &'a str,
    /// At a point: that point. Along a key: all of the group, in the order of the key.
    pub(crate) points: Vec<Point>,
    /// What all points of the item have in common.
    pub(crate) common: Point,
}

/// How many items are shown in full.
const SHOWN: usize = 6;

/// Whether a full run of the experiment gives the claim anything to be checked on.
pub(crate) fn has_items(claim: &Claim, experiment: &Experiment) -> bool {
    !subjects(claim, experiment).is_empty()
}

/// Checks a claim.
pub(crate) fn judge(claim: &Claim, view: &View) -> Judged {
    let subjects = subjects(claim, view.experiment);
    let checked: Vec<Checked> = subjects
        .iter()
        .filter_map(|subject| check(&claim.test, subject, view))
        .map(|it| Checked {
            passes: it.passes != claim.negated,
            ..it
        })
        .collect();
    let passed = checked.iter().filter(|item| item.passes).count();
    let enough = passed as f64 * 100.0 >= claim.share * checked.len() as f64;
    let finding = match (checked.is_empty(), enough) {
        (true, _) => Finding::NotChecked,
        (false, true) => Finding::Holds,
        (false, false) => Finding::Fails,
    };
    let numbers = numbers(&checked, passed, subjects.len());
    Judged {
        says: claim.says.clone(),
        source: claim.source.clone(),
        finding,
        numbers,
    }
}

fn check(test: &Test, subject: &Subject, view: &View) -> Option<Checked> {
    match test {
        Test::Bounds { least, most } => point::bounds(*least, *most, subject, view),
        Test::Near { to, within } => point::near(*to, *within, subject, view),
        Test::Trend {
            along,
            direction,
            slack,
            ..
        } => group::trend(along, *direction, *slack, subject, view),
        Test::Order { factor, .. } => group::order(*factor, subject, view),
    }
}

/// The items of a claim in a full run.
fn subjects<'a>(claim: &'a Claim, experiment: &Experiment) -> Vec<Subject<'a>> {
    let mut subjects = Vec::new();
    for metric in &claim.metrics {
        let Some(measure) = experiment.measure(metric) else {
            continue;
        };
        let matching = measure
            .domain
            .iter()
            .filter(|point| claim.at.matches(point));
        match &claim.test {
            Test::Trend {
                along, from, to, ..
            } => {
                let ends = (from.as_ref(), to.as_ref());
                subjects.extend(group::along(metric, matching, along, ends, experiment));
            }
            Test::Order { places, .. } => subjects.extend(group::places(metric, matching, places)),
            Test::Near { to: None, .. } => {
                let is_published = |point: &&Point| point::published(metric, point, experiment);
                subjects.extend(
                    matching
                        .filter(|it| is_published(it).is_some())
                        .map(|it| single(metric, it)),
                );
            }
            Test::Bounds { .. } | Test::Near { .. } => {
                subjects.extend(matching.map(|point| single(metric, point)));
            }
        }
    }
    subjects
}

fn single<'a>(metric: &'a str, point: &Point) -> Subject<'a> {
    Subject {
        metric,
        points: vec![point.clone()],
        common: point.clone(),
    }
}

/// Points by what they have in common when `keys` are left out, in order of first appearance.
pub(crate) fn grouped<'p>(
    points: impl Iterator<Item = &'p Point>,
    keys: &[&str],
) -> Vec<(Point, Vec<Point>)> {
    let mut order: Vec<Point> = Vec::new();
    let mut groups: BTreeMap<Point, Vec<Point>> = BTreeMap::new();
    for point in points {
        let common = point.without(keys.iter().copied());
        if !groups.contains_key(&common) {
            order.push(common.clone());
        }
        groups.entry(common).or_default().push(point.clone());
    }
    order
        .into_iter()
        .filter_map(|common| groups.remove_entry(&common))
        .collect()
}

/// The failing items first, then how many passed.
fn numbers(checked: &[Checked], passed: usize, of: usize) -> String {
    if checked.is_empty() {
        return "its points are not in the quick run".to_owned();
    }
    let failing = checked.iter().filter(|item| !item.passes);
    let passing = checked.iter().filter(|item| item.passes);
    let lines: Vec<&str> = failing
        .chain(passing)
        .take(SHOWN)
        .map(|item| item.numbers.as_str())
        .collect();
    let mut numbers = lines.join("; ");
    if checked.len() > 1 {
        numbers = format!("{passed} of {} pass: {numbers}", checked.len());
    }
    if checked.len() > SHOWN {
        numbers.push_str("; ...");
    }
    if checked.len() < of {
        numbers.push_str(&format!(" ({} of {of} checked)", checked.len()));
    }
    numbers
}

impl View<'_> {
    /// The median of a measure at a point, if it was run.
    pub(crate) fn value(&self, metric: &str, point: &Point) -> Option<f64> {
        self.figures.at(metric, point).map(|spread| spread.value)
    }

    /// A value with its unit, to four digits.
    pub(crate) fn shown(&self, metric: &str, value: f64) -> String {
        let unit = self
            .experiment
            .measure(metric)
            .map_or("", |measure| measure.unit.as_str());
        match unit {
            "" => digits(value),
            unit => format!("{} {unit}", digits(value)),
        }
    }

    /// What to say before a value: the measure if the claim is about several, and the point.
    pub(crate) fn lead(&self, subject: &Subject) -> String {
        match self.experiment.name_of(&subject.common).as_str() {
            "" => format!("{}: ", subject.metric),
            point => format!("{} at {point}: ", subject.metric),
        }
    }
}

/// Four digits that count, as a person writes them.
pub(crate) fn digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let whole = value.abs().log10().floor() as i32 + 1;
    let decimals = (4 - whole).clamp(0, 6) as usize;
    let printed = format!("{value:.decimals$}");
    match printed.contains('.') {
        true => printed
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned(),
        false => printed,
    }
}
