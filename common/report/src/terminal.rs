//! Sections and the summary as tables for a terminal.

mod profile;

use std::fmt::Write;

use comfy_table::presets::NOTHING;
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ContentArrangement, LineStyle, Table, TableStyle,
};

use crate::pivot::{Line, Pivot, asked, pivots};
use crate::{Cells, Report, Row, Section, Summary, number};

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Columns of text; longer lines are wrapped inside their cell.
    pub width: u16,
    /// Whether colors may be used: not when the output goes to a file or a pipe.
    pub colors: bool,
    /// Whether a table of all metrics shows also those that nobody asked for.
    pub all: bool,
}

/// More lines of a table than this are cut, with a word on how many: a file has them all.
const LINES_SHOWN: usize = 24;
/// More cells out of bounds than this are not listed in the summary.
const WORST_SHOWN: usize = 8;

/// A rule above, below, and under the head: no lines between rows.
const RULED: TableStyle = TableStyle::new()
    .top_border(LineStyle::none().fill('─').junction('─'))
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .bottom_border(LineStyle::none().fill('─').junction('─'));

impl Terminal {
    /// One experiment: a table a metric, then the claims.
    pub fn section(self, section: &Section) -> String {
        let mut text = String::new();
        let paper = if section.paper.is_empty() {
            "ours"
        } else {
            section.paper.as_str()
        };
        let _ = writeln!(text, "{} ({paper})", section.title);
        let (pivots, others) = match section.together && !self.all {
            true => asked(section),
            false => (pivots(section), 0),
        };
        for mut pivot in pivots {
            let left_out = pivot.lines.len().saturating_sub(LINES_SHOWN);
            if !section.together {
                let _ = writeln!(text, "\n{}", heading(&pivot));
                pivot.lines.truncate(LINES_SHOWN);
            }
            let _ = writeln!(text, "{}", self.pivot(section, &pivot).trim_fmt());
            if left_out > 0 && !section.together {
                let _ = writeln!(text, "… and {left_out} more lines");
            }
        }
        if others > 0 {
            let s = if others == 1 { "" } else { "s" };
            let _ = writeln!(text, "… and {others} more figure{s}: --all shows them");
        }
        text.push_str(&legend(section));
        // What is not as the scenario says must be seen where its figures are.
        for note in section.notes.iter().filter(|_| section.together) {
            let _ = writeln!(text, "note: {note}");
        }
        text.push_str(&self.profiles(&section.profiles));
        if !section.verdicts.is_empty() {
            let _ = writeln!(text, "\n{}", self.verdicts(section).trim_fmt());
        }
        text
    }

    /// The summary of the report: a line for each experiment, the totals, and the largest
    /// deviation.
    pub fn summary(self, report: &Report) -> String {
        let summary = report.summary();
        let head = [
            "experiment",
            "in the paper",
            "claims",
            "calibrated",
            "predicted",
        ];
        let sections = summary.sections.iter().map(|section| {
            vec![
                Cell::new(&section.title),
                Cell::new(if section.paper.is_empty() {
                    "–"
                } else {
                    &section.paper
                }),
                share(section.held, section.held + section.failed),
                cells(section.calibration),
                cells(section.prediction),
            ]
        });
        let (held, claims) = summary.claims();
        let all = vec![
            Cell::new("all").add_attribute(Attribute::Bold),
            Cell::new(""),
            share(held, claims),
            cells(summary.calibration()),
            cells(summary.prediction()),
        ];
        let table = self.ruled(head, 2, sections.chain([all]));
        format!("{}\n{}", table.trim_fmt(), worst(&summary))
    }

    fn pivot(self, section: &Section, pivot: &Pivot) -> Table {
        let columns = pivot.columns.iter().map(|column| match column.as_str() {
            "" => pivot.metric,
            column => column,
        });
        let rows = pivot.lines.iter().map(|Line { names, cells }| {
            let cells = cells.iter();
            let cells = cells.map(|row| row.map_or(Cell::new("–"), |row| cell(section, row)));
            names
                .iter()
                .map(Cell::new)
                .chain(cells)
                .collect::<Vec<Cell>>()
        });
        let keys = pivot.keys.iter().copied();
        self.ruled(keys.chain(columns), pivot.keys.len(), rows)
    }

