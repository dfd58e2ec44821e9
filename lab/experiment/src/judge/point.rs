//! Tests of one point: bounds, and nearness to a figure.

use super::{Checked, Subject, View, digits};
use crate::experiment::Within;

pub(super) fn bounds(
    least: Option<f64>,
    most: Option<f64>,
    subject: &Subject,
    view: &View,
) -> Option<Checked> {
    let value = view.value(subject.metric, subject.points.first()?)?;
    let passes = least.is_none_or(|least| value >= least)
        && most.is_none_or(|most| value <= most)
        && !value.is_nan();
    let shown = view.shown(subject.metric, value);
    Some(Checked {
        passes,
        numbers: format!("{}{shown}", view.lead(subject)),
    })
}

pub(super) fn wanted_bounds(least: Option<f64>, most: Option<f64>) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!("from {} to {}", digits(least), digits(most)),
        (Some(least), None) => format!("at least {}", digits(least)),
        (None, Some(most)) => format!("at most {}", digits(most)),
        (None, None) => String::new(),
    }
}

pub(super) fn wanted_near(to: Option<f64>, within: Within) -> String {
    let to = to.map_or("the published figure".to_owned(), digits);
    match within {
        Within::Factor(factor) => format!("within a factor of {} of {to}", digits(factor)),
        Within::Percent(percent) => format!("within {} % of {to}", digits(percent)),
        Within::Points(points) => format!("within {} of {to}", digits(points)),
    }
}

pub(super) fn near(
    to: Option<f64>,
    within: Within,
    subject: &Subject,
    view: &View,
) -> Option<Checked> {
    let point = subject.points.first()?;
    let value = view.value(subject.metric, point)?;
    let published = view.experiment.published_at(subject.metric, point);
    let figure = to.or(published.map(|published| published.value))?;
    let mut numbers = format!(
        "{}{}",
        view.lead(subject),
        view.shown(subject.metric, value)
    );
    if to.is_none() {
        numbers.push_str(&format!(" (published {})", digits(figure)));
    }
    Some(Checked {
        passes: is_near(value, figure, within),
        numbers,
    })
}

/// Whether `value` is within the limit (included, up to rounding). NaN is near nothing.
fn is_near(value: f64, to: f64, within: Within) -> bool {
    const ROUNDING: f64 = 1.0 + 1e-9;
    match within {
        Within::Factor(factor) => {
            let (value, to) = if to < 0.0 { (-value, -to) } else { (value, to) };
            value <= to * factor * ROUNDING && to <= value * factor * ROUNDING
        }
        Within::Percent(percent) => (value - to).abs() * 100.0 <= to.abs() * percent * ROUNDING,
        Within::Points(points) => (value - to).abs() <= points * ROUNDING,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_is_up_to_and_including_the_limit() {
        let table = [
            (15.0, 10.0, Within::Factor(1.5), true),
            (15.1, 10.0, Within::Factor(1.5), false),
            (6.6, 10.0, Within::Factor(1.5), false),
            (-15.0, -10.0, Within::Factor(1.5), true),
            (-3.0, 3.0, Within::Factor(1.5), false),
            (0.0, 3.0, Within::Factor(1.5), false),
            (0.0, 0.0, Within::Factor(1.5), true),
            (11.0, 10.0, Within::Percent(10.0), true),
            (8.9, 10.0, Within::Percent(10.0), false),
            (-11.0, -10.0, Within::Percent(10.0), true),
            (92.7, 82.7, Within::Points(10.0), true),
            (72.6, 82.7, Within::Points(10.0), false),
            (f64::NAN, 1.0, Within::Points(10.0), false),
            (f64::NAN, 1.0, Within::Factor(10.0), false),
        ];
        for (value, to, within, near) in table {
            assert_eq!(
                is_near(value, to, within),
                near,
                "{value} to {to}, {within:?}"
            );
        }
    }
}
