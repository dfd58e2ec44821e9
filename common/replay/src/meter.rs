//! The same figures of a recording and of its replay.

use std::collections::BTreeMap;

use serde::Serialize;
use warmq_metrics::Spans;
use warmq_trace::{Board, Ended, Observer, Record, Stretch, Table, Work};
use warmq_units::{Duration, Instant, TaskId};

use crate::differs::{Difference, differences};

/// The waits of more tasks than these are not kept: each takes some 100 KB.
const MOST_TASKS: usize = 2_000;

/// Measures how long each task ran and waited for a CPU.
#[derive(Debug)]
pub struct Meter {
    tasks: Table<TaskId, Measured>,
    board: Board,
    kept: usize,
    from: Instant,
    until: Instant,
    last: Instant,
}

#[derive(Clone, Debug, Default)]
struct Measured {
    ran: Duration,
    wakeups: u64,
    /// From the wakeup to the CPU.
    waits: Option<Box<Spans>>,
    role: Option<u32>,
}

impl Meter {
    /// Measures what happens from `from` to `until`.
    pub fn new(from: Instant, until: Instant) -> Meter {
        Meter {
            tasks: Table::default(),
            board: Board::default(),
            kept: 0,
            from,
            until,
            last: from,
        }
    }

    /// `task`, which was woken then, runs.
    fn runs(&mut self, at: Instant, task: TaskId, woken: Instant) {
        let measured = self.tasks.touch(task);
        if measured.waits.is_none() && self.kept < MOST_TASKS {
            self.kept += 1;
            measured.waits = Some(Box::default());
        }
        if let Some(waits) = &mut measured.waits {
            waits.add(at.since(woken));
        }
    }

    /// For how long CPUs ran tasks until now, all together, and how long was measured.
    pub fn busy(&mut self) -> (Duration, Duration) {
        let time = self.close();
        let ran = self.tasks.iter().map(|(_, task)| task.ran);
        (ran.sum(), time)
    }

    /// Ends what is going on; returns how long was measured.
    fn close(&mut self) -> Duration {
        let end = self.last;
        for open in std::mem::take(&mut self.board).open(end) {
            count(&mut self.tasks, self.from, &open, None);
        }
        end.since(self.from)
    }
}

/// Counts what ran; `first` ran where nobody knows, if that was from the beginning.
fn count(tasks: &mut Table<TaskId, Measured>, from: Instant, ended: &Ended, first: Option<TaskId>) {
    let Stretch::Cpu { did, .. } = ended.stretch else {
        return;
    };
    let ran = match did {
        Work::Runs(task) => Some(task),
        Work::Unknown if ended.from == Instant::START => first,
        Work::Unknown | Work::Idle | Work::Offline => None,
    };
    if let Some(task) = ran {
        tasks.touch(task).ran += ended.since(from);
    }
}

impl Observer for Meter {
    const DETAIL: bool = false;

    fn see(&mut self, at: Instant, record: &Record) {
        if at > self.until {
            return;
        }
        self.last = self.last.max(at);
        let ended = self.board.see(at, record);
        let prev = match *record {
            Record::Switch { prev, .. } => prev,
            _ => None,
        };
        for ended in ended {
            count(&mut self.tasks, self.from, ended, prev);
        }
        if let Some((task, woken)) = self.board.served()
            && woken >= self.from
        {
            self.runs(at, task, woken);
        }
        match *record {
            Record::Wakeup { task, .. } => {
                self.tasks.touch(task).wakeups += u64::from(at >= self.from);
            }
            Record::Role { task, table, .. } => self.tasks.touch(task).role = Some(table),
            _ => {}
        }
    }
}

/// Figures of one task, or of those of one name together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Its CPU time of one CPU's, in hundredths of a percent.
    pub share: u64,
    /// How long it waited for a CPU after a wakeup, in ns: the median; none without a wait.
    pub wait_p50_ns: Option<u64>,
    /// The same, at the 99th percentile.
    pub wait_p99_ns: Option<u64>,
    /// How often it was woken in a second.
    pub wakeups_per_second: u64,
}

/// What was recorded of a task, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Line {
    /// The task, or the name of several.
    pub task: String,
    /// How many tasks there are of that name.
    pub tasks: u64,
    /// What was recorded.
    pub recorded: Figures,
    /// What became of it.
    pub replayed: Figures,
    /// What differs by more than a quarter.
    pub differs: Vec<Difference>,
}

/// Sums of tasks of one name.
#[derive(Default)]
struct Sum {
    ran: Duration,
    wakeups: u64,
    waits: Spans,
}

impl Sum {
    fn add(&mut self, measured: &Measured) {
        self.ran += measured.ran;
        self.wakeups += measured.wakeups;
        if let Some(waits) = &measured.waits {
            self.waits.merge(waits);
        }
    }

    fn figures(&self, time: Duration) -> Figures {
        let of_time = |sum: u128| (sum / u128::from(time.0.max(1))) as u64;
        let waited = self.waits.count() > 0;
        let wait = |percent| waited.then(|| self.waits.percentile(percent).as_ns());
        Figures {
            share: of_time(u128::from(self.ran.0) * 10_000),
            wait_p50_ns: wait(50.0),
            wait_p99_ns: wait(99.0),
            wakeups_per_second: of_time(
                u128::from(self.wakeups) * u128::from(Duration::from_s(1).0),
            ),
        }
    }
}

/// Both beside each other: of each task of `tasks`, which are called so, in the order of a replay's
/// tables. Tasks of one name are taken together where there are more than `most`. Whoever ran most
/// comes first.
pub fn beside(
    mut recorded: Meter,
    mut replayed: Meter,
    tasks: &[(TaskId, String)],
    most: usize,
) -> Vec<Line> {
    let times = (recorded.close(), replayed.close());
    let played: BTreeMap<u32, &Measured> = replayed
        .tasks
        .iter()
        .filter_map(|(_, task)| Some((task.role?, task)))
        .collect();
    let mut sums: BTreeMap<&str, (u64, Sum, Sum)> = BTreeMap::new();
    for (table, (id, name)) in (0..).zip(tasks) {
        let name = match tasks.len() > most {
            true => without_number(name),
            false => name,
        };
        let (count, before, after) = sums.entry(name).or_default();
        *count += 1;
        if let Some(measured) = recorded.tasks.get(*id) {
            before.add(measured);
        }
        if let Some(measured) = played.get(&table) {
            after.add(measured);
        }
    }
    let line = |(task, (tasks, before, after)): (&str, (u64, Sum, Sum))| {
        let (recorded, replayed) = (before.figures(times.0), after.figures(times.1));
        Line {
            task: task.to_owned(),
            tasks,
            differs: differences(&recorded, &replayed),
            recorded,
            replayed,
        }
    };
    let mut lines: Vec<Line> = sums.into_iter().map(line).collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.recorded.share.max(line.replayed.share)));
    lines
}

/// `hog 3` without the number.
fn without_number(name: &str) -> &str {
    match name.rsplit_once(' ') {
        Some((before, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => before,
        _ => name,
    }
}
