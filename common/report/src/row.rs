//! A row: one measure at one point of a sweep.

use std::fmt;

use serde::ser::{Serialize, Serializer};

/// One measure at one point of a sweep, over all seeds.
///
/// Invariant kept by whoever makes one: `low <= value <= high`, and `calibration` only where
/// `published` is present. A measure that could not be taken is NaN, and null in JSON.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Row {
    /// The id of the experiment: `table5-walk-misses`.
    pub experiment: String,
    /// Where in the sweep.
    pub point: Point,
    /// What was measured: `walk_miss_ratio`.
    pub metric: String,
    /// The median over the seeds.
    pub value: f64,
    /// The unit of value, low, high and published: `%`, `us`, `requests/s`.
    pub unit: String,
    /// The low end of the interval over the seeds.
    pub low: f64,
    /// The high end of the interval over the seeds.
    pub high: f64,
    /// What the paper printed for this cell.
    pub published: Option<f64>,
    /// Whether the model was calibrated on `published`. If not, the row predicts.
    pub calibration: bool,
}

/// Where in a sweep: key and value, in the order of the sweep. A JSON object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point(pub Vec<(String, PointValue)>);

/// The value of a sweep key.
#[derive(Clone, Debug, PartialEq, serde::Serialize, derive_more::From)]
#[serde(untagged)]
pub enum PointValue {
    /// A count: `cpus = 8`.
    #[from(i32, i64, u16, u32)]
    Integer(i64),
    /// A quantity that is no whole number: `load = 0.5`.
    #[from]
    Number(f64),
    /// A name: `scheduler = "mq"`.
    #[from(&str, String)]
    Text(String),
    /// A switch: `hugepages = true`.
    #[from]
    Flag(bool),
}

impl Row {
    /// A figure of ours that nobody published: the value, and the ends of its interval.
    pub fn ours(
        experiment: &str,
        point: Point,
        (metric, unit): (&str, &str),
        [value, low, high]: [f64; 3],
    ) -> Row {
        Row {
            experiment: experiment.to_owned(),
            point,
            metric: metric.to_owned(),
            value,
            unit: unit.to_owned(),
            low,
            high,
            published: None,
            calibration: false,
        }
    }

    /// What is measured, and the point, if the experiment has several.
    pub fn place(&self) -> String {
        match self.point.to_string().as_str() {
            "" => self.metric.clone(),
            point => format!("{} at {point}", self.metric),
        }
    }

    /// Ours over published; none without a published figure or where that is zero.
    pub fn ratio(&self) -> Option<f64> {
        let published = self.published.filter(|published| *published != 0.0)?;
        Some(self.value / published).filter(|ratio| ratio.is_finite())
    }
}

impl Point {
    /// A point from key and value pairs.
    pub fn new<K: Into<String>>(pairs: impl IntoIterator<Item = (K, PointValue)>) -> Point {
        Point(
            pairs
                .into_iter()
                .map(|(key, value)| (key.into(), value))
                .collect(),
        )
    }

    /// The value of `key`, if the sweep has it.
    pub fn get(&self, key: &str) -> Option<&PointValue> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    /// The keys, in the order of the sweep.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }
}

impl PointValue {
    /// The value as a field of a file: as printed, but `true` and `false` for a switch.
    pub(crate) fn to_field(&self) -> String {
        match self {
            PointValue::Flag(value) => value.to_string(),
            PointValue::Integer(_) | PointValue::Number(_) | PointValue::Text(_) => {
                self.to_string()
            }
        }
    }
}

impl Serialize for Point {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// `cpus = 2, scheduler = mq`.
impl fmt::Display for Point {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.0.iter().map(|(key, value)| format!("{key} = {value}"));
        formatter.write_str(&itertools::join(pairs, ", "))
    }
}

impl fmt::Display for PointValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PointValue::Integer(value) => value.fmt(formatter),
            PointValue::Number(value) => value.fmt(formatter),
            PointValue::Text(value) => formatter.write_str(value),
            PointValue::Flag(true) => formatter.write_str("yes"),
            PointValue::Flag(false) => formatter.write_str("no"),
        }
    }
}
