//! The lab beside guests, figure by figure: what it predicts and what real kernels do.

use comfy_table::Color;
use warmq_law::{Kind, Spread};
use warmq_scenario::{Object, ObjectKind, World};

use super::case::by_the_clock;
use super::column::Column;
use super::{Cell, matrix};
use crate::listing;

/// A figure of a law in the lab and in a guest of the same kernel.
pub struct Beside<'c> {
    law: &'c str,
    figure: &'c str,
    /// The guest's.
    column: &'c Column,
    kind: Kind,
    lab: f64,
    guest: Spread,
    /// False where the guest is no measure: several CPUs that take turns, or one of its tasks sends
    /// what comes from outside in the lab.
    is_measure: bool,
}

impl Beside<'_> {
    /// Whether they are within the bounds of a prediction.
    pub fn agrees(&self) -> bool {
        self.kind.agrees(self.lab, self.guest.value)
    }

    /// Whether the guest's own repetitions differ by more than a prediction may.
    fn is_unsteady(&self) -> bool {
        !self.kind.agrees(self.guest.low, self.guest.high)
    }

    fn mark(&self) -> &'static str {
        match (self.agrees(), self.is_measure) {
            (true, _) => "✓",
            (false, true) => "✗",
            (false, false) => "–",
        }
    }
}

