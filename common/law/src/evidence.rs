//! Who waited longest in a run, and who ran instead.

use std::collections::BTreeMap;

use warmq_trace::{Comm, Names, Record, Table};
use warmq_units::{CpuId, Duration, Instant, TaskId};

/// In how many parts a chart shows its time.
const CELLS: usize = 240;

/// The longest wait of a task, and what the CPUs did meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Who waited.
    pub task: String,
    /// From when.
    pub from: Instant,
    /// Until when.
    pub to: Instant,
    /// Who ran meanwhile on a CPU that it may use, most first.
    pub ran: Vec<(String, Duration)>,
    /// Who ran when.
    pub chart: Chart,
}

/// Who ran on each CPU, in parts of equal length; whoever had most of a part has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// When it begins.
    pub from: Instant,
    /// When it ends.
    pub to: Instant,
    /// Who ran; cells refer to them by place.
    pub who: Vec<String>,
    /// Of each CPU each part; nobody where it idled.
    pub cpus: Vec<(CpuId, Vec<Option<usize>>)>,
}

/// A time on a CPU.
#[derive(Clone, Copy)]
struct Stretch {
    cpu: CpuId,
    task: TaskId,
    from: Instant,
    to: Instant,
}

/// What a task is called and how long it has been runnable without a CPU.
#[derive(Clone, Debug, Default)]
struct Known {
    role: Option<(usize, u64)>,
    comm: Option<Comm>,
    waits_since: Option<Instant>,
    runs: bool,
    allowed: BTreeMap<u16, u64>,
}

/// The longest wait between `from` and `end` of a task of `table`, or of any of the scenario's.
/// None if no task waited.
pub fn evidence(
    records: &[(Instant, Record)],
    names: &Names,
    table: Option<usize>,
    (from, end): (Instant, Instant),
) -> Option<Evidence> {
    let mut story = Story::default();
    for (at, record) in records.iter().take_while(|(at, _)| *at <= end) {
        story.see(*at, record, table, from);
    }
    story.end(end, table, from);
    let (task, began, ended) = story.longest?;
    Some(story.told(names, task, (began, ended)))
}

/// What the CPUs did while `task` waited from `from` to `to`. All records up to `to` are to be given,
/// and some beyond: a tenth of the wait after its end is shown, too.
pub fn evidence_of(
    records: impl IntoIterator<Item = (Instant, Record)>,
    names: &Names,
    task: TaskId,
    (from, to): (Instant, Instant),
) -> Evidence {
    let shown = Shown::of(from, to);
    let until = shown.to;
    let mut story = Story {
        kept: Kept::Shown(shown),
        ..Story::default()
    };
    let mut last = to;
    for (at, record) in records {
        if at > until {
            last = until;
            break;
        }
        last = last.max(at);
        story.see(at, &record, None, from);
    }
    story.end(last, None, from);
    story.told(names, task, (from, to))
}

/// Who ran around a wait: sums for each part of a chart, so that their number does not grow with the wait.
#[derive(Clone, Debug, Default)]
struct Shown {
    from: Instant,
    to: Instant,
    wait: (Instant, Instant),
    cell: Duration,
    /// For how long each had each part of each CPU.
    cells: BTreeMap<(CpuId, usize), BTreeMap<TaskId, Duration>>,
    /// The same of the wait.
    ran: BTreeMap<(TaskId, CpuId), Duration>,
}

impl Shown {
    /// A tenth before and after a wait shows what it was between.
    fn of(began: Instant, ended: Instant) -> Shown {
        let margin = Duration(ended.since(began).0 / 10 + 1);
        let from = Instant(began.0.saturating_sub(margin.0));
        let to = ended + margin;
        Shown {
            from,
            to,
            wait: (began, ended),
            cell: Duration((to.since(from).0 / CELLS as u64).max(1)),
            ..Shown::default()
        }
    }

    fn add(&mut self, stretch: &Stretch) {
        let Stretch { cpu, task, .. } = *stretch;
        let waited = overlap(stretch, self.wait.0, self.wait.1);
        if waited > Duration::ZERO {
            *self.ran.entry((task, cpu)).or_default() += waited;
        }
        // A CPU that idled is shown, too.
        self.cells.entry((cpu, 0)).or_default();
        if overlap(stretch, self.from, self.to) == Duration::ZERO {
            return;
        }
        let place =
            |at: Instant| (at.clamp(self.from, self.to).since(self.from).0 / self.cell.0) as usize;
        for index in place(stretch.from)..=place(stretch.to).min(CELLS - 1) {
            let begins = self.from + Duration(index as u64 * self.cell.0);
            let span = overlap(stretch, begins, begins + self.cell);
            if span > Duration::ZERO {
                let cell = self.cells.entry((cpu, index)).or_default();
                *cell.entry(task).or_default() += span;
            }
        }
    }

