//! Values that many tables have: dimensions, amounts, places, policies, rates.

use warmq_config::{Fields, Item, NodeKind};
use warmq_units::{Duration, thousandths};

use super::scope::Scope;
use crate::amount::{Amount, Draw, StreamName};
use crate::expr::Expr;
use crate::object::Rate;
use crate::place::Place;
use crate::quantity::Quantity::{self, Count, Time};
use crate::task::{Deadline, Policy};

/// `for` or `count`; the scope gets a slot for each dimension.
pub(super) fn dimensions(fields: &Fields<'_>, scope: &mut Scope<'_>) -> Vec<Expr> {
    let (table, count) = (fields.item("for"), fields.item("count"));
    if let (Some(_), Some(count)) = (&table, &count) {
        count.report(
            "`for` says how many there are already",
            "leave one of them out",
        );
    }
    let mut dimensions = Vec::new();
    if let Some(indexes) = table.and_then(|table| table.table()) {
        // All counts are read first: none may depend on an index.
        let counts: Vec<_> = indexes
            .entries()
            .map(|(_, item)| scope.expr(&item, &[Count]))
            .collect();
        for ((entry, item), count) in indexes.entries().zip(counts) {
            scope.push(Some(entry.key.clone()), &item);
            dimensions.extend(count);
        }
    } else if let Some(item) = count {
        let count = scope.expr(&item, &[Count]);
        scope.push(None, &item);
        dimensions.extend(count);
    }
    dimensions
}

/// An expression under `key`, if it is there.
pub(super) fn optional(
    fields: &Fields<'_>,
    key: &'static str,
    scope: &Scope<'_>,
    wanted: &[Quantity],
) -> Option<Expr> {
    scope.expr(&fields.item(key)?, wanted)
}

/// An amount: an expression, or a table that says how it is drawn.
pub(super) fn amount(item: &Item<'_>, scope: &Scope<'_>, wanted: &[Quantity]) -> Option<Amount> {
    let own = StreamName::OfStep(item.key.clone());
    let NodeKind::Table(_) = item.node.kind else {
        let draw = Draw::Constant(scope.expr(item, wanted)?);
        return Some(Amount { draw, stream: own });
    };
    let table = item.table()?;
    let stream = table.text("stream").map_or(own, StreamName::Shared);
    let draw = draw(&table, scope, wanted);
    table.finish();
    let draw = draw?;
    Some(Amount { draw, stream })
}

fn draw(table: &Fields<'_>, scope: &Scope<'_>, wanted: &[Quantity]) -> Option<Draw> {
    let [uniform, exponential] = ["uniform", "exponential"].map(|key| table.item(key));
    let [pareto, among] = ["pareto", "among"].map(|key| table.item(key));
    let shape = pareto.as_ref().and_then(|_| table.item("shape"));
    match (uniform, exponential, pareto, among) {
        (Some(item), None, None, None) => {
            let ends = exprs(&item, scope, wanted)?;
            let Ok([low, high]) = <[Expr; 2]>::try_from(ends) else {
                return item.wrong("the least and the greatest value, as in [\"1ms\", \"3ms\"]");
            };
            Some(Draw::Uniform(low, high))
        }
        (None, Some(mean), None, None) => Some(Draw::Exponential(scope.expr(&mean, wanted)?)),
        (None, None, Some(least), None) => {
            let least = scope.expr(&least, wanted);
            let shape = pareto_shape(table, shape);
            let (least, shape) = (least?, shape?);
            Some(Draw::Pareto { least, shape })
        }
        (None, None, None, Some(item)) => {
            let values = exprs(&item, scope, wanted)?;
            match values.is_empty() {
                true => item.wrong("at least one value"),
                false => Some(Draw::Among(values)),
            }
        }
        _ => {
            let help = "write one of { uniform = [LEAST, MOST] }, { exponential = MEAN }, \
                        { pareto = LEAST, shape = \"1.5\" }, { among = [VALUE, ...] }";
            table.report("an amount is drawn in exactly one way", help);
            None
        }
    }
}

fn pareto_shape(table: &Fields<'_>, item: Option<Item<'_>>) -> Option<u64> {
    let help = "write shape = \"1.5\"";
    let Some(item) = item else {
        table.report("`shape` is missing", help);
        return None;
    };
    let shape = match &item.node.kind {
        NodeKind::Text(text) | NodeKind::Decimal(text) => thousandths(text),
        NodeKind::Integer(whole) => u64::try_from(*whole)
            .ok()
            .and_then(|ms| ms.checked_mul(1_000)),
        _ => None,
    };
    match shape {
        Some(shape @ 1_001..=1_000_000) => Some(shape),
        _ => item.wrong("a decimal above 1 and up to 1000, such as \"1.5\""),
    }
}

fn exprs(item: &Item<'_>, scope: &Scope<'_>, wanted: &[Quantity]) -> Option<Vec<Expr>> {
    let items = item.list()?;
    items.iter().map(|item| scope.expr(item, wanted)).collect()
}

const PLACES: &str = "\"all\", \"cpu 3\", \"cpus 0-3,8\", \"llc 0\", \"node 1\", \"socket 1\", \
                      \"core 2\", \"part 0 of 2\"; numbers may be expressions in parentheses";

