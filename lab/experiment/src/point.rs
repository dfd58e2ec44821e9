//! Points of a sweep, and filters that match some of them.

use std::collections::BTreeMap;
use std::fmt;

use warmq_config::Value;

/// Stands in a point for a setting that its world, machine, scheduler or workload lacks.
pub(crate) const NO_VALUE: &str = "-";

/// Whether a value of a point stands for none.
pub(crate) fn is_no_value(value: &Value) -> bool {
    matches!(value, Value::Text(text) if text == NO_VALUE)
}

/// A point of a sweep, perhaps without some of its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point(pub BTreeMap<String, Value>);

/// Selects points of a sweep: for each key of the filter, the values that match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter(pub BTreeMap<String, Vec<Value>>);

impl Point {
    /// The same point, with the keys of `changes` at the values of `changes`.
    #[must_use]
    pub fn moved(&self, changes: &Point) -> Point {
        let mut moved = self.clone();
        moved.0.extend(changes.0.clone());
        moved
    }

    /// The same point without `keys`.
    #[must_use]
    pub fn without<'k>(&self, keys: impl IntoIterator<Item = &'k str>) -> Point {
        let mut rest = self.clone();
        for key in keys {
            rest.0.remove(key);
        }
        rest
    }

    /// Whether the point has the values of `part` for every key of `part`.
    pub fn is_at(&self, part: &Point) -> bool {
        part.0
            .iter()
            .all(|(key, value)| self.0.get(key) == Some(value))
    }
}

impl Filter {
    /// Whether the point has every key of the filter, at one of its values.
    pub fn matches(&self, point: &Point) -> bool {
        let lets = |(key, values): (&String, &Vec<Value>)| {
            point.0.get(key).is_some_and(|value| values.contains(value))
        };
        self.0.iter().all(lets)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&pairs(&self.0))
    }
}

/// `cpus = 2, scheduler = mq`.
pub(crate) fn pairs(values: &BTreeMap<String, Value>) -> String {
    itertools::join(
        values.iter().map(|(key, value)| format!("{key} = {value}")),
        ", ",
    )
}
