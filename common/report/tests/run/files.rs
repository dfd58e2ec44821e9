//! What the files hold: JSON lines and CSV.

use warmq_report::{PointValue, Row, WriteError, write_csv, write_json_lines};

use crate::sample::{row, rows};

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

#[test]
fn a_sweep_key_cannot_take_the_name_of_another_column() {
    let rows = [row(
        [("value", PointValue::Integer(1))],
        ("time", "ns"),
        1.0,
        None,
    )];
    let refusal = write_csv(&rows, Vec::new()).expect_err("two columns of one name");
    assert_eq!(
        refusal.to_string(),
        "the sweep key `value` has the name of a column of every row; rename the key"
    );
}

#[test]
fn no_rows_make_a_file_without_rows() {
    assert_eq!(text(|out| write_csv(&[], out)).lines().count(), 1);
}
