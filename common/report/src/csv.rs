//! Rows as CSV (RFC 4180): a header, then a line a row, with one column a sweep key.

use std::borrow::Cow;
use std::io::Write;

use warmq_units::printable;

use crate::columns::{FIRST, REST, finite, sweep_keys};
use crate::{PointValue, Row, WriteError};

/// Writes `rows` as CSV: experiment, one column a sweep key, metric, value, unit, low, high,
/// published, calibration. Figures in full; empty where a row has no value. A text that a
/// spreadsheet would compute (`=1+1`) begins with an apostrophe, and what cannot be printed is
/// escaped.
///
/// # Errors
/// When `out` cannot be written to, or a sweep key has the name of another column.
pub fn write_csv(rows: &[Row], mut out: impl Write) -> Result<(), WriteError> {
    let keys = sweep_keys(rows)?;
    let header = [FIRST].into_iter().chain(keys.iter().copied()).chain(REST);
    write_line(header.map(text), &mut out)?;
    for row in rows {
        write_line(fields(row, &keys), &mut out)?;
    }
    Ok(())
}

fn fields<'a>(row: &'a Row, keys: &'a [&str]) -> impl Iterator<Item = Cow<'a, str>> {
    let figure = |value: Option<f64>| {
        Cow::from(
            value
                .and_then(finite)
                .map(|value| value.to_string())
                .unwrap_or_default(),
        )
    };
    let point = keys.iter().map(|key| match row.point.get(key) {
        Some(PointValue::Text(value)) => text(value),
        Some(value) => Cow::from(value.to_field()),
        None => Cow::from(""),
    });
    [text(&row.experiment)].into_iter().chain(point).chain([
        text(&row.metric),
        figure(Some(row.value)),
        text(&row.unit),
        figure(Some(row.low)),
        figure(Some(row.high)),
        figure(row.published),
        Cow::from(row.calibration.to_string()),
    ])
}

/// A text of other people's as a field: spreadsheets take one that begins so for a formula.
fn text(field: &str) -> Cow<'_, str> {
    let mark = if field.starts_with(['=', '+', '-', '@']) {
        "'"
    } else {
        ""
    };
    Cow::from(format!("{mark}{}", printable(field)))
}

fn write_line<'a>(
    fields: impl Iterator<Item = Cow<'a, str>>,
    out: &mut impl Write,
) -> Result<(), WriteError> {
    writeln!(
        out,
        "{}",
        itertools::join(fields.map(|field| quoted(&field)), ",")
    )?;
    Ok(())
}

/// A field with quotes around it, where a reader would otherwise take it apart.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.into()
    }
}
