//! What the lab predicts of guests, figure by figure.

use std::path::Path;

use warmq_experiment::laws::{all_shipped, shipped};
use warmq_law::{
    Cell, Column, Columns, Law, Repetition, columns_of, judge, known, predictions, read_lines,
};

use super::judged;

/// What guests of 6.12, 6.18, 7.2 and 7.3 did (docs/fidelity/guests.md).
fn guests() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../measured/laws-guests.jsonl");
    std::fs::read_to_string(file).expect("the guests")
}

/// Four fifths is the aim. Guests of one CPU are exact, and the lab must not fall behind there;
/// those by the clock were figures of a bound alone.
#[test]
fn the_lab_predicts_four_fifths_of_what_guests_with_one_cpu_do() {
    let laws = all_shipped().unwrap();
    let laws: Vec<_> = laws
        .into_iter()
        .filter(|found| found.law.cpus == 1)
        .collect();
    let lines = read_lines(&guests()).unwrap();
    let of_file = columns_of(&lines);
    let guests = known(&laws, &of_file, &lines, &|_, _| String::new());
    let columns = Columns {
        kernel: ["6.12", "6.18", "7.2", "7.3"].map(String::from).to_vec(),
        alike: true,
        ..Columns::default()
    };
    let columns = columns.all().unwrap();
    let labs = judged(&laws, &columns);
    let all = predictions(&labs, &guests);
    let agree = all.iter().filter(|pair| pair.agrees()).count();
    assert!(all.len() > 400, "{} figures are compared", all.len());
    let wrong = all.iter().filter(|pair| !pair.agrees());
    let wrong = wrong.map(|pair| (pair.law, pair.figure, pair.lab, pair.guest.value));
    let wrong: Vec<_> = wrong.collect();
    assert!(5 * agree >= 4 * all.len(), "{wrong:#?}");
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
    Cell::new(law, column, judge(law, &[played]))
}

#[test]
fn a_wait_that_is_median_and_p99_counts_once() {
    let law = &shipped("timer").unwrap().unwrap().law;
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
        predictions(&cells, &cells).len()
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
        let scenario = warmq_play::workload(name).unwrap().scenario().unwrap();
        let law = Law::compared(name, scenario, 1);
        let cell = |column| cell(&law, column, &[("work_per_second", 1.0)]);
        let cells = [cell(&columns[0]), cell(&columns[1])];
        predictions(&cells, &cells)[0].is_measure
    };
    assert!(!is_measure("simplex"), "its datagrams come from outside");
    assert!(is_measure("schbench"));
}
