//! Checks claims against figures. A claim is about items (points, or groups of points along a key);
//! it holds if enough of them pass its test.

mod group;
mod point;

use std::collections::BTreeMap;

use itertools::join;

use crate::experiment::{Claim, Experiment, Test};
use crate::figures::Figures;
use crate::point::Point;

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Enough of its items passed.
    Holds,
    /// Too few of its items passed.
    Fails,
    /// None of its points was run: a quick run leaves some out.
    NotChecked,
}

/// A claim and its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The statement in words.
    pub says: String,
    /// Its source: who says so, and where.
    pub source: String,
    /// The verdict.
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

/// An item: a measure and its points.
pub(crate) struct Subject<'a> {
    pub(crate) metric: &'a str,
    /// At a point: that point. Along a key: all of the group, in the order of the key.
    pub(crate) points: Vec<Point>,
    /// What all points of the item have in common.
    pub(crate) common: Point,
    /// Whether the claim is about this one measure only.
    pub(crate) alone: bool,
}

/// What the points of an item have in common, and the points.
pub(crate) type Group = (Point, Vec<Point>);

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
        .filter_map(|subject| check(claim, subject, view))
        .collect();
    let passed = checked.iter().filter(|item| item.passes).count();
    let enough = passed as f64 * 100.0 >= claim.share * checked.len() as f64;
    let finding = match (checked.is_empty(), enough) {
        (true, _) => Finding::NotChecked,
        (false, true) => Finding::Holds,
        (false, false) => Finding::Fails,
    };
    let numbers = numbers(claim, &checked, subjects.len());
    Judged {
        says: claim.says.clone(),
        source: claim.source.clone(),
        finding,
        numbers,
    }
}

/// An item that could not be measured passes no test, and its negation neither.
fn check(claim: &Claim, subject: &Subject, view: &View) -> Option<Checked> {
    let item = match &claim.test {
        Test::Bounds { least, most } => point::bounds(*least, *most, subject, view),
        Test::Near { to, within } => point::near(*to, *within, subject, view),
        Test::Trend {
            along,
            direction,
            slack,
            ..
        } => group::trend(along, *direction, *slack, subject, view),
        Test::Order { factor, .. } => group::order(*factor, subject, view),
    }?;
    let mut values = subject
        .points
        .iter()
        .filter_map(|point| view.value(subject.metric, point));
    let measured = values.all(|value| !value.is_nan());
    Some(Checked {
        passes: measured && item.passes != claim.negated,
        ..item
    })
}

/// The items of a claim in a full run.
fn subjects<'a>(claim: &'a Claim, experiment: &Experiment) -> Vec<Subject<'a>> {
    let mut subjects = Vec::new();
    let alone = claim.metrics.len() == 1;
    for metric in &claim.metrics {
        let Some(measure) = experiment.measure(metric) else {
            continue;
        };
        let domain = measure.domain.iter();
        let matching = domain.filter(|point| claim.at.matches(point));
        let found: Vec<Group> = match &claim.test {
            Test::Trend {
                along, from, to, ..
            } => group::along(matching, along, (from.as_ref(), to.as_ref()), experiment),
            Test::Order { places, .. } => group::places(matching, places),
            Test::Near { to: None, .. } => {
                let is_published =
                    |point: &&Point| experiment.published_at(metric, point).is_some();
                matching.filter(is_published).map(single).collect()
            }
            Test::Bounds { .. } | Test::Near { .. } => matching.map(single).collect(),
        };
        let subject = |(common, points)| Subject {
            metric,
            points,
            common,
            alone,
        };
        subjects.extend(found.into_iter().map(subject));
    }
    subjects
}

fn single(point: &Point) -> Group {
    (point.clone(), vec![point.clone()])
}

/// Points by what they have in common when `keys` are left out, in order of first appearance.
pub(crate) fn grouped<'p>(points: impl Iterator<Item = &'p Point>, keys: &[&str]) -> Vec<Group> {
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

/// The test in words, how many items passed, and the items, failing ones first.
fn numbers(claim: &Claim, checked: &[Checked], of: usize) -> String {
    if checked.is_empty() {
        return "its points were not run".to_owned();
    }
    let (passing, failing): (Vec<&Checked>, Vec<&Checked>) =
        checked.iter().partition(|item| item.passes);
    let mut parts = vec![wanted(claim)];
    if of > 1 {
        parts.push(format!("{} of {} pass", passing.len(), checked.len()));
    }
    if checked.len() < of {
        parts.push(format!("{} not run", of - checked.len()));
    }
    let room = SHOWN.saturating_sub(failing.len()).max(2);
    parts.extend(listed("failing", &failing, SHOWN));
    parts.extend(listed("passing", &passing, room));
    parts.join("; ")
}

fn listed(word: &str, items: &[&Checked], room: usize) -> Option<String> {
    let shown = items.iter().take(room).map(|item| &item.numbers);
    let more = if items.len() > room {
        " \u{b7} ..."
    } else {
        ""
    };
    (!items.is_empty()).then(|| format!("{word}: {}{more}", join(shown, " \u{b7} ")))
}

/// The test in words.
fn wanted(claim: &Claim) -> String {
    let test = match &claim.test {
        Test::Bounds { least, most } => point::wanted_bounds(*least, *most),
        Test::Near { to, within } => point::wanted_near(*to, *within),
        Test::Trend {
            along, direction, ..
        } => group::wanted_trend(along, *direction),
        Test::Order { factor, .. } => group::wanted_order(*factor),
    };
    let not = if claim.negated { "not " } else { "" };
    format!("{} {not}{test}", claim.metrics.join(", "))
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

    /// The label of a value: the measure, if the claim is about several, and the point.
    pub(crate) fn lead(&self, subject: &Subject) -> String {
        let point = self.experiment.name_of(&subject.common);
        let measure = if subject.alone { "" } else { subject.metric };
        match (measure, point.as_str()) {
            ("", "") => String::new(),
            ("", words) | (words, "") => format!("{words}: "),
            (measure, point) => format!("{measure} at {point}: "),
        }
    }
}

/// Rounds to four significant digits, and formats as people write numbers.
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
