//! A diagnosis as text.

use std::collections::BTreeMap;

use warmq_diagnose::{ALL_KERNELS, About, Bouncing, Diagnosis, Verdict, Waiting, Woken, summed};
use warmq_trace::Header;
use warmq_units::Duration;

use super::Found;
use crate::{contents, listing};

/// Rows of a table.
const MOST: usize = 10;
/// So many who ran instead, or who wake somebody, are printed of each.
const MOST_OTHERS: usize = 2;

/// What is said where nobody starved.
pub fn nothing(diagnosis: &Diagnosis) -> String {
    let all = diagnosis.activity.waiting.iter();
    let longest = all.max_by_key(|task| task.longest_ns);
    let longest = longest.map_or_else(
        || "nobody waited".to_owned(),
        |task| {
            format!(
                "the longest wait, of {}, was {}",
                task.about.shown(),
                time(task.longest_ns)
            )
        },
    );
    if !diagnosis.not_given.is_empty() {
        return format!("No verdict that this recording allows fits anybody; {longest}.");
    }
    format!(
        "Nothing starves: every task that wanted a CPU had about what it was due, and nobody waited long for a \
         known reason; {longest}."
    )
}

/// All of it.
pub fn of(found: &Found) -> String {
    let diagnosis = &found.diagnosis;
    let contents = found.contents.as_ref().map(contents::text);
    let parts = [
        facts(found),
        contents.unwrap_or_default(),
        unfit(diagnosis),
        verdicts(diagnosis),
        waiting(diagnosis),
        woken(diagnosis),
        bouncing(diagnosis),
        notes(diagnosis),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

/// `lab, small-smt, eevdf-6.18: 2 CPUs, 7 tasks, 12,345 records in 1.20 s`.
pub fn facts(found: &Found) -> String {
    let (header, diagnosis) = (&found.header, &found.diagnosis);
    let preempt = match header.preemption.as_str() {
        "" => String::new(),
        model => format!(" (preempt={model})"),
    };
    let window = diagnosis.window;
    format!(
        "{}{preempt}: {} CPUs, {} tasks, {} records in {}",
        about(header),
        diagnosis.cpus,
        diagnosis.tasks,
        diagnosis.records,
        time(window.to_ns - window.from_ns)
    )
}

/// What a recording is of: `guest, Debian 6.18.5, kernel`.
pub fn about(header: &Header) -> String {
    let facts = [
        &header.world,
        &header.machine,
        &header.kernel,
        &header.scheduler,
    ];
    let facts = facts.into_iter().filter(|fact| !fact.is_empty());
    facts.map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// That it is not fit to judge by, and why; nothing where it is.
pub fn unfit(diagnosis: &Diagnosis) -> String {
    match diagnosis.unfit.is_empty() {
        true => String::new(),
        false => listing::paragraph(&format!(
            "Not fit to judge a scheduler by: {}.",
            diagnosis.unfit.join("; ")
        )),
    }
}

fn verdicts(diagnosis: &Diagnosis) -> String {
    if diagnosis.verdicts.is_empty() {
        return listing::paragraph(&nothing(diagnosis));
    }
    let all: Vec<String> = diagnosis.verdicts.iter().map(verdict).collect();
    all.join("\n\n")
}

fn verdict(verdict: &Verdict) -> String {
    let (kind, title) = (verdict.kind.name(), verdict.kind.title());
    let mut text = format!("[{kind}] {title}\n");
    text.push_str(&indented(&verdict.says));
    text.push_str(&indented(&verdict.because));
    if verdict.tasks.len() > 1 {
        let all = summed(&verdict.tasks).join(", ");
        text.push_str(&indented(&format!("All of them: {all}.")));
    }
    for cure in &verdict.cures {
        text.push_str(&indented(&format!("- {cure}")));
    }
    if verdict.kernels != ALL_KERNELS {
        text.push_str(&indented(&format!("True of: {}.", verdict.kernels)));
    }
    text.trim_end().to_owned()
}

fn indented(sentence: &str) -> String {
    let lines = listing::paragraph(sentence);
    let lines = lines.lines().map(|line| format!("  {}\n", line.trim_end()));
    lines.collect()
}

/// Rows of the same program and group together, in the order of the first of each.
fn by_program<T>(all: &[T], about: impl Fn(&T) -> &About) -> Vec<Vec<&T>> {
    let mut together: Vec<Vec<&T>> = Vec::new();
    for task in all {
        let key = |task: &T| (about(task).program.clone(), about(task).group.clone());
        match together.iter_mut().find(|of| key(of[0]) == key(task)) {
            Some(of) => of.push(task),
            None => together.push(vec![task]),
        }
    }
    together
}

/// What those of one program and group are called together: `make (4711)`, `make (3 of them)`.
fn called<T>(of: &[&T], about: impl Fn(&T) -> &About) -> String {
    match of {
        [only] => about(only).shown(),
        [first, ..] => format!("{} ({} of them)", about(first).program, of.len()),
        [] => String::new(),
    }
}

/// A table with its title, and how many rows it leaves out of `all`.
fn titled(title: &str, table: &comfy_table::Table, all: usize) -> String {
    let more = match all.saturating_sub(MOST) {
        0 => String::new(),
        more => format!("\n {more} more had less: --json and the page have all"),
    };
    format!("{title}:\n{}{more}", table.trim_fmt())
}

fn waiting(diagnosis: &Diagnosis) -> String {
    let mut all = by_program(&diagnosis.activity.waiting, |task| &task.about);
    if all.is_empty() {
        return String::new();
    }
    let sum = |of: &[&Waiting], value: fn(&Waiting) -> u64| {
        of.iter().map(|task| value(task)).sum::<u64>()
    };
    let waited = |of: &[&Waiting]| sum(of, |task| task.waited_ns + task.throttled_ns);
    all.sort_by_key(|of| std::cmp::Reverse(waited(of)));
    let mut table = listing::table();
    table.set_header([
        "task",
        "ran",
        "waited",
        "longest",
        "due",
        "who ran instead, and why",
    ]);
    for of in all.iter().take(MOST) {
        table.add_row([
            called(of, |task| &task.about),
            time(sum(of, |task| task.ran_ns)),
            time(sum(of, |task| task.waited_ns)),
            time(of.iter().map(|task| task.longest_ns).max().unwrap_or(0)),
            time(sum(of, |task| task.due_ns)),
            instead(of[0], MOST_OTHERS),
        ]);
    }
    listing::align_numbers(&mut table, None);
    for column in [0, 5] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
    }
    titled("Who was runnable and did not run", &table, all.len())
}

/// The first `most` of those who ran, most first.
pub fn instead(waiting: &Waiting, most: usize) -> String {
    let mut parts: Vec<String> = Vec::new();
    if waiting.throttled_ns > 0 {
        parts.push(format!("its quota {}", time(waiting.throttled_ns)));
    }
    let others = waiting.instead.iter().take(most);
    parts.extend(others.map(|task| {
        format!(
            "{} {} ({})",
            task.about.shown(),
            time(task.ran_ns),
            task.why
        )
    }));
    parts.join("; ")
}

fn woken(diagnosis: &Diagnosis) -> String {
    let mut all = by_program(&diagnosis.activity.woken, |task| &task.about);
    if all.is_empty() {
        return String::new();
    }
    let often = |of: &[&Woken]| of.iter().map(|task| task.per_second).sum::<u64>();
    all.sort_by_key(|of| std::cmp::Reverse(often(of)));
    let mut table = listing::table();
    table.set_header(["task", "woken/s", "took a CPU/s", "by"]);
    for of in all.iter().take(MOST) {
        let mut wakers: BTreeMap<&str, u64> = BTreeMap::new();
        for waking in of.iter().flat_map(|task| &task.by) {
            *wakers.entry(&waking.waker).or_default() += waking.per_second;
        }
        let mut by: Vec<_> = wakers.into_iter().filter(|(_, often)| *often > 0).collect();
        by.sort_by_key(|(_, often)| std::cmp::Reverse(*often));
        let by = by.iter().take(MOST_OTHERS);
        let by: Vec<String> = by
            .map(|(waker, often)| format!("{waker} {often}/s"))
            .collect();
        table.add_row([
            called(of, |task| &task.about),
            often(of).to_string(),
            of.iter()
                .map(|task| task.took_per_second)
                .sum::<u64>()
                .to_string(),
            by.join("; "),
        ]);
    }
    titled("Who is woken, and by whom", &table, all.len())
}

fn bouncing(diagnosis: &Diagnosis) -> String {
    let mut all = by_program(&diagnosis.activity.bouncing, |task| &task.about);
    if all.is_empty() {
        return String::new();
    }
    let sum = |of: &[&Bouncing], value: fn(&Bouncing) -> u64| {
        of.iter().map(|task| value(task)).sum::<u64>()
    };
    all.sort_by_key(|of| std::cmp::Reverse(sum(of, |task| task.llc_moves_per_second)));
    let mut table = listing::table();
    table.set_header(["task", "moves between caches/s", "between CPUs/s"]);
    for of in all.iter().take(MOST) {
        table.add_row([
            called(of, |task| &task.about),
            sum(of, |task| task.llc_moves_per_second).to_string(),
            sum(of, |task| task.cpu_moves_per_second).to_string(),
        ]);
    }
    listing::align_numbers(&mut table, Some(0));
    titled("Who moves between caches", &table, all.len())
}

fn notes(diagnosis: &Diagnosis) -> String {
    let lines = diagnosis.notes.iter().map(|note| format!("note: {note}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// A time with three digits.
pub fn time(ns: u64) -> String {
    warmq_diagnose::span(Duration::from_ns(ns))
}