/// A set of CPUs.
pub(super) fn place(item: &Item<'_>, scope: &Scope<'_>) -> Option<Place> {
    let text = item.text()?;
    let word = text.trim().split([' ', '(']).next().unwrap_or_default();
    let rest = text.trim()[word.len()..].trim_start_matches(' ').trim_end();
    let number = |text: &str| scope.text(item, text, &[Count]);
    match (word, rest) {
        ("all", "") => Some(Place::All),
        ("cpu", _) => Some(Place::Cpu(number(rest)?)),
        ("cpus", _) => {
            let ranges = outside_parentheses(rest, ',').into_iter().map(|range| {
                let (from, to) = match outside_parentheses(range, '-')[..] {
                    [cpu] => (cpu, cpu),
                    [from, to] => (from, to),
                    _ => return item.wrong(CPU_LIST),
                };
                ascending(item, (number(from)?, number(to)?))
            });
            ranges.collect::<Option<Vec<_>>>().map(Place::Cpus)
        }
        ("llc", _) => Some(Place::Llc(number(rest)?)),
        ("node", _) => Some(Place::Node(number(rest)?)),
        ("socket", _) => Some(Place::Socket(number(rest)?)),
        ("core", _) => Some(Place::Core(number(rest)?)),
        ("part", _) if rest.contains(" of ") => {
            let (part, of) = rest.split_once(" of ")?;
            let (part, of) = (number(part)?, number(of)?);
            Some(Place::Part { part, of })
        }
        _ => item.wrong(&format!("one of {PLACES}")),
    }
}

const CPU_LIST: &str = "a list of CPUs, as in \"cpus 0-3,8\" or \"cpus 0-(cpus - 2)\"";

/// The parts of `text` between the `separators` that are not within parentheses.
fn outside_parentheses(text: &str, separator: char) -> Vec<&str> {
    let mut depth = 0_u32;
    text.split(move |letter| {
        depth = match letter {
            '(' => depth.saturating_add(1),
            ')' => depth.saturating_sub(1),
            _ => depth,
        };
        depth == 0 && letter == separator
    })
    .collect()
}

/// A range whose ends, where both are numbers, are not the wrong way round.
fn ascending(item: &Item<'_>, range: (Expr, Expr)) -> Option<(Expr, Expr)> {
    match (range.0.literal(), range.1.literal()) {
        (Some(from), Some(to)) if from > to => item.wrong(CPU_LIST),
        _ => Some(range),
    }
}

/// A scheduling policy with its priority or its times.
pub(super) fn policy(item: &Item<'_>) -> Option<Policy> {
    let text = item.text()?;
    if let Some(times) = text.trim().strip_prefix("deadline ") {
        return deadline(times)
            .map(Policy::Deadline)
            .or_else(|| item.wrong(DEADLINE));
    }
    let mut words = text.split_whitespace();
    let (name, priority) = (words.next().unwrap_or(""), words.next());
    let number = priority
        .and_then(|digits| digits.parse().ok())
        .filter(|number| (1..=99).contains(number));
    match (name, priority, number, words.next()) {
        ("normal", None, ..) => Some(Policy::Normal),
        ("batch", None, ..) => Some(Policy::Batch),
        ("idle", None, ..) => Some(Policy::Idle),
        ("fifo", _, Some(number), None) => Some(Policy::Fifo(number)),
        ("rr", _, Some(number), None) => Some(Policy::RoundRobin(number)),
        _ => item.wrong(
            "\"normal\", \"batch\", \"idle\", \"fifo 50\" or \"rr 50\" with a priority from 1 to 99, or \
             \"deadline 1ms 5ms\" with a runtime and a period",
        ),
    }
}

const DEADLINE: &str = "\"deadline 1ms 5ms\", with a runtime of 1024 ns or more and a period from 100us to 4194ms, or \
                        with a deadline between them; none shorter than the one before";

/// Runtime and period, or runtime, deadline and period.
fn deadline(text: &str) -> Option<Deadline> {
    let times = text
        .split_whitespace()
        .map(|word| word.parse::<Duration>().ok());
    let times: Vec<Duration> = times.collect::<Option<_>>()?;
    match times[..] {
        [runtime, period] => Deadline::new(runtime, period, period),
        [runtime, deadline, period] => Deadline::new(runtime, deadline, period),
        _ => None,
    }
}

/// `5000 per s`.
pub(super) fn rate(item: &Item<'_>, scope: &Scope<'_>) -> Option<Rate> {
    let text = item.text()?;
    let parts = text.rsplit_once(" per ");
    let unit = parts.map(|(_, unit)| unit.trim());
    // Only letters: "per 0ms" must not become 10 ms.
    let unit = unit.filter(|unit| unit.bytes().all(|byte| byte.is_ascii_lowercase()));
    let unit = unit.and_then(|unit| format!("1{unit}").parse::<Duration>().ok());
    let (Some((count, _)), Some(per)) = (parts, unit) else {
        return item.wrong("a number and a unit of time, as in \"5000 per s\"");
    };
    let count = scope.text(item, count, &[Count])?;
    Some(Rate { count, per })
}

/// A time under `key`.
pub(super) fn time(fields: &Fields<'_>, key: &'static str, scope: &Scope<'_>) -> Option<Expr> {
    optional(fields, key, scope, &[Time])
}
