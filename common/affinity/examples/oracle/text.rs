//! Answers as text.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use warmq_affinity::{Best, Figure, Gap, Gaps, Instance, Penalty, Schedule, TooLarge};

use super::{Answer, Drawn, drawing};

/// Bounds of the histogram's rows, in tenths of a percent.
const ROWS: [u64; 6] = [0, 50, 100, 250, 500, 1000];
/// Columns of the output.
const WIDTH: u16 = 120;
/// The longest bar.
const BAR: usize = 40;

/// All about one instance.
pub fn answer(answer: &Answer) -> String {
    let width = usize::from(WIDTH);
    let orders = answer.orders.iter();
    let named = orders.map(|(name, schedule)| (name.as_str(), schedule));
    let online = ("online algorithm", &answer.online.schedule);
    let mut shown: Vec<(&str, &Schedule)> = named.chain([online]).collect();
    shown.extend(optima(answer));
    let longest = shown
        .iter()
        .map(|(_, schedule)| schedule.end())
        .max()
        .unwrap_or(0);

    let mut parts = vec![facts(&answer.instance)];
    for (name, schedule) in shown {
        let drawn = drawing::of(schedule, longest, width);
        parts.push(format!("{}\n{drawn}", ends(name, schedule, answer)));
    }
    parts.extend(bounds(answer));
    parts.push(counts(answer));
    let units = drawing::units_a_column(longest, width);
    parts.push(paragraph(&drawing::legend(&answer.instance, units)));
    parts.join("\n\n")
}

/// The optimum, and the best schedule that splits no fragment where that ends later.
fn optima(answer: &Answer) -> Vec<(&'static str, &Schedule)> {
    let whole_bins = schedule_of(&answer.whole_bins);
    let optimum = schedule_of(&answer.optimum);
    match (whole_bins, optimum) {
        (Some(whole), Some(optimum)) if whole.end() == optimum.end() => {
            vec![("optimum, which splits no fragment", whole)]
        }
        (whole, optimum) => {
            let whole = whole.map(|end| ("best that splits no fragment", end));
            let optimum = optimum.map(|end| ("optimum", end));
            whole.into_iter().chain(optimum).collect()
        }
    }
}

fn schedule_of(best: &Result<Best, TooLarge>) -> Option<&Schedule> {
    best.as_ref().ok()?.schedule.as_ref()
}

fn facts(instance: &Instance) -> String {
    let costs = instance.costs;
    let penalty = match instance.penalty {
        Penalty::Lines => "",
        Penalty::WholeCache => ", always whole",
    };
    let facts = [
        counted(instance.cpus, "CPU"),
        format!(
            "caches of {}{penalty} ({} to fill a line, {} to write it back)",
            counted(costs.lines as usize, "line"),
            costs.fill,
            costs.write_back
        ),
        counted(instance.fragments.len(), "fragment"),
        counted(instance.tasks.len(), "task"),
    ];
    format!("{}\n{}", instance.title, facts.join(", "))
}

fn counted(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}

/// `online algorithm: 15 units (last busy unit 14), the least; penalties 16`.
fn ends(name: &str, schedule: &Schedule, answer: &Answer) -> String {
    let (end, penalty) = (schedule.end(), schedule.penalty());
    let beyond = match &answer.optimum {
        Ok(best) if end == best.end => ", the least".to_owned(),
        Ok(best) => {
            let exact = best.schedule.is_some();
            let what = if exact { "least" } else { "bound" };
            format!(", {} more than the {what}", end - best.end)
        }
        Err(_) => String::new(),
    };
    let last = end.saturating_sub(1);
    format!("{name}: {end} units (last busy unit {last}){beyond}; penalties {penalty}")
}

/// What is known where no schedule can be shown.
fn bounds(answer: &Answer) -> Option<String> {
    match &answer.optimum {
        Err(too_large) => Some(format!("optimum: not known; {too_large}")),
        Ok(best) if best.schedule.is_none() => Some(format!(
            "bound: no schedule takes fewer than {} units, and perhaps none as few: this is the optimum if \
             every run could begin at any time, and here tasks have several runs",
            best.end
        )),
        Ok(_) => None,
    }
}

