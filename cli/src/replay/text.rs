//! A replay as text.

use warmq_replay::{Figure, Figures, Line};

use super::Replayed;
use crate::diagnose::text::time;
use crate::{listing, output};

/// So many tasks are printed.
const MOST: usize = 24;

/// All of it.
pub fn of(replayed: &Replayed) -> String {
    let head = format!(
        "recorded: {}\nreplayed: {}, {}: {} tasks, {} moments in {}",
        replayed.recorded,
        replayed.machine,
        replayed.scheduler,
        replayed.tasks,
        replayed.moments,
        time(replayed.time_ns)
    );
    let lines = &replayed.lines;
    let mut parts = vec![head, table(lines), differing(lines)];
    let missing = replayed.missing.iter();
    let missing = missing.map(|sentence| format!("not as recorded: {sentence}"));
    let missing: Vec<String> = missing.collect();
    if !missing.is_empty() {
        parts.push(missing.join("\n"));
    }
    parts.push(output::results().section(&replayed.section));
    parts.join("\n\n")
}

fn table(lines: &[Line]) -> String {
    let head = [
        "task",
        "recorded: share",
        "wait p50",
        "p99",
        "woken/s",
        "replayed: share",
        "wait p50",
        "p99",
        "woken/s",
    ];
    let rows = lines.iter().take(MOST).map(|line| {
        let name = match line.tasks {
            1 => line.task.clone(),
            tasks => format!("{} ({tasks})", line.task),
        };
        let cells = [&line.recorded, &line.replayed].into_iter().flat_map(cells);
        std::iter::once(name).chain(cells).collect::<Vec<String>>()
    });
    let table = listing::of_numbers(head, &[0], rows);
    let rest = match lines.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!("\n{more} more had less"),
    };
    format!("{table}{rest}")
}

/// What differs from the recording, a line for each task, whether it is in the table or not.
fn differing(lines: &[Line]) -> String {
    let differ = lines.iter().filter(|line| !line.differs.is_empty());
    let differ = differ.map(|line| format!("  {}: {}", line.task, differences(line)));
    match itertools::join(differ, "\n").as_str() {
        "" => "nothing differs from the recording by more than a quarter".to_owned(),
        differ => format!("more than a quarter off the recording:\n{differ}"),
    }
}

/// `woken -25 %, p99 +110 %`.
fn differences(line: &Line) -> String {
    let differences = line.differs.iter().map(|difference| {
        let figure = match difference.figure {
            Figure::Share => "share",
            Figure::WaitP50 => "p50",
            Figure::WaitP99 => "p99",
            Figure::Wakeups => "woken",
        };
        match difference.percent {
            Some(percent) => format!("{figure} {percent:+} %"),
            None => format!("{figure}: none recorded"),
        }
    });
    itertools::join(differences, ", ")
}

fn cells(figures: &Figures) -> [String; 4] {
    let wait = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), time);
    let (whole, hundredths) = (figures.share / 100, figures.share % 100);
    [
        format!("{whole}.{} %", hundredths / 10),
        wait(figures.wait_p50_ns),
        wait(figures.wait_p99_ns),
        figures.wakeups_per_second.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use warmq_replay::Difference;

    use super::*;

    #[test]
    fn lines_say_what_differs() {
        let line = |task: usize, differs| Line {
            task: format!("task {task}"),
            tasks: 1,
            differs,
            ..Line::default()
        };
        let differs = |figure, percent| Difference { figure, percent };
        let mut lines: Vec<Line> = (0..MOST + 1).map(|task| line(task, Vec::new())).collect();
        assert_eq!(
            differing(&lines),
            "nothing differs from the recording by more than a quarter"
        );
        let wakeups = differs(Figure::Wakeups, Some(-81));
        lines[0].differs = vec![wakeups, differs(Figure::WaitP99, Some(220))];
        // The table has no room for this one.
        lines[MOST].differs = vec![differs(Figure::Share, None)];
        assert_eq!(
            differing(&lines),
            "more than a quarter off the recording:\n  task 0: woken -81 %, p99 +220 %\n  \
             task 24: share: none recorded"
        );
    }
}
