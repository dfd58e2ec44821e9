//! `[[published]]`: figures of the paper, each entry a cell or a row of a table.

use warmq_config::{Fields, Item, Value};

use super::measures::axis_of;
use crate::experiment::{Experiment, Measure, Published};
use crate::point::{Filter, Point};

pub(super) fn read(fields: &Fields, experiment: &mut Experiment) {
    for table in fields.tables("published") {
        let calibration = table.flag("calibration");
        let cells = cells(&table, experiment).unwrap_or_default();
        table.finish();
        for (metric, point, value) in cells {
            let same = |other: &Published| other.metric == metric && other.point == point;
            if experiment.published.iter().any(same) {
                let what = format!("`{metric}` at {point} is published twice");
                table.report(what, "leave one out");
                continue;
            }
            experiment.published.push(Published {
                metric,
                point,
                value,
                calibration,
            });
        }
    }
}

type Cell = (String, Point, f64);

fn cells(table: &Fields, experiment: &Experiment) -> Option<Vec<Cell>> {
    let along = table.item("along");
    let over = table.item("over");
    let values = table.item("values");
    let value = table.item("value");
    let at = table.item("at");
    let metric = table.required("metric", "name the measure that the figure is of");
    let measure = measure_of(&metric?, experiment)?;
    let filter = match &at {
        Some(at) => experiment.parts.filter(at)?,
        None => Filter::default(),
    };
    match (along, values, value) {
        (None, None, Some(value)) => {
            let point = only(table, measure, &filter, &Point::default())?;
            Some(vec![(measure.name.clone(), point, value.number()?)])
        }
        (Some(along), Some(values), None) => {
            let places = places(&along, over.as_ref(), measure, &filter, experiment)?;
            row(table, &along, &values, measure, &filter, places)
        }
        _ => {
            table.report(
                "it has no figure",
                "write either `value`, or `along` and `values`",
            );
            None
        }
    }
}

/// The measure that `item` names.
pub(super) fn measure_of<'a>(item: &Item, experiment: &'a Experiment) -> Option<&'a Measure> {
    measured(&item.text()?, item, experiment)
}

/// The measure called `name`, which `item` names.
pub(super) fn measured<'a>(
    name: &str,
    item: &Item,
    experiment: &'a Experiment,
) -> Option<&'a Measure> {
    let measure = experiment.measure(name);
    if measure.is_none() {
        let known = experiment.measures.iter().map(|known| known.name.as_str());
        item.unknown(format!("`{name}` is not measured"), name, known);
    }
    measure
}

/// The values of the key that a row of figures runs along.
fn places(
    along: &Item,
    over: Option<&Item>,
    measure: &Measure,
    filter: &Filter,
    experiment: &Experiment,
) -> Option<Vec<Value>> {
    let axis = axis_of(along, &experiment.parts.axes, measure)?;
    if let Some(over) = over {
        let items = over.list()?;
        return items
            .iter()
            .map(|item| experiment.parts.swept_value(&axis.key, item))
            .collect();
    }
    let reached = |value: &&Value| {
        let matching = measure.domain.iter().filter(|point| filter.matches(point));
        matching
            .clone()
            .any(|point| point.0.get(&axis.key) == Some(value))
    };
    Some(axis.values.iter().filter(reached).cloned().collect())
}

fn row(
    table: &Fields,
    along: &Item,
    values: &Item,
    measure: &Measure,
    filter: &Filter,
    places: Vec<Value>,
) -> Option<Vec<Cell>> {
    let key = along.text()?;
    let figures = values.list()?;
    if figures.len() != places.len() {
        let what = format!(
            "{} figures are given for {} values of {key}",
            figures.len(),
            places.len()
        );
        let help = format!(
            "give one for each of {}, or list the values in `over`",
            itertools::join(&places, ", ")
        );
        values.report(what, help);
        return None;
    }
    let mut cells = Vec::new();
    for (figure, place) in figures.iter().zip(places) {
        let at = Point([(key.clone(), place)].into());
        let point = only(table, measure, filter, &at)?;
        cells.push((measure.name.clone(), point, figure.number()?));
    }
    Some(cells)
}

/// The single point of `measure` that the entry is about.
fn only(table: &Fields, measure: &Measure, filter: &Filter, at: &Point) -> Option<Point> {
    let meant = |point: &&Point| filter.matches(point) && point.is_at(at);
    let points: Vec<&Point> = measure.domain.iter().filter(meant).collect();
    match points.as_slice() {
        [point] => Some((*point).clone()),
        [] => {
            let what = format!("`{}` has no such point in the sweep", measure.name);
            table.report(what, "correct `at`, or sweep that point");
            None
        }
        [first, second, ..] => {
            let what = format!(
                "`{}` has several such points, such as {first} and {second}",
                measure.name
            );
            table.report(what, "name more keys in `at`");
            None
        }
    }
}
