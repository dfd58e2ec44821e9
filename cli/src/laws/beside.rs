//! The lab beside guests, figure by figure, as tables.

use comfy_table::{Cell, Color};
use itertools::join;
use warmq_law::shown::value;
use warmq_law::{Column, Kind, Prediction};

use crate::listing;

/// Each figure a line, and how many of each kind agree.
pub fn table(all: &[Prediction<'_>]) -> String {
    let head = ["law", "figure", "kernel", "lab", "guest", "from, to", ""];
    let rows = all.iter().map(|pair| {
        let shown = |figure: f64| value(figure, pair.kind.unit());
        let range = match pair.guest.low < pair.guest.high {
            true => format!("{}, {}", shown(pair.guest.low), shown(pair.guest.high)),
            false => String::new(),
        };
        let color = match pair.agrees() || !pair.is_measure {
            true => Color::Reset,
            false => Color::Red,
        };
        [
            Cell::new(pair.law),
            Cell::new(pair.figure),
            Cell::new(pair.column),
            Cell::new(shown(pair.lab)),
            Cell::new(shown(pair.guest.value)),
            Cell::new(range),
            Cell::new(mark(pair)).fg(color),
        ]
    });
    format!("{}\n\n{}", listing::headed(head, rows), sums(all))
}

fn mark(pair: &Prediction<'_>) -> &'static str {
    match (pair.agrees(), pair.is_measure) {
        (true, _) => "✓",
        (false, true) => "✗",
        (false, false) => "–",
    }
}

/// How many figures of each kind and column agree, in Markdown.
pub fn sums(all: &[Prediction<'_>]) -> String {
    let mut columns: Vec<&Column> = Vec::new();
    for pair in all {
        if !columns.contains(&pair.column) {
            columns.push(pair.column);
        }
    }
    let count = |of: &dyn Fn(&Prediction<'_>) -> bool| {
        let chosen: Vec<_> = all.iter().filter(|pair| of(pair)).collect();
        let agree = chosen.iter().filter(|pair| pair.agrees()).count();
        match chosen.len() {
            0 => "–".to_owned(),
            number => format!("{agree} of {number}"),
        }
    };
    let row = |name: &str, of: &dyn Fn(&Prediction<'_>) -> bool| {
        let columns = columns.iter();
        let of_column = columns.map(|column| count(&|pair| pair.column == *column && of(pair)));
        format!(
            "| {name} | {} |\n",
            join(of_column.chain([count(of)]), " | ")
        )
    };
    let mut text = format!("| | {} | all |\n", join(&columns, " | "));
    text.push_str(&format!("|{}\n", "---|".repeat(columns.len() + 2)));
    for (name, kind) in Kind::NAMES {
        text.push_str(&row(name, &|pair| pair.is_measure && pair.kind == kind));
    }
    text.push_str(&row("all", &|pair| pair.is_measure));
    let steady = |pair: &Prediction<'_>| pair.is_measure && !pair.is_unsteady();
    text.push_str(&row("where the guest agrees with itself", &steady));
    text.push_str(&row(
        "no measure: CPUs that take turns, packets from outside",
        &|pair| !pair.is_measure,
    ));
    text
}

#[cfg(test)]
mod tests {
    use warmq_law::{Cell, Columns, Law, Repetition, predictions};

    use super::super::shipped;
    use super::*;

    /// What one play of `law` gave.
    fn cell<'c>(law: &'c Law, column: &'c Column, figures: &[(&str, f64)]) -> Cell<'c> {
        let figures = figures
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        let played = Repetition {
            seed: 1,
            outcome: Ok(figures.collect()),
            taken_us: 0.0,
        };
        Cell::new(law, column, warmq_law::judge(law, &[played]))
    }

    #[test]
    fn a_compiled_scheduler_of_a_guest_is_beside_the_lab_s() {
        let laws = shipped::find(&["nice".to_owned()]).unwrap();
        let columns = Columns {
            world: vec!["lab".into(), "guest".into()],
            kernel: vec!["7.3".into()],
            scheduler: vec!["./a.bpf.o".into(), "./b.bpf.o".into()],
            ..Columns::default()
        };
        let columns = columns.all().unwrap();
        let shares = columns.iter().zip([70.0, 60.0, 75.0, 65.0]);
        let cells: Vec<_> = shares
            .map(|(column, share)| cell(&laws[0].law, column, &[("hog_share", share)]))
            .collect();
        let both = predictions(&cells, &cells);
        let found = both.iter().map(|pair| (pair.lab, pair.guest.value));
        assert_eq!(found.collect::<Vec<_>>(), [(70.0, 75.0), (60.0, 65.0)]);
    }

    #[test]
    fn a_guest_is_beside_the_lab_of_its_kernel_alone() {
        let laws = shipped::find(&["nice".to_owned()]).unwrap();
        let law = &laws[0].law;
        let columns = Columns {
            world: vec!["lab".into(), "guest".into()],
            kernel: vec!["6.12".into(), "6.18".into()],
            ..Columns::default()
        };
        let columns = columns.all().unwrap();
        let cell = |column, share: f64| cell(law, column, &[("hog_share", share)]);
        let shares = [70.0, 75.0, 75.0, 76.0];
        let cells: Vec<_> = columns
            .iter()
            .zip(shares)
            .map(|(column, share)| cell(column, share))
            .collect();
        let both = predictions(&cells, &cells);
        let found: Vec<_> = both
            .iter()
            .map(|pair| (pair.lab, pair.guest.value, pair.agrees(), pair.is_measure))
            .collect();
        assert_eq!(found, [(70.0, 75.0, false, true), (75.0, 76.0, true, true)]);
        let expected = "\
| | 6.12 kernel | 6.18 kernel | all |
|---|---|---|---|
| shares | 0 of 1 | 1 of 1 | 1 of 2 |
| times | – | – | – |
| rates | – | – | – |
| migrations | – | – | – |
| all | 0 of 1 | 1 of 1 | 1 of 2 |
| where the guest agrees with itself | 0 of 1 | 1 of 1 | 1 of 2 |
| no measure: CPUs that take turns, packets from outside | – | – | – |
";
        assert_eq!(sums(&both), expected);
    }
}
