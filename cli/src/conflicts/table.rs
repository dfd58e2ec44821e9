//! What was found, for a terminal.

use warmq_conflicts::{Held, Kind};
use warmq_units::{Bytes, printable};
use warmq_walk::SimulatedVisits;

use super::{Conflict, Found, Looks, Visited};
use crate::listing;

pub(super) const HEAD: [&str; 9] = [
    "level",
    "size",
    "ways",
    "sets used",
    "fullest",
    "held",
    "colors",
    "missed",
    "colored",
];

pub(super) const LEGEND: &str = "Sets used of all sets, and the most lines in one of them; held: lines that \
                      the level can keep when all are visited in turn; colors: those that \
                      warmq-color takes, 1 is none, - if no number helps; missed: visits whose \
                      line neither this level nor a nearer one has, simulated, as it is and \
                      colored. Two numbers are the range where sets are not known.";

const NO_FRAMES: &str = "Physical addresses cannot be read (that needs CAP_SYS_ADMIN), so that the \
                         sets of levels beyond the first are not known.";
const FRAMES: &str = "Sets of level 2 are those of physical addresses, without a hash. A level \
                      that hashes its index has others: what it holds lies in the range.";
const GUEST: &str = "This machine is virtual: its physical addresses are not those that choose \
                     sets, unless the hypervisor maps huge pages.";

/// All that was found.
pub fn text(found: &Found) -> String {
    let mut parts: Vec<String> = found.process.iter().map(process).collect();
    parts.extend(found.kinds.iter().map(conflict));
    if found.kinds.is_empty() {
        parts.push("There is no address of any kind that could conflict.".to_owned());
        return parts.join("\n");
    }
    let notes = [Some(LEGEND), frames(found), Some(&found.times)];
    let notes = itertools::join(notes.into_iter().flatten(), " ");
    parts.push(listing::paragraph(&notes));
    parts.join("\n\n")
}

pub(super) fn process(process: &Looks) -> String {
    let running = match process.running {
        0 => String::new(),
        count => format!(", {count} of them running: their stack pointers are not known"),
    };
    let (name, pid, threads) = (printable(&process.name), process.pid, process.threads);
    let plural = if threads == 1 { "" } else { "s" };
    format!("{name} (process {pid}): {threads} thread{plural}{running}")
}

/// What is known of physical addresses, where that matters.
pub(super) fn frames(found: &Found) -> Option<&'static str> {
    let mut levels = found.kinds.iter().flat_map(|conflict| &conflict.levels);
    let is_known = levels.any(|held| held.by_frames.is_some());
    match (is_known, found.virtual_machine) {
        (false, _) if found.process.is_none() => None,
        (false, _) => Some(NO_FRAMES),
        (true, true) => Some(GUEST),
        (true, false) => Some(FRAMES),
    }
}

/// What lies there, how many, and how far apart.
pub(super) fn title(conflict: &Conflict) -> String {
    let stride = conflict.stride.filter(|_| conflict.lines > 1);
    let stride = stride.map_or(String::new(), |stride| {
        format!(", most of them {} from the next", Bytes(stride))
    });
    let lines = conflict.lines;
    format!("{}: {lines} lines{stride}", conflict.kind.title())
}

fn conflict(conflict: &Conflict) -> String {
    let title = title(conflict);
    let source = format!("from {}", conflict.source);
    let parts = [
        listing::paragraph(&format!("{title}; {source}")),
        histogram(&conflict.by_offset),
        levels(conflict),
        format!("  {}", visits(conflict).join("\n  ")),
        listing::paragraph(&advice(conflict)),
    ];
    parts.join("\n")
}

/// A bar for each line of a page, as high as it has lines, of which the fullest is named.
fn histogram(counts: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = counts.iter().copied().max().unwrap_or(0);
    let bar = |count: &u64| match count {
        0 => '.',
        count => BARS[(count * 7 / most.max(1)) as usize],
    };
    let bars: String = counts.iter().map(bar).collect();
    let fullest = counts.iter().position(|count| *count == most).unwrap_or(0);
    let used = counts.iter().filter(|count| **count > 0).count();
    let all = counts.len();
    format!("  {bars}\n  place in a page, by line: {used} of {all} used, line {fullest} by {most}")
}

fn levels(conflict: &Conflict) -> String {
    let rows = conflict.levels.iter().map(|held| row(conflict, held));
    listing::of_numbers(HEAD, &[], rows)
}

