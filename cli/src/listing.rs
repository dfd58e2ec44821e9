//! Lists for people: names with what they are, and settings with all that is known of them.

use comfy_table::{Attribute, Cell, CellAlignment, Row, Table};
use warmq_experiment::{Setting, Value};

use crate::output;

/// A table without lines, as wide as the screen.
pub fn table() -> Table {
    output::results().plain()
}

/// Such a table of `rows`.
pub fn rows<R: Into<Row>>(rows: impl IntoIterator<Item = R>) -> String {
    let mut table = table();
    table.add_rows(rows);
    table.trim_fmt()
}

/// Such a table with a head.
pub fn headed<R: Into<Row>>(head: impl Into<Row>, rows: impl IntoIterator<Item = R>) -> String {
    let mut table = table();
    table.set_header(head).add_rows(rows);
    table.trim_fmt()
}

/// The same; columns that are not `words` are numbers, and stand to the right.
pub fn of_numbers<R: Into<Row>>(
    head: impl Into<Row>,
    words: &[usize],
    rows: impl IntoIterator<Item = R>,
) -> String {
    let mut table = table();
    table.set_header(head).add_rows(rows);
    for (place, column) in table.column_iter_mut().enumerate() {
        if !words.contains(&place) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// A cell that stands out.
pub fn name(text: impl ToString) -> Cell {
    Cell::new(text).add_attribute(Attribute::Bold)
}

/// A text of several sentences, wrapped as the screen needs it.
pub fn paragraph(text: &str) -> String {
    // A table puts a space before its first column.
    let lines = rows([[text]]).replace("\n ", "\n");
    lines.trim_start().to_owned()
}

/// Both ends of a range, or one where they read alike; - where there are none.
pub fn range<T>(ends: &[T], text: impl Fn(&T) -> String) -> String {
    let ends = [ends.first(), ends.last()].into_iter().flatten();
    let mut said: Vec<String> = ends.map(text).collect();
    said.dedup();
    match said.is_empty() {
        true => "-".to_owned(),
        false => said.join(" .. "),
    }
}

/// A name and a sentence a line.
pub fn names<'a>(entries: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let entries = entries.into_iter();
    rows(entries.map(|(word, what)| [name(word), Cell::new(what)]))
}

/// Settings: the default, what is allowed, what it does, and where the default comes from.
pub fn settings(settings: &[Setting]) -> String {
    if settings.is_empty() {
        return "nothing can be set on it".to_owned();
    }
    let settings = settings.iter();
    rows(settings.map(|setting| [name(written(setting)), Cell::new(explained(setting))]))
}

/// `colors = 1`, as it stands in an experiment's file.
fn written(setting: &Setting) -> String {
    let quoted = matches!(
        setting.default,
        Value::Bytes(_) | Value::Duration(_) | Value::Text(_)
    );
    let quote = if quoted { "\"" } else { "" };
    format!("{} = {quote}{}{quote}", setting.name, setting.default)
}

fn explained(setting: &Setting) -> String {
    let unit = match setting.unit.as_str() {
        "" => String::new(),
        unit => format!(", in {unit}"),
    };
    let source = match setting.source.as_str() {
        "" => "not given",
        source => source,
    };
    let allowed = setting.kind.allowed();
    format!("{}\n{allowed}{unit}; default: {source}", setting.what)
}
