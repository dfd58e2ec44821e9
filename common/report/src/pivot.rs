//! Rows of one metric as people print them: some sweep keys down, the others across.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::{PointValue, Row, Section};

/// The rows of one metric of a section, in two dimensions.
///
/// Invariant: every line has one cell a column; a cell is empty where the sweep has no such row.
pub(crate) struct Pivot<'a> {
    pub metric: &'a str,
    pub unit: &'a str,
    /// The sweep keys that run down, and stand at the head of the first columns.
    pub keys: Vec<&'a str>,
    /// The names of the columns of cells.
    pub columns: Vec<String>,
    pub lines: Vec<Line<'a>>,
}

/// One line of a pivot: the values of the keys that run down, then a cell a column.
pub(crate) struct Line<'a> {
    pub names: Vec<String>,
    pub cells: Vec<Option<&'a Row>>,
}

type Values<'a> = Vec<Option<&'a PointValue>>;

/// One pivot a metric, in the order in which the metrics first appear.
pub(crate) fn pivots(section: &Section) -> Vec<Pivot<'_>> {
    let mut metrics = by_metric(section);
    if section.together {
        // A figure that is 0 everywhere is left out unless somebody asked for it: there are many.
        metrics.retain(|rows| asked_for(section, rows) || rows.iter().any(|row| row.value != 0.0));
        return match metrics.is_empty() {
            true => Vec::new(),
            false => vec![together(section, &metrics)],
        };
    }
    let pivots = metrics.iter().map(|rows| pivot(section, rows));
    pivots.collect()
}

/// One table of what was asked for, and how many other figures are not 0; of all, where nothing
/// was.
pub(crate) fn asked(section: &Section) -> (Vec<Pivot<'_>>, usize) {
    let metrics = by_metric(section).into_iter();
    let (asked, others): (Vec<_>, Vec<_>) = metrics.partition(|rows| asked_for(section, rows));
    if asked.is_empty() {
        return (pivots(section), 0);
    }
    let others = others.iter();
    let others = others.filter(|rows| rows.iter().any(|row| row.value != 0.0));
    (vec![together(section, &asked)], others.count())
}

fn asked_for(section: &Section, rows: &[&Row]) -> bool {
    rows.first()
        .is_some_and(|row| section.asked_for.contains(&row.metric))
}

/// The rows of each metric, in the order in which the metrics first appear; none has no row.
fn by_metric(section: &Section) -> Vec<Vec<&Row>> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut metrics: Vec<Vec<&Row>> = Vec::new();
    for row in &section.rows {
        let place = *places.entry(&row.metric).or_insert(metrics.len());
        if place == metrics.len() {
            metrics.push(Vec::new());
        }
        metrics[place].push(row);
    }
    metrics
}

/// All metrics, a line each; the points are the columns.
fn together<'a>(section: &'a Section, metrics: &[Vec<&'a Row>]) -> Pivot<'a> {
    let rows: Vec<&Row> = section.rows.iter().collect();
    let (down, across) = directions(section, &rows);
    let keys = [down, across].concat();
    let values =
        |row: &'a Row| -> Values<'a> { keys.iter().map(|key| row.point.get(key)).collect() };
    let points = distinct(rows.iter().map(|row| values(row)));
    let line = |of_metric: &Vec<&'a Row>| {
        let Row { metric, unit, .. } = of_metric[0];
        let name = match unit.as_str() {
            "" => metric.clone(),
            unit => format!("{metric} ({unit})"),
        };
        let at = |point: &Values<'a>| of_metric.iter().find(|row| values(row) == *point).copied();
        Line {
            names: vec![name],
            cells: points.iter().map(at).collect(),
        }
    };
    Pivot {
        metric: "figures",
        unit: "",
        keys: vec!["figure"],
        lines: metrics.iter().map(line).collect(),
        columns: points
            .iter()
            .map(|values| name(section, &keys, values))
            .collect(),
    }
}

fn pivot<'a>(section: &'a Section, rows: &[&'a Row]) -> Pivot<'a> {
    let (down, across) = directions(section, rows);
    let values = |row: &'a Row, keys: &[&str]| -> Values<'a> {
        keys.iter().map(|key| row.point.get(key)).collect()
    };
    let line_values = distinct(rows.iter().map(|row| values(row, &down)));
    let mut column_values = distinct(rows.iter().map(|row| values(row, &across)));
    column_values.sort_by(by_number);
    let cell = |line: &Values<'a>, column: &Values<'a>| {
        let here = |row: &&&'a Row| values(row, &down) == *line && values(row, &across) == *column;
        rows.iter().find(here).copied()
    };
    let lines = line_values.iter().map(|line| Line {
        names: down
            .iter()
            .zip(line)
            .map(|(key, value)| head(section, key, *value))
            .collect(),
        cells: column_values
            .iter()
            .map(|column| cell(line, column))
            .collect(),
    });
    Pivot {
        metric: &rows[0].metric,
        unit: &rows[0].unit,
        lines: lines.collect(),
        columns: column_values
            .iter()
            .map(|values| name(section, &across, values))
            .collect(),
        keys: down,
    }
}

/// The keys that run down, and those that run across. Keys with one value only say nothing beside
/// others and are left out, as long as one key is left.
fn directions<'a>(section: &Section, rows: &[&'a Row]) -> (Vec<&'a str>, Vec<&'a str>) {
    let keys = distinct(rows.iter().flat_map(|row| row.point.keys()));
    let varies = |key: &&str| {
        let first = rows.first().and_then(|row| row.point.get(key));
        rows.iter().any(|row| row.point.get(key) != first)
    };
    let varying: Vec<&str> = keys.iter().copied().filter(varies).collect();
    let keys = if varying.is_empty() {
        keys.into_iter().take(1).collect()
    } else {
        varying
    };
    let is_across = |key: &&str| {
        if section.columns.is_empty() {
            keys.len() > 1 && keys.last() == Some(key)
        } else {
            section.columns.iter().any(|column| column == key)
        }
    };
    keys.iter().copied().partition(|key| !is_across(key))
}

/// How a value looks at the head of a line: its label, or the bare value (its key is above it).
fn head(section: &Section, key: &str, value: Option<&PointValue>) -> String {
    let Some(value) = value else {
        return "–".into();
    };
    let mut labels = section.labels.iter();
    let label = labels.find(|label| label.key == key && label.value == *value);
    label.map_or_else(|| value.to_string(), |label| label.text.clone())
}

/// The name of a column: `linux24 · 32 colors`.
fn name(section: &Section, keys: &[&str], values: &Values) -> String {
    let named = keys.iter().zip(values).filter_map(|(key, value)| {
        value
            .map(|value| section.name_of(key, value))
            .filter(|name| !name.is_empty())
    });
    itertools::join(named, " · ")
}

/// Counts ascend, as a reader expects of columns; names and sizes stay in the order of the sweep.
fn by_number(left: &Values, right: &Values) -> Ordering {
    let number = |value: &Option<&PointValue>| match value {
        Some(PointValue::Integer(count)) => Some(*count as f64),
        Some(PointValue::Number(number)) => Some(*number),
        _ => None,
    };
    let pairs = left.iter().zip(right);
    pairs
        .map(|(left, right)| match (number(left), number(right)) {
            (Some(left), Some(right)) => left.total_cmp(&right),
            _ => Ordering::Equal,
        })
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Each of `items` once, in the order of their first appearance.
pub(crate) fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}