pub(super) fn row(conflict: &Conflict, held: &Held) -> [String; 9] {
    let some = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
    let missed = |visited: &Visited| {
        let share = |walk: &SimulatedVisits| walk.missed.get(&held.level).copied();
        let shares: Vec<f64> = visited.simulated.iter().filter_map(share).collect();
        listing::range(&shares, |share| format!("{:.0} %", share * 100.0))
    };
    let used = held
        .used_sets
        .map(|used| format!("{used} of {}", held.sets));
    let ends = listing::range(&[held.least, held.most], u64::to_string);
    let holds = match held.by_frames {
        Some(by_frames) if held.least < held.most => format!("{by_frames} ({ends})"),
        _ => ends,
    };
    let colored = conflict.colored.as_ref();
    [
        held.level.to_string(),
        Bytes(held.size_bytes).to_string(),
        held.ways.to_string(),
        used.unwrap_or("-".to_owned()),
        some(held.most_in_a_set),
        holds,
        some(held.colors),
        missed(&conflict.plain),
        colored.map_or("-".to_owned(), missed),
    ]
}

/// What visits take, predicted and measured, a line each.
pub(super) fn visits(conflict: &Conflict) -> Vec<String> {
    let colors = conflict.colors;
    let colored = conflict
        .colored
        .as_ref()
        .map(|visited| (format!("{colors} colors"), visited));
    let both = [("as it is".to_owned(), &conflict.plain)]
        .into_iter()
        .chain(colored);
    let said = both.map(|(name, visited)| {
        let translation = visited.translation_ns.unwrap_or(0.0);
        let times = visited
            .simulated
            .iter()
            .map(|walk| walk.ns_per_visit + translation);
        let times = listing::range(&times.collect::<Vec<f64>>(), |time| format!("{time:.1}"));
        let measured = visited.measured.map_or(String::new(), |spread| {
            let (low, high) = (spread.low, spread.high);
            format!(", measured {:.1} ({low:.1} .. {high:.1})", spread.median)
        });
        format!("ns a visit, {name}: predicted {times}{measured}")
    });
    said.collect()
}

/// What helps, in a sentence.
pub(super) fn advice(conflict: &Conflict) -> String {
    let mut levels = conflict.levels.iter();
    let Some(fitting) = levels.find(|held| held.colors.is_some()) else {
        return "No level can hold all of them, colored or not: use fewer at a time.".to_owned();
    };
    let level = fitting.level;
    if conflict.colors <= 1 {
        return match level {
            1 => "Nothing to color: level 1 holds all of them.".to_owned(),
            2 if matches!(conflict.kind, Kind::StackTops | Kind::StacksAlike) => {
                "Level 2 holds all of them. Colors help all the same where switches store at one \
                 place of all pages: `warmq bench fibers` shows it (docs/coloring.md)."
                    .to_owned()
            }
            _ => {
                format!("Nothing to color: level {level} is the nearest that can hold all of them.")
            }
        };
    }
    let cure = match conflict.kind {
        Kind::StackPointers | Kind::ControlBlocks => {
            "start it with LD_PRELOAD=libwarmq_color_threads.so"
        }
        Kind::StackTops | Kind::StacksAlike => {
            "take stacks from warmq_color::Pool, or warmq::colored_stack in C++"
        }
        Kind::Blocks => "take them from warmq_color::Arena, or add warmq_color_offset() in C",
        Kind::Samples => "find out which blocks they are of, and give each a color",
    };
    let colors = conflict.colors;
    let gained = gained(conflict, fitting);
    format!("{colors} colors let level {level} hold all: {cure} (docs/coloring.md). {gained}")
}

/// What coloring gains: as measured, or else how sure that is.
fn gained(conflict: &Conflict, fitting: &Held) -> String {
    let measured = |visited: &Visited| visited.measured;
    let colored = conflict.colored.as_ref().and_then(measured);
    match (measured(&conflict.plain), colored) {
        // Quartiles that overlap show no difference.
        (Some(plain), Some(colored)) if colored.high < plain.low => {
            let times = plain.median / colored.median;
            format!("Copies were visited {times:.1} times as fast.")
        }
        (Some(_), Some(_)) => "Copies were visited no faster: it gains nothing here.".to_owned(),
        _ if fitting.least == fitting.most => String::new(),
        _ => "The sets of that level are not known: --measure shows whether it helps.".to_owned(),
    }
}
