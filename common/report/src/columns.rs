//! Rows side by side: one column a sweep key.

use crate::pivot::distinct;
use crate::{Row, WriteError};

/// The columns of every row, in order; those of the sweep keys stand after the first.
pub(crate) const FIRST: &str = "experiment";
pub(crate) const REST: [&str; 7] = [
    "metric",
    "value",
    "unit",
    "low",
    "high",
    "published",
    "calibration",
];

/// Every sweep key of `rows`, in the order in which they first appear.
pub(crate) fn sweep_keys(rows: &[Row]) -> Result<Vec<&str>, WriteError> {
    let keys = distinct(rows.iter().flat_map(|row| row.point.keys()));
    let taken = |key: &&&str| **key == FIRST || REST.contains(key);
    match keys.iter().find(taken) {
        Some(key) => Err(WriteError::KeyTaken {
            key: (*key).to_owned(),
        }),
        None => Ok(keys),
    }
}

/// A figure for a file: none where it is not finite.
pub(crate) fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}