    /// A table between rules. Its columns are figures, but for the first, which are `words`.
    fn ruled(
        self,
        head: impl Into<comfy_table::Row>,
        words: usize,
        rows: impl IntoIterator<Item = Vec<Cell>>,
    ) -> Table {
        let mut table = self.table(RULED);
        table.set_header(head).add_rows(rows);
        for column in table.column_iter_mut().skip(words) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }

    fn verdicts(self, section: &Section) -> Table {
        let mut table = self.plain();
        for verdict in &section.verdicts {
            let (mark, color) = if verdict.holds {
                ("✓", Color::Green)
            } else {
                ("✗", Color::Red)
            };
            let source = match verdict.source.as_str() {
                "" => String::new(),
                source => format!(" [{source}]"),
            };
            table.add_row([
                Cell::new(mark).fg(color),
                Cell::new(format!(
                    "{}{source}\n{}",
                    verdict.statement, verdict.numbers
                )),
            ]);
        }
        table
    }

    /// A table without lines, of the width of the terminal.
    pub fn plain(self) -> Table {
        self.table(NOTHING)
    }

    fn table(self, style: TableStyle) -> Table {
        let mut table = Table::new();
        table
            .load_style(style)
            .set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(self.width);
        if self.colors {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table
    }
}

/// `walk_miss_ratio (%)`.
fn heading(pivot: &Pivot) -> String {
    if pivot.unit.is_empty() {
        pivot.metric.into()
    } else {
        format!("{} ({})", pivot.metric, pivot.unit)
    }
}

/// `8.3 (8.2, ×1.01)`; a star where the model was calibrated on it, a bang where it is off.
fn cell(section: &Section, row: &Row) -> Cell {
    let ours = number::ours(row.value, &row.unit);
    let Some((published, agreement)) = row.published.zip(section.agreement(row)) else {
        return Cell::new(ours);
    };
    let star = if row.calibration { "*" } else { "" };
    let bang = if agreement.within { "" } else { " !" };
    let ratio = row
        .ratio()
        .map(|ratio| format!(", {}", number::ratio(ratio)));
    let ratio = ratio.unwrap_or_default();
    let text = format!(
        "{ours} ({}{star}{ratio}){bang}",
        number::published(published, &row.unit)
    );
    let cell = Cell::new(text);
    if agreement.within {
        cell
    } else {
        cell.fg(Color::Yellow)
    }
}

/// What the marks in the tables of a section mean.
fn legend(section: &Section) -> String {
    let compared = |row: &&Row| row.published.is_some();
    if !section.rows.iter().any(|row| compared(&row)) {
        return String::new();
    }
    let mut text = String::from("ours (published, ratio)");
    if section.rows.iter().any(|row| row.calibration) {
        text.push_str("; * the model was calibrated on it");
    }
    let off = |row: &Row| {
        section
            .agreement(row)
            .is_some_and(|agreement| !agreement.within)
    };
    if section.rows.iter().any(off) {
        text.push_str("; ! out of bounds");
    }
    text.push('\n');
    text
}

fn cells(cells: Cells) -> Cell {
    share(cells.within, cells.compared)
}

/// `7 of 8`, green when all, yellow when not.
fn share(part: usize, whole: usize) -> Cell {
    if whole == 0 {
        return Cell::new("–");
    }
    let color = if part == whole {
        Color::Green
    } else {
        Color::Yellow
    };
    Cell::new(format!("{part} of {whole}")).fg(color)
}

/// The cells with the largest deviations, a line each.
fn worst(summary: &Summary) -> String {
    let mut text = String::new();
    if summary.worst.is_empty() {
        return text;
    }
    let _ = writeln!(text, "out of bounds, the furthest first:");
    for cell in summary.worst.iter().take(WORST_SHOWN) {
        let row = &cell.row;
        let ours = number::ours(row.value, &row.unit);
        let published = row
            .published
            .map(|value| number::published(value, &row.unit))
            .unwrap_or_default();
        let (place, unit) = (row.place(), &row.unit);
        let _ = writeln!(
            text,
            "  {}: {place}: {ours} {unit} ({published} published)",
            cell.section,
        );
    }
    if summary.worst.len() > WORST_SHOWN {
        let _ = writeln!(text, "  … and {} more", summary.worst.len() - WORST_SHOWN);
    }
    text
}
