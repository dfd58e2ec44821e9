//! A replay as text.

use warmq_replay::{Figures, Line};
use warmq_trace::Header;

use super::Replayed;
use crate::diagnose::text::time;
use crate::listing;
use crate::output::Screen;

/// So many tasks are told.
const MOST: usize = 24;

/// What a recording is of: `guest, Debian 6.18.5, kernel`.
pub fn facts(header: &Header) -> String {
    let about = [
        &header.world,
        &header.machine,
        &header.kernel,
        &header.scheduler,
    ];
    let about = about.into_iter().filter(|it| !it.is_empty());
    about.map(String::as_str).collect::<Vec<_>>().join(", ")
}

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
    let mut parts = vec![head, table(&replayed.lines)];
    let missing = replayed
        .missing
        .iter()
        .map(|it| format!("not as recorded: {it}"));
    let missing: Vec<String> = missing.collect();
    if !missing.is_empty() {
        parts.push(missing.join("\n"));
    }
    parts.push(Screen::of_results().terminal().section(&replayed.section));
    parts.join("\n\n")
}

fn table(lines: &[Line]) -> String {
    let mut table = listing::table();
    table.set_header([
        "task",
        "recorded: share",
        "wait p50",
        "p99",
        "woken/s",
        "replayed: share",
        "wait p50",
        "p99",
        "woken/s",
    ]);
    for line in lines.iter().take(MOST) {
        let name = match line.tasks {
            1 => line.task.clone(),
            tasks => format!("{} ({tasks})", line.task),
        };
        let cells = [&line.recorded, &line.replayed].into_iter().flat_map(cells);
        table.add_row(std::iter::once(name).chain(cells));
    }
    listing::align_numbers(&mut table, Some(0));
    let rest = match lines.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!("\n{more} more had less"),
    };
    format!("{}{rest}", table.trim_fmt())
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