    fn chart(&self, name: &dyn Fn(TaskId) -> String) -> Chart {
        let mut who: Vec<String> = Vec::new();
        let mut cpus: Vec<(CpuId, Vec<Option<usize>>)> = Vec::new();
        for ((cpu, index), cell) in &self.cells {
            if cpus.last().is_none_or(|(last, _)| last != cpu) {
                cpus.push((*cpu, vec![None; CELLS]));
            }
            let most = cell
                .iter()
                .max_by_key(|(task, span)| (**span, std::cmp::Reverse(**task)));
            if let (Some((task, _)), Some((_, cells))) = (most, cpus.last_mut()) {
                let name = name(*task);
                let place = who.iter().position(|it| *it == name).unwrap_or_else(|| {
                    who.push(name);
                    who.len() - 1
                });
                cells[*index] = Some(place);
            }
        }
        Chart {
            from: self.from,
            to: self.to,
            who,
            cpus,
        }
    }
}

/// What is kept of who ran.
enum Kept {
    /// All, since nobody knows yet which wait is shown.
    All(Vec<Stretch>),
    /// What is shown.
    Shown(Shown),
}

impl Story {
    fn told(&self, names: &Names, task: TaskId, (began, ended): (Instant, Instant)) -> Evidence {
        let shown = match &self.kept {
            Kept::Shown(shown) => shown.clone(),
            Kept::All(stretches) => {
                let mut shown = Shown::of(began, ended);
                stretches.iter().for_each(|it| shown.add(it));
                shown
            }
        };
        let name = |task: TaskId| self.name(task, names);
        let may_use = |cpu: CpuId| self.tasks.get(task).is_none_or(|it| it.may_use(cpu));
        let mut ran: BTreeMap<String, Duration> = BTreeMap::new();
        for ((task, cpu), span) in &shown.ran {
            if may_use(*cpu) {
                *ran.entry(name(*task)).or_default() += *span;
            }
        }
        let mut ran: Vec<(String, Duration)> = ran.into_iter().collect();
        ran.sort_by_key(|(name, span)| (std::cmp::Reverse(*span), name.clone()));
        Evidence {
            task: name(task),
            from: began,
            to: ended,
            ran,
            chart: shown.chart(&name),
        }
    }
}

fn overlap(stretch: &Stretch, from: Instant, to: Instant) -> Duration {
    stretch.to.min(to).since(stretch.from.max(from))
}

impl Known {
    fn may_use(&self, cpu: CpuId) -> bool {
        let word = self.allowed.get(&(cpu.0 / 64));
        word.is_none_or(|word| word >> (cpu.0 % 64) & 1 == 1)
    }
}

/// What was seen so far.
struct Story {
    kept: Kept,
    tasks: Table<TaskId, Known>,
    running: BTreeMap<CpuId, (TaskId, Instant)>,
    longest: Option<(TaskId, Instant, Instant)>,
}

impl Default for Story {
    fn default() -> Story {
        Story {
            kept: Kept::All(Vec::new()),
            tasks: Table::default(),
            running: BTreeMap::new(),
            longest: None,
        }
    }
}

impl Story {
    fn name(&self, task: TaskId, names: &Names) -> String {
        let known = self.tasks.get(task);
        let role = known.and_then(|it| it.role);
        if let Some((table, number)) = role
            && let Some(name) = names.tasks.get(table)
        {
            return format!("{name} {number}");
        }
        let comm = known.and_then(|it| it.comm);
        comm.map_or_else(|| format!("task {}", task.0), |comm| comm.to_string())
    }

    fn see(&mut self, at: Instant, record: &Record, table: Option<usize>, from: Instant) {
        match *record {
            Record::Role {
                task,
                table,
                number,
            } => self.tasks.touch(task).role = Some((table as usize, number.into())),
            Record::Fork {
                child: task, comm, ..
            }
            | Record::Renamed { task, comm } => self.tasks.touch(task).comm = Some(comm),
            Record::Affinity { task, from, cpus } => {
                self.tasks.touch(task).allowed.insert(from.0 / 64, cpus);
            }
            Record::Wakeup { task, .. } => {
                let task = self.tasks.touch(task);
                if !task.runs {
                    task.waits_since.get_or_insert(at);
                }
            }
            Record::Exit { task, .. } => self.tasks.touch(task).waits_since = None,
            Record::Switch {
                cpu,
                prev,
                prev_runnable,
                next,
            } => {
                if let Some((task, since)) = self.running.remove(&cpu) {
                    self.ran(task, cpu, since, at);
                }
                if let Some(prev) = prev.filter(|prev| Some(*prev) != next) {
                    let task = self.tasks.touch(prev);
                    task.runs = false;
                    task.waits_since = prev_runnable.then_some(at);
                }
                if let Some(next) = next {
                    self.stops_waiting(at, next, table, from);
                    self.tasks.touch(next).runs = true;
                    self.running.insert(cpu, (next, at));
                }
            }
            _ => {}
        }
    }

