//! A diagnosis as text.

use warmq_diagnose::{Diagnosis, Verdict, Waiting};
use warmq_units::Duration;

use super::Found;
use crate::listing;

/// What is said where nobody starved.
pub const NOTHING: &str =
    "Nothing starves: every task that wanted a CPU had about what it was due.";

/// All of it.
pub fn of(found: &Found) -> String {
    let diagnosis = &found.diagnosis;
    let parts = [
        facts(found),
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
    let about = [
        &header.world,
        &header.machine,
        &header.kernel,
        &header.scheduler,
    ];
    let about: Vec<&str> = about.into_iter().map(String::as_str).collect();
    let about: Vec<&str> = about.into_iter().filter(|it| !it.is_empty()).collect();
    let preempt = match header.preemption.as_str() {
        "" => String::new(),
        model => format!(" (preempt={model})"),
    };
    let window = diagnosis.window;
    format!(
        "{}{preempt}: {} CPUs, {} tasks, {} records in {}",
        about.join(", "),
        diagnosis.cpus,
        diagnosis.tasks,
        diagnosis.records,
        time(window.to_ns - window.from_ns)
    )
}

fn verdicts(diagnosis: &Diagnosis) -> String {
    if diagnosis.verdicts.is_empty() {
        return NOTHING.to_owned();
    }
    let all: Vec<String> = diagnosis.verdicts.iter().map(verdict).collect();
    all.join("\n\n")
}

fn verdict(verdict: &Verdict) -> String {
    let (kind, title) = (verdict.kind.name(), verdict.kind.title());
    let mut text = format!("[{kind}] {title}\n");
    text.push_str(&indented(&verdict.says));
    text.push_str(&indented(&verdict.because));
    for cure in &verdict.cures {
        text.push_str(&indented(&format!("- {cure}")));
    }
    text.trim_end().to_owned()
}

fn indented(sentence: &str) -> String {
    let lines = listing::paragraph(sentence);
    let lines = lines.lines().map(|line| format!("  {}\n", line.trim_end()));
    lines.collect()
}

fn waiting(diagnosis: &Diagnosis) -> String {
    let all = &diagnosis.told.waiting;
    if all.is_empty() {
        return String::new();
    }
    let mut table = listing::table();
    table.set_header([
        "task",
        "ran",
        "waited",
        "longest",
        "due",
        "who ran instead, and why",
    ]);
    for it in all {
        table.add_row([
            it.task.clone(),
            time(it.ran_ns),
            time(it.waited_ns),
            time(it.longest_ns),
            time(it.due_ns),
            instead(it, 2),
        ]);
    }
    listing::align_numbers(&mut table, None);
    for column in [0, 5] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
    }
    format!("Who was runnable and did not run:\n{}", table.trim_fmt())
}

/// The first `most` of those who ran, most first.
pub fn instead(waiting: &Waiting, most: usize) -> String {
    let mut parts: Vec<String> = Vec::new();
    if waiting.throttled_ns > 0 {
        parts.push(format!("its quota {}", time(waiting.throttled_ns)));
    }
    let others = waiting.instead.iter().take(most);
    parts.extend(others.map(|it| format!("{} {} ({})", it.task, time(it.ran_ns), it.why)));
    parts.join("; ")
}

fn woken(diagnosis: &Diagnosis) -> String {
    let all = &diagnosis.told.woken;
    if all.is_empty() {
        return String::new();
    }
    let mut table = listing::table();
    table.set_header(["task", "woken/s", "took a CPU/s", "by"]);
    for it in all {
        let by: Vec<String> = it
            .by
            .iter()
            .map(|by| format!("{} {}/s", by.waker, by.per_second))
            .collect();
        table.add_row([
            it.task.clone(),
            it.per_second.to_string(),
            it.took_per_second.to_string(),
            by.join("; "),
        ]);
    }
    format!("Who is woken, and by whom:\n{}", table.trim_fmt())
}

fn bouncing(diagnosis: &Diagnosis) -> String {
    let all = &diagnosis.told.bouncing;
    if all.is_empty() {
        return String::new();
    }
    let line = |it: &warmq_diagnose::Bouncing| {
        format!(
            "  {}: {} moves a second between caches, {} between CPUs",
            it.task, it.llc_moves_per_second, it.cpu_moves_per_second
        )
    };
    let lines: Vec<String> = all.iter().map(line).collect();
    format!("Who moves between caches:\n{}", lines.join("\n"))
}

fn notes(diagnosis: &Diagnosis) -> String {
    let lines = diagnosis.notes.iter().map(|note| format!("note: {note}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// A time with three digits.
pub fn time(ns: u64) -> String {
    warmq_diagnose::span(Duration::from_ns(ns))
}
