//! What the files hold: JSON lines, CSV, Parquet.

mod sample;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::ParquetMetaDataReader;
use sample::{row, rows};
use warmq_report::{PointValue, Row, WriteError, write_csv, write_json_lines, write_parquet};

fn text(write: impl FnOnce(&mut Vec<u8>) -> Result<(), WriteError>) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes).expect("a vector takes everything");
    String::from_utf8(bytes).expect("text")
}

/// Rows that disagree on their keys, and hold what files find hard.
fn hard_rows() -> Vec<Row> {
    let time = ("time", "ns");
    vec![
        row(
            [("load", 1.into()), ("name", "a, \"b\"".into())],
            time,
            f64::NAN,
            None,
        ),
        row(
            [("load", 0.5.into()), ("huge", true.into())],
            time,
            2.0,
            Some(f64::INFINITY),
        ),
    ]
}

#[test]
fn json_is_a_row_a_line_with_every_figure_in_full() {
    insta::assert_snapshot!(text(|out| write_json_lines(&rows(), out)));
}

#[test]
fn json_knows_no_figure_that_is_not_finite() {
    insta::assert_snapshot!(text(|out| write_json_lines(&hard_rows(), out)));
}

#[test]
fn csv_has_a_column_a_sweep_key() {
    insta::assert_snapshot!(text(|out| write_csv(&rows(), out)));
}

#[test]
fn csv_quotes_what_a_reader_would_take_apart() {
    insta::assert_snapshot!(text(|out| write_csv(&hard_rows(), out)));
}

#[test]
fn csv_has_no_formulas_and_no_escapes_of_others() {
    let names = ["=1+1", "-2", "+3", "@sum", "plain-4", "\u{1b}[2J", "\t=5"];
    let time = ("time", "ns");
    let rows = names.map(|name| {
        row(
            [("name", name.into()), ("number", (-7).into())],
            time,
            -1.0,
            None,
        )
    });
    let csv = text(|out| write_csv(&rows, out));
    let cells: Vec<&str> = csv
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(1).unwrap())
        .collect();
    assert_eq!(
        cells,
        [
            "'=1+1",
            "'-2",
            "'+3",
            "'@sum",
            "plain-4",
            r"\u001b[2J",
            r"\t=5"
        ]
    );
    assert!(
        csv.lines()
            .skip(1)
            .all(|line| line.contains(",-7,time,-1,")),
        "{csv}"
    );
}

fn through_parquet(rows: &[Row]) -> RecordBatch {
    let mut file = Vec::new();
    write_parquet(rows, &mut file).expect("a vector takes everything");
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(file)).expect("Parquet");
    let mut batches = reader.build().expect("Parquet");
    batches.next().expect("one batch").expect("Parquet")
}

#[test]
fn parquet_read_back_is_the_rows() {
    let batch = through_parquet(&rows());
    let texts = |name: &str| -> Vec<String> {
        let column = batch[name].as_string::<i32>();
        column
            .iter()
            .map(|value| value.unwrap().to_string())
            .collect()
    };
    let figures = |name: &str| -> Vec<Option<f64>> {
        batch[name].as_primitive::<Float64Type>().iter().collect()
    };
    let of = |pick: fn(&Row) -> Option<f64>| rows().iter().map(pick).collect::<Vec<_>>();
    assert_eq!(texts("experiment"), ["table2"; 4]);
    assert_eq!(texts("l2"), ["512 KB", "512 KB", "1024 KB", "1024 KB"]);
    let colors = batch["colors"].as_primitive::<Int64Type>();
    assert_eq!(colors.values().to_vec(), [1, 32, 1, 32]);
    assert_eq!(figures("value"), of(|row| Some(row.value)));
    assert_eq!(figures("low"), of(|row| Some(row.low)));
    assert_eq!(figures("high"), of(|row| Some(row.high)));
    assert_eq!(figures("published"), of(|row| row.published));
    let calibration: Vec<_> = batch["calibration"].as_boolean().iter().collect();
    assert_eq!(
        calibration,
        [Some(true), Some(false), Some(false), Some(false)]
    );
}

#[test]
fn parquet_columns_are_of_the_narrowest_type_and_null_where_there_is_nothing() {
    let batch = through_parquet(&hard_rows());
    let load: Vec<_> = batch["load"].as_primitive::<Float64Type>().iter().collect();
    assert_eq!(load, [Some(1.0), Some(0.5)]);
    let name: Vec<_> = batch["name"].as_string::<i32>().iter().collect();
    assert_eq!(name, [Some("a, \"b\""), None]);
    let huge: Vec<_> = batch["huge"].as_boolean().iter().collect();
    assert_eq!(huge, [None, Some(true)]);
    assert!(batch["value"].is_null(0) && batch["published"].is_null(1));
}

#[test]
fn a_sweep_key_cannot_take_the_name_of_another_column() {
    let rows = [row(
        [("value", PointValue::Integer(1))],
        ("time", "ns"),
        1.0,
        None,
    )];
    for result in [
        write_csv(&rows, Vec::new()),
        write_parquet(&rows, Vec::new()),
    ] {
        let refusal = result.expect_err("two columns of one name").to_string();
        assert_eq!(
            refusal,
            "the sweep key `value` has the name of a column of every row; rename the key"
        );
    }
}

#[test]
fn no_rows_make_a_file_without_rows() {
    assert_eq!(text(|out| write_csv(&[], out)).lines().count(), 1);
    let mut file = Vec::new();
    write_parquet(&[], &mut file).expect("a vector takes everything");
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(file));
    assert_eq!(metadata.expect("Parquet").file_metadata().num_rows(), 0);
}