    fn ran(&mut self, task: TaskId, cpu: CpuId, from: Instant, to: Instant) {
        let stretch = Stretch {
            cpu,
            task,
            from,
            to,
        };
        match &mut self.kept {
            Kept::All(stretches) => stretches.push(stretch),
            Kept::Shown(shown) => shown.add(&stretch),
        }
    }

    fn stops_waiting(&mut self, at: Instant, id: TaskId, table: Option<usize>, from: Instant) {
        let task = self.tasks.touch(id);
        let Some(since) = task.waits_since.take() else {
            return;
        };
        let meant = match (task.role, table) {
            (Some((role, _)), Some(table)) => role == table,
            (role, None) => role.is_some(),
            (None, Some(_)) => false,
        };
        let since = since.max(from);
        let longest = self.longest.map(|(_, from, to)| to.since(from));
        if meant && at > since && longest.is_none_or(|longest| at.since(since) > longest) {
            self.longest = Some((id, since, at));
        }
    }

    fn end(&mut self, end: Instant, table: Option<usize>, from: Instant) {
        for (cpu, (task, since)) in std::mem::take(&mut self.running) {
            self.ran(task, cpu, since, end);
        }
        let all: Vec<TaskId> = self.tasks.iter().map(|(id, _)| id).collect();
        for task in all {
            self.stops_waiting(end, task, table, from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TaskId = TaskId(1);
    const B: TaskId = TaskId(2);

    fn ms(ms: u64) -> Instant {
        Instant::START + Duration::from_ms(ms)
    }

    fn switch(prev: Option<TaskId>, next: Option<TaskId>) -> Record {
        Record::Switch {
            cpu: CpuId(0),
            prev,
            prev_runnable: prev.is_some(),
            next,
        }
    }

    fn role(task: TaskId, table: u32) -> Record {
        let number = 0;
        Record::Role {
            task,
            table,
            number,
        }
    }

    fn names() -> Names {
        Names {
            tasks: vec!["hog".to_owned(), "audio".to_owned()],
            ..Names::default()
        }
    }

    fn woken(task: TaskId) -> Record {
        Record::Wakeup {
            waker: CpuId(0),
            task,
            target: CpuId(0),
        }
    }

    fn story() -> Vec<(Instant, Record)> {
        vec![
            (ms(0), role(A, 0)),
            (ms(0), role(B, 1)),
            (ms(1), switch(None, Some(A))),
            (ms(10), woken(B)),
            (ms(14), switch(Some(A), Some(B))),
            (ms(16), switch(Some(B), Some(A))),
            (ms(40), switch(Some(A), Some(B))),
        ]
    }

    #[test]
    fn the_longest_wait_tells_who_ran_instead() {
        let found = evidence(&story(), &names(), Some(1), (ms(0), ms(50))).unwrap();
        assert_eq!(
            (found.task.as_str(), found.from, found.to),
            ("audio 0", ms(16), ms(40))
        );
        assert_eq!(found.ran, [("hog 0".to_owned(), Duration::from_ms(24))]);
        let [(cpu, cells)] = &found.chart.cpus[..] else {
            panic!("one CPU");
        };
        assert_eq!((*cpu, cells.len()), (CpuId(0), CELLS));
        let ran = |cell: usize| cells[cell].map(|who| found.chart.who[who].as_str());
        assert_eq!(
            (ran(10), ran(CELLS / 2), ran(CELLS - 2)),
            (Some("audio 0"), Some("hog 0"), Some("audio 0"))
        );
    }

    #[test]
    fn what_ran_during_a_given_wait_is_told_of_any_task() {
        let mut story = story();
        story.retain(|(_, record)| !matches!(record, Record::Role { .. }));
        let found = evidence_of(story, &names(), B, (ms(16), ms(40)));
        assert_eq!(found.ran, [("task 1".to_owned(), Duration::from_ms(24))]);
        assert_eq!((found.task.as_str(), found.to), ("task 2", ms(40)));
    }

    #[test]
    fn a_wait_that_lasts_counts_and_what_came_before_the_measurement_does_not() {
        let found = evidence(&story(), &names(), Some(0), (ms(0), ms(90))).unwrap();
        assert_eq!((found.from, found.to), (ms(40), ms(90)));
        let found = evidence(&story(), &names(), Some(1), (ms(30), ms(90))).unwrap();
        assert_eq!((found.from, found.to), (ms(30), ms(40)));
        assert_eq!(evidence(&[], &names(), None, (ms(0), ms(9))), None);
    }
}
