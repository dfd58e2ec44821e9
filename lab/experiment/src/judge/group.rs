//! Tests of several points at once: a trend along a key, and an order of places.

use super::{Checked, Group, Subject, View, digits, grouped};
use crate::experiment::{Direction, Experiment};
use crate::point::Point;
use warmq_config::Value;

/// One item for each group of points that differ only in the key `along`, from one end to the
/// other; only groups in which both ends are swept.
pub(super) fn along<'p>(
    points: impl Iterator<Item = &'p Point>,
    along: &str,
    (from, to): (Option<&Value>, Option<&Value>),
    experiment: &Experiment,
) -> Vec<Group> {
    let Some(axis) = experiment.parts.axis(along) else {
        return Vec::new();
    };
    let rank = |value: &Value| axis.values.iter().position(|other| other == value);
    let mut groups = Vec::new();
    for (common, points) in grouped(points, &[along]) {
        let swept = |end: &Value| points.iter().any(|point| point.0.get(along) == Some(end));
        if ![from, to].into_iter().flatten().all(swept) {
            continue;
        }
        let mut ranked: Vec<(Option<usize>, Point)> = points
            .into_iter()
            .map(|point| (point.0.get(along).and_then(rank), point))
            .collect();
        ranked.sort();
        let first = from.map_or(Some(0), rank);
        let last = to.map_or(Some(usize::MAX), rank);
        ranked.retain(|(rank, _)| *rank >= first && *rank <= last);
        if ranked.len() >= 2 {
            groups.push((common, ranked.into_iter().map(|(_, point)| point).collect()));
        }
    }
    groups
}

/// A thinned run checks a trend on the points that it has, if both ends are among them.
pub(super) fn trend(
    along: &str,
    direction: Direction,
    slack: f64,
    subject: &Subject,
    view: &View,
) -> Option<Checked> {
    view.value(subject.metric, subject.points.first()?)?;
    view.value(subject.metric, subject.points.last()?)?;
    let mut values = Vec::new();
    let mut steps = Vec::new();
    for point in &subject.points {
        if let Some(value) = view.value(subject.metric, point) {
            let place = point.0.get(along).map(Value::to_string).unwrap_or_default();
            steps.push(format!("{} at {place}", digits(value)));
            values.push(value);
        }
    }
    let numbers = format!("{}{}", view.lead(subject), steps.join(" - "));
    Some(Checked {
        passes: goes(&values, direction, slack),
        numbers,
    })
}

pub(super) fn wanted_trend(along: &str, direction: Direction) -> String {
    let word = match direction {
        Direction::Rises => "rising",
        Direction::Falls => "falling",
        Direction::Flat => "flat",
    };
    format!("{word} along {along}")
}

/// Whether `values`, at least two, go in `direction`. Rising or falling values may go the wrong way
/// by `slack` percent in a single step, but not over all steps together.
fn goes(values: &[f64], direction: Direction, slack: f64) -> bool {
    let (first, last) = (values[0], values[values.len() - 1]);
    let allowed = |a: f64, b: f64| a.abs().max(b.abs()) * slack / 100.0;
    let mut steps = values.windows(2).map(|step| (step[0], step[1]));
    match direction {
        Direction::Rises => last > first && steps.all(|(a, b)| b >= a - allowed(a, b)),
        Direction::Falls => last < first && steps.all(|(a, b)| b <= a + allowed(a, b)),
        Direction::Flat => {
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            values.iter().all(|value| value.is_finite()) && most - least <= allowed(most, least)
        }
    }
}

/// One item for each group of points that differ only in the keys of `places`; only groups in which
/// every place is swept.
pub(super) fn places<'p>(points: impl Iterator<Item = &'p Point>, places: &[Point]) -> Vec<Group> {
    let keys: Vec<&str> = places
        .iter()
        .flat_map(|place| place.0.keys())
        .map(String::as_str)
        .collect();
    let mut groups = Vec::new();
    for (common, points) in grouped(points, &keys) {
        let at = |place: &Point| points.iter().find(|point| point.is_at(place)).cloned();
        if let Some(points) = places.iter().map(at).collect::<Option<Vec<Point>>>() {
            groups.push((common, points));
        }
    }
    groups
}

pub(super) fn order(factor: f64, subject: &Subject, view: &View) -> Option<Checked> {
    let mut values = Vec::new();
    let mut names = Vec::new();
    for point in &subject.points {
        let value = view.value(subject.metric, point)?;
        let place = point.without(subject.common.0.keys().map(String::as_str));
        names.push(format!(
            "{} ({})",
            digits(value),
            view.experiment.name_of(&place)
        ));
        values.push(value);
    }
    let passes = values.windows(2).all(|pair| pair[0] > pair[1] * factor);
    Some(Checked {
        passes,
        numbers: format!("{}{}", view.lead(subject), names.join(" > ")),
    })
}

pub(super) fn wanted_order(factor: f64) -> String {
    match factor {
        1.0 => "in this order".to_owned(),
        factor => format!("in this order, by a factor of {}", digits(factor)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trend_goes_one_way_but_for_its_slack() {
        use Direction::{Falls, Flat, Rises};
        let table: [(&[f64], Direction, f64, bool); 14] = [
            (&[1.0, 2.0, 3.0], Rises, 0.0, true),
            (&[1.0, 2.0, 2.0], Rises, 0.0, true),
            (&[1.0, 1.0], Rises, 0.0, false),
            (&[1.0, 3.0, 2.0], Rises, 0.0, false),
            (&[1.0, 3.0, 2.9], Rises, 5.0, true),
            (&[3.0, 2.0, 1.0], Falls, 0.0, true),
            (&[3.0, 2.0, 2.1], Falls, 0.0, false),
            (&[3.0, 2.0, 2.1], Falls, 5.0, true),
            (&[-1.0, -2.0], Falls, 0.0, true),
            (&[100.0, 99.0, 101.0], Flat, 2.0, true),
            (&[100.0, 99.0, 101.0], Flat, 1.0, false),
            (&[0.0, 0.0], Flat, 0.0, true),
            (&[1.0, f64::NAN, 3.0], Rises, 0.0, false),
            (&[1.0, f64::NAN, 1.0], Flat, 0.0, false),
        ];
        for (values, direction, slack, holds) in table {
            assert_eq!(
                goes(values, direction, slack),
                holds,
                "{values:?} {direction:?} {slack}"
            );
        }
    }
}
