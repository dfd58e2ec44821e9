//! A comparison as text.

use comfy_table::Cell;
use warmq_metrics::compare::{
    Agreement, Decision, Difference, LATE, Left, Side, WINDOW, Waits, Woken,
};
use warmq_trace::{Context, Header};
use warmq_units::CpuId;

use super::{Compared, figures};
use crate::listing;

/// More tasks than this that wait are not listed.
const WAITING_SHOWN: usize = 8;

/// All of it, without an end of line after the last.
pub fn text(compared: &Compared<'_>) -> String {
    let mut parts = vec![what(compared)];
    let comparison = compared.comparison;
    if comparison.identical {
        let count = compared.both[0].records.len();
        parts.push(format!("The recordings are identical: {count} records."));
        return parts.join("\n\n");
    }
    let mut lines: Vec<String> = comparison.cpus.iter().map(agreement).collect();
    lines.extend(left_out(compared));
    parts.push(lines.join("\n"));
    match &comparison.first {
        Some(difference) => parts.push(first(compared, difference)),
        None => parts.push("No decision differs.".to_owned()),
    }
    parts.push(side_by_side(compared));
    parts.join("\n\n")
}

/// Which recordings these are.
fn what(compared: &Compared<'_>) -> String {
    let [a, b] = [0, 1].map(|which| {
        let facts = facts(&compared.both[which].header);
        [Cell::new(compared.names[which]), Cell::new(facts)]
    });
    let lettered = [("A", a), ("B", b)].into_iter();
    listing::rows(lettered.map(|(letter, [name, facts])| [listing::name(letter), name, facts]))
}

fn facts(header: &Header) -> String {
    let hz = match header.hz.as_str() {
        "" => String::new(),
        hz => format!("{hz} Hz"),
    };
    let facts = [
        &header.world,
        &header.machine,
        &header.scheduler,
        &header.kernel,
        &hz,
        &header.preemption,
    ];
    let known = facts.into_iter().filter(|fact| !fact.is_empty());
    itertools::join(known, ", ")
}

fn agreement((cpu, agreement): (&CpuId, &Agreement)) -> String {
    let Agreement {
        decisions: [a, b],
        same,
        in_order,
        time_difference,
        late,
    } = agreement;
    let cpu = cpu.0;
    let times = match late {
        None if *same == 0 => String::new(),
        None => format!("\n      Their times differ by {time_difference} at most."),
        Some(late) => format!(
            "\n      Their times differ by {time_difference} at most, and by more than {LATE} from switch {} on.",
            late + 1
        ),
    };
    if same == a && a == b {
        return format!("cpu{cpu}: all {a} switches agree.{times}");
    }
    let looked = (*a.min(b)).min(WINDOW);
    format!(
        "cpu{cpu}: the first {same} switches agree, of {a} in A and {b} in B.{times}\n      Of the first \
         {looked}, {in_order} are in both in this order."
    )
}

/// What was left out of each, a sentence each.
fn left_out(compared: &Compared<'_>) -> Vec<String> {
    let [a, b] = compared.comparison.left_out;
    let mut lines = Vec::new();
    for (count, what) in [
        (
            [a.others, b.others],
            "switches to tasks that are none of the scenario's",
        ),
        ([a.idle, b.idle], "switches to idle"),
    ] {
        if count != [0, 0] {
            lines.push(format!(
                "Left out: {} in A and {} in B {what}.",
                count[0], count[1]
            ));
        }
    }
    if a.lost + b.lost > 0 {
        let (a, b) = (a.lost, b.lost);
        lines.push(format!(
            "Lost by the recorder: {a} events in A and {b} in B, perhaps switches."
        ));
    }
    lines
}

fn first(compared: &Compared<'_>, difference: &Difference) -> String {
    let [a, b] = &difference.before;
    let numbered = (difference.place - a.len() + 1..).zip(a.iter().zip(b));
    let before = numbered.map(|(number, (a, b))| [number.to_string(), timed(a), timed(b)]);
    let sides = difference.sides.each_ref().map(Option::as_ref);
    let row = |word: &str, of: &dyn Fn(&Side) -> String| {
        let [a, b] = sides.map(|side| side.map_or("–".to_owned(), of));
        [word.to_owned(), a, b]
    };
    let [a, b] =
        sides.map(|side| side.map_or("no switch".to_owned(), |side| timed(&side.decision)));
    let (cpu, number) = (difference.cpu.0, difference.place + 1);
    let here = [
        [number.to_string(), a, b],
        row("could run", &|side| waiting(compared, side)),
        row("woken before", &woken),
    ];
    let table = listing::headed(["", "A", "B"].map(listing::name), before.chain(here));
    format!("The first difference is switch {number} of cpu{cpu}:\n{table}")
}

/// `12.003 ms  hog, preempted -> nap`.
fn timed(decision: &Decision) -> String {
    let next = &decision.next;
    match &decision.prev {
        None => format!("{}  {next}", decision.at),
        Some((prev, left)) => format!("{}  {prev} {} -> {next}", decision.at, word(*left)),
    }
}

/// Why a task left its CPU.
pub fn word(left: Left) -> &'static str {
    match left {
        Left::Preempted => "preempted",
        Left::Slept => "slept",
    }
}

fn waiting(compared: &Compared<'_>, side: &Side) -> String {
    let cpus = compared.comparison.cpus.len();
    let one = |wait: &Waits| match cpus > 1 {
        true => format!("{} for {} on cpu{}", wait.who, wait.span, wait.cpu.0),
        false => format!("{} for {}", wait.who, wait.span),
    };
    let shown = side.waiting.iter().take(WAITING_SHOWN);
    let mut lines: Vec<String> = shown.map(one).collect();
    if let more @ 1.. = side.waiting.len().saturating_sub(WAITING_SHOWN) {
        lines.push(format!("… and {more} more"));
    }
    lines.join("\n")
}

fn woken(side: &Side) -> String {
    let one = |wakeup: &Woken| format!("{}  {} by {}", wakeup.at, wakeup.who, waker(wakeup));
    match side.wakeups.is_empty() {
        true => "none".to_owned(),
        false => itertools::join(side.wakeups.iter().map(one), "\n"),
    }
}

/// Who woke it.
pub fn waker(woken: &Woken) -> String {
    match (woken.context, &woken.by) {
        (Context::Interrupt, _) => "an interrupt".to_owned(),
        (Context::Softirq, _) => "a softirq".to_owned(),
        (_, Some(by)) => by.to_string(),
        (Context::Task, None) => "another task".to_owned(),
        (Context::Unknown, None) => "nobody known".to_owned(),
    }
}

fn side_by_side(compared: &Compared<'_>) -> String {
    let rows = figures(compared).into_iter().map(|(name, unit)| {
        let figures = &compared.comparison.figures;
        let [a, b] = figures.each_ref().map(|figures| match figures.get(&name) {
            Some(value) => format!("{value:.1}"),
            None => "–".to_owned(),
        });
        [format!("{name} ({unit})"), a, b]
    });
    listing::of_numbers(["", "A", "B"].map(listing::name), &[0], rows)
}