fn counts(answer: &Answer) -> String {
    let counts = answer.online.counts;
    let split = match answer.policy.balancing.split_after {
        Some(looks) => format!("splits after {}", counted(looks as usize, "look")),
        None => "never splits".to_owned(),
    };
    format!(
        "The online algorithm balances every {} and {split}; here: {} and {} moved, {}, {} of a fragment.",
        counted(answer.policy.balance_every as usize, "unit"),
        counted(counts.groups_moved as usize, "group"),
        counted(counts.unmanaged_moved as usize, "unmanaged task"),
        counted(counts.splits as usize, "split"),
        counted(counts.changes as usize, "change"),
    )
}

/// How the gaps of many instances are distributed.
pub fn gaps(drawn: &Drawn, gaps: &Gaps) -> String {
    let count = gaps.all.len();
    let (first, last) = (gaps.all[0].seed, gaps.all[count - 1].seed);
    let shape = drawn.shape();
    let range = |range: &std::ops::RangeInclusive<u64>| match (range.start(), range.end()) {
        (start, end) if start == end => start.to_string(),
        (start, end) => format!("{start} to {end}"),
    };
    let worst = gaps.worst();
    let split = gaps.all.iter().filter(|gap| gap.split).count();
    [
        format!(
            "{count} instances, seeds {first} to {last}: {} CPUs, {} fragments, {} tasks",
            range(&shape.cpus),
            range(&shape.fragments),
            range(&shape.tasks)
        ),
        format!("How much later than the optimum each is done:\n{}", table(gaps)),
        format!("The online algorithm:\n{}", histogram(gaps)),
        format!(
            "The online algorithm split a group in {split} of them. It is worst at seed {} ({} units, and {} at best):\n  {}",
            worst.seed,
            worst.online,
            worst.optimum,
            drawn.command(worst.seed)
        ),
    ]
    .join("\n\n")
}

fn table(gaps: &Gaps) -> String {
    let mut table = lines();
    table.set_header(["", "optimal", "mean", "p50", "p90", "p99", "worst"]);
    let figures: [(&str, Figure); 2] = [
        ("online algorithm", Gap::online_permille),
        ("best that splits no fragment", Gap::whole_bins_permille),
    ];
    for (name, figure) in figures {
        let optimal = gaps.at_most(figure, 0) * 1000 / gaps.all.len();
        let percentiles = [50, 90, 99, 100].map(|percentile| gaps.percentile(figure, percentile));
        let mut row = vec![name.to_owned(), percent(optimal as u64)];
        row.push(percent(gaps.mean(figure)));
        row.extend(percentiles.map(percent));
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

fn histogram(gaps: &Gaps) -> String {
    let count = gaps.all.len();
    let mut before = 0;
    let mut lines = Vec::new();
    let bounds = ROWS.into_iter().map(Some).chain([None]);
    for bound in bounds {
        let below = gaps.at_most(Gap::online_permille, bound.unwrap_or(u64::MAX));
        let here = below - before;
        before = below;
        let name = match bound {
            Some(0) => "optimal".to_owned(),
            Some(bound) => format!("up to {} %", bound / 10),
            None => "more".to_owned(),
        };
        let bar = "#".repeat((here * BAR).div_ceil(count));
        lines.push(
            format!("  {name:<12}{here:>8}  {bar}")
                .trim_end()
                .to_owned(),
        );
    }
    lines.join("\n")
}

/// `57.2 %`.
fn percent(permille: u64) -> String {
    format!("{}.{} %", permille / 10, permille % 10)
}

/// A table without lines.
fn lines() -> Table {
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .force_no_tty();
    table
}

/// A text of several sentences, wrapped.
fn paragraph(text: &str) -> String {
    let mut table = lines();
    table.add_row([text]);
    // A table puts a space before its first column.
    let lines = table.trim_fmt().replace("\n ", "\n");
    lines.trim_start().to_owned()
}
