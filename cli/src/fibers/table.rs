//! Fibers for a terminal.

use comfy_table::Cell;
use warmq_walk::Spread;

use super::{Fibers, Predicted, Row};
use crate::listing;

const HEAD: [&str; 9] = [
    "stack",
    "fibers",
    "colors",
    "level 1 misses",
    "plain ns",
    "predicted",
    "colored ns",
    "predicted",
    "plain/colored",
];

const LEGEND: &str = "ns a switch, medians of rounds on stacks that are mapped anew, plain and \
                      colored on the same ones; the ratio with its quartiles, above 1 where colors \
                      gain. Level 1 misses: hot lines that it does not have, simulated, plain and \
                      colored. Predicted: a switch of two fibers, and what simulated caches and the \
                      translation of the address add; the second number where loads wait for the \
                      stores of the switch before, to the same place of another page.";

/// The machine's caches as measured, and the rows.
pub fn text(fibers: &Fibers) -> String {
    let levels = fibers.latencies.levels.iter();
    let levels = levels.map(|level| format!("level {} {:.1} ns", level.level, level.ns));
    let levels = itertools::join(levels, ", ");
    let table = listing::of_numbers(HEAD, &[], fibers.rows.iter().map(line));
    let place = listing::paragraph(&format!("CPU {}: {levels}.", fibers.latencies.cpu));
    format!("{place}\n\n{table}\n\n{}", listing::paragraph(LEGEND))
}

fn line(row: &Row) -> [Cell; 9] {
    let measured = &row.measured;
    let percent = |predicted: &Predicted| format!("{:.0} %", predicted.missed * 100.0);
    let ns = |ns: &f64| format!("{ns:.1}");
    let Spread {
        low, median, high, ..
    } = measured.ratio;
    [
        measured.stack.to_string(),
        measured.fibers.to_string(),
        measured.colors.to_string(),
        format!("{}, {}", percent(&row.plain), percent(&row.colored)),
        format!("{:.1}", measured.plain_ns.median),
        listing::range(&row.plain.ns, ns),
        format!("{:.1}", measured.colored_ns.median),
        listing::range(&row.colored.ns, ns),
        format!("{median:.2} ({low:.2} .. {high:.2})"),
    ]
    .map(Cell::new)
}