/// Every figure that both the lab and a guest of the same kernel and scheduler have.
pub fn beside<'c>(labs: &'c [Cell<'_>], guests: &'c [Cell<'_>]) -> Vec<Beside<'c>> {
    let of = |cells: &'c [_], world| {
        let cells = cells.iter();
        cells.filter(move |cell: &&Cell<'_>| cell.column.world == world)
    };
    let pairs = of(guests, World::Guest).filter_map(|guest| {
        let is_same = |lab: &&Cell<'_>| {
            // A guest of one CPU is played alike in any case.
            let of_lab = Column {
                world: World::Guest,
                alike: guest.column.alike,
                ..lab.column.clone()
            };
            lab.law.name == guest.law.name && of_lab == *guest.column
        };
        Some((of(labs, World::Lab).find(is_same)?, guest))
    });
    pairs.flat_map(|(lab, guest)| figures(lab, guest)).collect()
}

fn figures<'c>(lab: &'c Cell<'_>, guest: &'c Cell<'_>) -> Vec<Beside<'c>> {
    let figures = guest.judged.compared.iter();
    let counted_once = figures.filter(|(figure, _)| !is_counted_again(lab, guest, figure));
    let both = counted_once.filter_map(|(figure, spread)| {
        let of_lab = lab.judged.compared.get(figure)?;
        Some(Beside {
            law: &guest.law.name,
            figure,
            column: guest.column,
            kind: Kind::of(figure),
            lab: of_lab.value,
            guest: *spread,
            is_measure: is_measure(guest),
        })
    });
    both.collect()
}

/// Whether the lab can be compared with this guest.
fn is_measure(guest: &Cell<'_>) -> bool {
    let objects = guest.law.scenario.objects();
    let from_outside = |object: &Object| matches!(object.kind, ObjectKind::Source(_));
    let keeps_time = guest.law.cpus == 1 || by_the_clock(guest.law, guest.column);
    keeps_time && !objects.iter().any(from_outside)
}

/// Whether `figure` is a p99 of waits that says what the median says, in the lab and in the guest:
/// both are of one wait, as of a task that wakes once. It would count one deviation, or one
/// agreement, twice.
fn is_counted_again(lab: &Cell<'_>, guest: &Cell<'_>, figure: &str) -> bool {
    let Some(waits) = figure.strip_suffix("_wait_p99") else {
        return false;
    };
    let median = format!("{waits}_wait_p50");
    [lab, guest].iter().all(|cell| {
        let compared = &cell.judged.compared;
        compared.contains_key(&median) && compared.get(&median) == compared.get(figure)
    })
}

/// Each figure a line, and how many of each kind agree.
pub fn table(all: &[Beside<'_>]) -> String {
    let mut table = listing::table();
    table.set_header(["law", "figure", "kernel", "lab", "guest", "from, to", ""]);
    for pair in all {
        let shown = |figure: f64| matrix::value(figure, pair.kind.unit());
        let range = match pair.guest.low < pair.guest.high {
            true => format!("{}, {}", shown(pair.guest.low), shown(pair.guest.high)),
            false => String::new(),
        };
        let color = match pair.agrees() || !pair.is_measure {
            true => Color::Reset,
            false => Color::Red,
        };
        table.add_row([
            comfy_table::Cell::new(pair.law),
            comfy_table::Cell::new(pair.figure),
            comfy_table::Cell::new(pair.column.to_string()),
            comfy_table::Cell::new(shown(pair.lab)),
            comfy_table::Cell::new(shown(pair.guest.value)),
            comfy_table::Cell::new(range),
            comfy_table::Cell::new(pair.mark()).fg(color),
        ]);
    }
    format!("{}\n\n{}", table.trim_fmt(), sums(all))
}

/// How many figures of each kind and column agree, in Markdown.
pub fn sums(all: &[Beside<'_>]) -> String {
    let mut columns: Vec<&Column> = Vec::new();
    for pair in all {
        if !columns.contains(&pair.column) {
            columns.push(pair.column);
        }
    }
    let count = |of: &dyn Fn(&Beside<'_>) -> bool| {
        let chosen: Vec<_> = all.iter().filter(|pair| of(pair)).collect();
        let agree = chosen.iter().filter(|pair| pair.agrees()).count();
        match chosen.len() {
            0 => "–".to_owned(),
            number => format!("{agree} of {number}"),
        }
    };
    let row = |name: &str, of: &dyn Fn(&Beside<'_>) -> bool| {
        let columns = columns.iter();
        let of_column = columns.map(|column| count(&|pair| pair.column == *column && of(pair)));
        let cells: Vec<String> = of_column.chain([count(of)]).collect();
        format!("| {name} | {} |\n", cells.join(" | "))
    };
    let heads: Vec<String> = columns.iter().map(ToString::to_string).collect();
    let mut text = format!("| | {} | all |\n", heads.join(" | "));
    text.push_str(&format!("|{}\n", "---|".repeat(columns.len() + 2)));
    for (name, kind) in Kind::ALL {
        text.push_str(&row(name, &|pair| pair.is_measure && pair.kind == kind));
    }
    text.push_str(&row("all", &|pair| pair.is_measure));
    let steady = |pair: &Beside<'_>| pair.is_measure && !pair.is_unsteady();
    text.push_str(&row("where the guest agrees with itself", &steady));
    text.push_str(&row(
        "no measure: CPUs that take turns, packets from outside",
        &|pair| !pair.is_measure,
    ));
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Playing, judged, known, line, shipped};
    use warmq_law::{Law, Repetition};

    use super::*;
    use crate::laws::column::Columns;

    /// What guests of 6.12, 6.18 and 7.2 did (docs/fidelity/guests.md).
    fn guests() -> String {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../measured/laws-guests.jsonl");
        std::fs::read_to_string(file).expect("the guests")
    }

    /// Four fifths is the aim. Guests of one CPU are exact, and the lab must not fall behind there;
    /// those by the clock were figures of a bound alone.
    #[test]
    fn the_lab_predicts_four_fifths_of_what_guests_with_one_cpu_do() {
        let laws = shipped::find(&[]).unwrap();
        let laws: Vec<_> = laws
            .into_iter()
            .filter(|found| found.law.cpus == 1)
            .collect();
        let lines = line::read(&guests()).unwrap();
        let of_file = line::columns(&lines);
        let guests = known(&laws, &of_file, &lines);
        let columns = Columns {
            kernel: vec!["6.12".into(), "6.18".into(), "7.2".into()],
            alike: true,
            ..Columns::default()
        };
        let columns = columns.all().unwrap();
        let labs = judged(&laws, &columns, &Playing::default(), &mut |_| Ok(())).unwrap();
        let all = beside(&labs, &guests);
        let agree = all.iter().filter(|pair| pair.agrees()).count();
        assert!(all.len() > 300, "{} figures are compared", all.len());
        assert!(5 * agree >= 4 * all.len(), "{}", table(&all));
    }

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
        Cell {
            law,
            column,
            judged: warmq_law::judge(law, &[played]),
            kept: None,
            again: String::new(),
            digest: String::new(),
        }
    }

    #[test]
    fn a_wait_that_is_median_and_p99_counts_once() {
        let laws = shipped::find(&["timer".to_owned()]).unwrap();
        let law = &laws[0].law;
        let columns = Columns {
            world: vec!["lab".into(), "guest".into()],
            kernel: vec!["6.18".into()],
            ..Columns::default()
        };
        let columns = columns.all().unwrap();
        let figures = |lab: [f64; 2], guest: [f64; 2]| {
            let waits = |[p50, p99]: [f64; 2]| [("clock_wait_p50", p50), ("clock_wait_p99", p99)];
            let cells = [
                cell(law, &columns[0], &waits(lab)),
                cell(law, &columns[1], &waits(guest)),
            ];
            beside(&cells, &cells).len()
        };
        assert_eq!(figures([7.0, 7.0], [9.0, 9.0]), 1);
        assert_eq!(
            figures([7.0, 7.0], [9.0, 10.0]),
            2,
            "the guest has more waits than one"
        );
        assert_eq!(
            figures([7.0, 8.0], [9.0, 9.0]),
            2,
            "the lab has more waits than one"
        );
    }

    #[test]
    fn packets_that_a_guest_sends_itself_are_no_measure() {
        let columns = Columns {
            world: vec!["lab".into(), "guest".into()],
            ..Columns::default()
        };
        let columns = columns.all().unwrap();
        let is_measure = |name: &str| {
            let laws = shipped::find_alike(&[name.to_owned()]).unwrap();
            let cell = |column| cell(&laws[0].law, column, &[("work_per_second", 1.0)]);
            let cells = [cell(&columns[0]), cell(&columns[1])];
            beside(&cells, &cells)[0].is_measure
        };
        assert!(
            !is_measure("simplex-1cpu"),
            "its datagrams come from outside"
        );
        assert!(is_measure("schbench-1cpu"));
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
        let both = beside(&cells, &cells);
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
