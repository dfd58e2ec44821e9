//! Rows as Parquet, for pandas, polars and duckdb: one column a sweep key.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::columns::{FIRST, finite, sweep_keys};
use crate::{PointValue, Row, WriteError};

/// Writes `rows` as Parquet: experiment, one column a sweep key, metric, value, unit, low, high,
/// published, calibration. The column of a sweep key is an integer, a float, a boolean or text,
/// the narrowest that holds all its values; null where a row lacks the key, and where a figure is
/// not finite.
///
/// # Errors
/// When `out` cannot be written to, or a sweep key has the name of another column.
pub fn write_parquet(rows: &[Row], out: impl Write + Send) -> Result<(), WriteError> {
    let batch = batch(rows)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .build();
    let mut writer = ArrowWriter::try_new(out, batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}

fn batch(rows: &[Row]) -> Result<RecordBatch, WriteError> {
    let text = |pick: fn(&Row) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(pick)))
    };
    let figure = |pick: fn(&Row) -> Option<f64>| -> ArrayRef {
        Arc::new(Float64Array::from_iter(
            rows.iter().map(|row| pick(row).and_then(finite)),
        ))
    };
    let calibration = BooleanArray::from_iter(rows.iter().map(|row| Some(row.calibration)));

    let mut columns = vec![(FIRST, text(|row| &row.experiment), false)];
    for key in sweep_keys(rows)? {
        columns.push((key, sweep_column(rows, key), true));
    }
    columns.extend([
        ("metric", text(|row| &row.metric), false),
        ("value", figure(|row| Some(row.value)), true),
        ("unit", text(|row| &row.unit), false),
        ("low", figure(|row| Some(row.low)), true),
        ("high", figure(|row| Some(row.high)), true),
        ("published", figure(|row| row.published), true),
        ("calibration", Arc::new(calibration) as ArrayRef, false),
    ]);
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

/// The column of one sweep key, of the narrowest type that holds all its values.
fn sweep_column(rows: &[Row], key: &str) -> ArrayRef {
    let values = || rows.iter().map(|row| row.point.get(key));
    let all = |fits: fn(&PointValue) -> bool| values().flatten().all(fits);
    if all(|value| integer(value).is_some()) {
        Arc::new(Int64Array::from_iter(
            values().map(|value| value.and_then(integer)),
        ))
    } else if all(|value| number(value).is_some()) {
        Arc::new(Float64Array::from_iter(
            values().map(|value| value.and_then(number)),
        ))
    } else if all(|value| flag(value).is_some()) {
        Arc::new(BooleanArray::from_iter(
            values().map(|value| value.and_then(flag)),
        ))
    } else {
        Arc::new(StringArray::from_iter(
            values().map(|value| value.map(PointValue::to_field)),
        ))
    }
}

fn integer(value: &PointValue) -> Option<i64> {
    if let PointValue::Integer(value) = value {
        Some(*value)
    } else {
        None
    }
}

fn number(value: &PointValue) -> Option<f64> {
    match value {
        PointValue::Integer(value) => Some(*value as f64),
        PointValue::Number(value) => Some(*value),
        PointValue::Text(_) | PointValue::Flag(_) => None,
    }
}

fn flag(value: &PointValue) -> Option<bool> {
    if let PointValue::Flag(value) = value {
        Some(*value)
    } else {
        None
    }
}
