//! The walk for a terminal.

use comfy_table::{Cell, Color};
use warmq_bench::{Known, SimulatedWalk, WalkRow};
use warmq_report::{Section, Verdict};

use super::Walk;
use super::section::TOLERANCE;
use crate::listing;
use crate::output::Screen;

const HEAD: [&str; 8] = [
    "blocks",
    "colors",
    "needed",
    "measured",
    "quartiles",
    "simulated",
    "ratio",
    "misses",
];

const LEGEND: &str = "Times are ns a visit; needed: the colors that equation 3 asks for; \
                      misses: of the first hot line, simulated.";

/// What it was measured on, the rows, and what follows from them.
pub fn table(walk: &Walk, section: &Section) -> String {
    let mut table = listing::table();
    table.set_header(HEAD);
    for (row, twin, ratio) in walk.rows() {
        table.add_row(line(row, twin, ratio));
    }
    listing::align_numbers(&mut table, None);
    let (title, place) = (&section.title, listing::paragraph(&on_what(walk)));
    let verdicts = section.verdicts.iter().map(verdict).collect::<Vec<_>>();
    format!(
        "{title}\n{place}\n\n{}\n\n{LEGEND}\n\n{}",
        table.trim_fmt(),
        verdicts.join("\n")
    )
}

fn verdict(verdict: &Verdict) -> String {
    let mark = if verdict.holds { "✓" } else { "✗" };
    listing::paragraph(&format!(
        "{mark} {}: {}",
        verdict.statement, verdict.numbers
    ))
}

/// The CPU, its cache, and how its addresses are known, in a paragraph.
pub fn on_what(walk: &Walk) -> String {
    let facts = &walk.report.facts;
    let cache = facts.cache;
    let levels = walk.latencies.levels.iter();
    let levels = levels.map(|it| format!("level {} {:.1} ns", it.level, it.ns));
    format!(
        "CPU {}, level-{} cache of {}, {} ways, lines of {}; {}. Blocks of {}, hot lines: {}; \
         colors from bit {} on; {}.",
        facts.cpu,
        cache.level,
        cache.size,
        cache.ways,
        cache.line,
        levels.collect::<Vec<_>>().join(", "),
        facts.block_size,
        facts.lines,
        facts.color_bits,
        known(facts.addresses),
    )
}

fn known(known: Known) -> &'static str {
    match known {
        Known::Measured => "which sets the pages use was measured",
        Known::Physical => "physical addresses from pagemap choose the sets",
        Known::Virtual => "virtual addresses stand in for physical ones",
    }
}

fn line(row: &WalkRow, twin: &SimulatedWalk, ratio: f64) -> [Cell; 8] {
    let spread = row.ns_per_visit;
    let off = (ratio - 1.0).abs() > TOLERANCE;
    let ratio = Cell::new(format!("{ratio:.2}"));
    [
        Cell::new(row.blocks),
        Cell::new(if row.colors == 1 {
            "vanilla".to_owned()
        } else {
            row.colors.to_string()
        }),
        Cell::new(row.needed_colors),
        Cell::new(format!("{:.1}", spread.median)),
        Cell::new(format!("{:.1} .. {:.1}", spread.low, spread.high)),
        Cell::new(format!("{:.1}", twin.ns_per_visit)),
        if off && Screen::of_results().colors {
            ratio.fg(Color::Yellow)
        } else {
            ratio
        },
        Cell::new(format!("{:.0} %", twin.miss_ratio * 100.0)),
    ]
}
