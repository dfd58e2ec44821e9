//! A diagnosis as text.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use itertools::join;
use warmq_diagnose::{ALL_KERNELS, About, Diagnosis, Verdict, Waiting, summed};
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
    join(parts.iter().filter(|part| !part.is_empty()), "\n\n")
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
    join(facts, ", ")
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
    join(diagnosis.verdicts.iter().map(verdict), "\n\n")
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

/// A table of the tasks in `all`: those of a program and a group are one row, and who has most of
/// the figure goes first.
fn of_programs<T, const N: usize>(
    title: &str,
    all: &[T],
    about: fn(&T) -> &About,
    figure: fn(&T) -> u64,
    (head, words): ([&str; N], &[usize]),
    cells: impl Fn(&[&T]) -> Vec<String>,
) -> String {
    let mut together: Vec<Vec<&T>> = Vec::new();
    for task in all {
        let key = |task: &T| (about(task).program.clone(), about(task).group.clone());
        match together.iter_mut().find(|of| key(of[0]) == key(task)) {
            Some(of) => of.push(task),
            None => together.push(vec![task]),
        }
    }
    if together.is_empty() {
        return String::new();
    }
    together.sort_by_key(|of| Reverse(sum(of, figure)));
    let rows = together.iter().take(MOST).map(|of| {
        let name = match &of[..] {
            [only] => about(only).shown(),
            several => format!("{} ({} of them)", about(several[0]).program, of.len()),
        };
        [vec![name], cells(of)].concat()
    });
    let table = listing::of_numbers(head, words, rows);
    let more = match together.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!("\n {more} more had less: --json and the page have all"),
    };
    format!("{title}:\n{table}{more}")
}

fn sum<T>(of: &[&T], figure: fn(&T) -> u64) -> u64 {
    of.iter().map(|task| figure(task)).sum()
}

fn waiting(diagnosis: &Diagnosis) -> String {
    let waited = |task: &Waiting| task.waited_ns + task.throttled_ns;
    let head = [
        "task",
        "ran",
        "waited",
        "longest",
        "due",
        "who ran instead, and why",
    ];
    of_programs(
        "Who was runnable and did not run",
        &diagnosis.activity.waiting,
        |task| &task.about,
        waited,
        (head, &[0, 5]),
        |of| {
            let longest = of.iter().map(|task| task.longest_ns).max();
            vec![
                time(sum(of, |task| task.ran_ns)),
                time(sum(of, |task| task.waited_ns)),
                time(longest.unwrap_or(0)),
                time(sum(of, |task| task.due_ns)),
                instead(of[0], MOST_OTHERS),
            ]
        },
    )
}

/// The first `most` of those who ran, most first.
pub fn instead(waiting: &Waiting, most: usize) -> String {
    let quota = waiting.throttled_ns;
    let quota = (quota > 0).then(|| format!("its quota {}", time(quota)));
    let others = waiting.instead.iter().take(most).map(|task| {
        let (name, ran) = (task.about.shown(), time(task.ran_ns));
        format!("{name} {ran} ({})", task.why)
    });
    join(quota.into_iter().chain(others), "; ")
}

fn woken(diagnosis: &Diagnosis) -> String {
    of_programs(
        "Who is woken, and by whom",
        &diagnosis.activity.woken,
        |task| &task.about,
        |task| task.per_second,
        (["task", "woken/s", "took a CPU/s", "by"], &[0, 1, 2, 3]),
        |of| {
            let mut wakers: BTreeMap<&str, u64> = BTreeMap::new();
            for waking in of.iter().flat_map(|task| &task.by) {
                *wakers.entry(&waking.waker).or_default() += waking.per_second;
            }
            let mut by: Vec<_> = wakers.into_iter().filter(|(_, often)| *often > 0).collect();
            by.sort_by_key(|(_, often)| Reverse(*often));
            let by = by.iter().take(MOST_OTHERS);
            vec![
                sum(of, |task| task.per_second).to_string(),
                sum(of, |task| task.took_per_second).to_string(),
                join(by.map(|(waker, often)| format!("{waker} {often}/s")), "; "),
            ]
        },
    )
}

fn bouncing(diagnosis: &Diagnosis) -> String {
    let head = ["task", "moves between caches/s", "between CPUs/s"];
    of_programs(
        "Who moves between caches",
        &diagnosis.activity.bouncing,
        |task| &task.about,
        |task| task.llc_moves_per_second,
        (head, &[0]),
        |of| {
            vec![
                sum(of, |task| task.llc_moves_per_second).to_string(),
                sum(of, |task| task.cpu_moves_per_second).to_string(),
            ]
        },
    )
}

fn notes(diagnosis: &Diagnosis) -> String {
    let lines = diagnosis.notes.iter().map(|note| format!("note: {note}"));
    join(lines, "\n")
}

/// A time with three digits.
pub fn time(ns: u64) -> String {
    warmq_diagnose::span(Duration::from_ns(ns))
}
