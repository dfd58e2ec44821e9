//! The walk for a terminal.

use comfy_table::{Cell, Color};
use itertools::join;
use warmq_report::{Section, Verdict};
use warmq_walk::{Known, Search, WalkRow};

use super::section::fits;
use super::{Twin, Walk};
use crate::listing;
use crate::output;

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
    let lines = walk.rows().map(|(row, twin)| line(row, twin));
    let table = listing::of_numbers(HEAD, &[], lines);
    let (title, place) = (&section.title, listing::paragraph(&on_what(walk)));
    let verdicts = join(section.verdicts.iter().map(verdict), "\n");
    format!("{title}\n{place}\n\n{table}\n\n{LEGEND}\n\n{verdicts}")
}

fn verdict(verdict: &Verdict) -> String {
    let mark = if verdict.holds { "✓" } else { "✗" };
    listing::paragraph(&format!(
        "{mark} {}: {}",
        verdict.statement, verdict.numbers
    ))
}

/// The CPU, its cache, and how its sets are known, in a paragraph.
pub fn on_what(walk: &Walk) -> String {
    let facts = &walk.report.facts;
    let cache = facts.cache;
    let levels = walk.latencies.levels.iter();
    let levels = levels.map(|level| format!("level {} {:.1} ns", level.level, level.ns));
    format!(
        "CPU {}, level-{} cache of {}, {} ways, lines of {}; {}. Blocks of {}, hot lines: {}; \
         colors from bit {} on; {}.",
        facts.cpu,
        cache.level,
        cache.size,
        cache.ways,
        cache.line,
        join(levels, ", "),
        facts.block_size,
        facts.lines,
        facts.color_bits,
        known(&facts.sets),
    )
}

/// How the sets are known, with the counts that show how far to trust it.
fn known(search: &Search) -> String {
    match (search.by, search.why) {
        (Known::Offset, _) => "the offset in a page chooses the set".to_owned(),
        (Known::Timing, _) => format!(
            "sets found by timing: {} sets, {} of them for the same line of all pages; {} of {} \
             pages known, {:.1} s",
            search.sets,
            search.sets_at_one_line,
            search.pages_known,
            search.pages_wanted,
            search.seconds
        ),
        (Known::Unknown, why) => format!(
            "sets unknown ({}), so that simulated times are from the best to the worst placement",
            why.map_or_else(String::new, |why| why.to_string())
        ),
    }
}

fn line(row: &WalkRow, twin: &Twin) -> [Cell; 8] {
    let spread = row.ns_per_visit;
    let ratios = twin.ratios(row);
    let ratio = Cell::new(listing::range(&[ratios.0, ratios.1], |ratio| {
        format!("{ratio:.2}")
    }));
    let times = [twin.least.ns_per_visit, twin.most.ns_per_visit];
    let misses = [twin.least.miss_ratio, twin.most.miss_ratio];
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
        Cell::new(listing::range(&times, |time| format!("{time:.1}"))),
        if !fits(ratios) && output::results().colors {
            ratio.fg(Color::Yellow)
        } else {
            ratio
        },
        Cell::new(listing::range(&misses, |miss| {
            format!("{:.0} %", miss * 100.0)
        })),
    ]
}
