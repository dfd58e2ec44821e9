//! Who waited in a run, and who ran instead, with a picture of it.

use std::collections::BTreeMap;

use warmq_trace::{Board, Comm, Doing, Ended, Known, Names, Record, Stretch, Work};
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

/// A wait of a task: who, from when and until when.
pub type Wait = (TaskId, Instant, Instant);

/// The longest wait between `from` and `end` of a task of `table`, or of any of the scenario's.
/// None if no task waited.
pub fn longest_wait(
    records: &[(Instant, Record)],
    names: &Names,
    table: Option<usize>,
    (from, end): (Instant, Instant),
) -> Option<Evidence> {
    let within = || records.iter().take_while(|(at, _)| *at <= end);
    let mut longest = Longest {
        table,
        from,
        known: Known::default(),
        wait: None,
    };
    let mut board = Board::default();
    for (at, record) in within() {
        longest.known.learn(record);
        board
            .see(*at, record)
            .iter()
            .for_each(|stretch| longest.look(stretch));
    }
    board.open(end).for_each(|stretch| longest.look(&stretch));
    let mut pictures = Pictures::of(names, [longest.wait?]);
    for (at, record) in within() {
        pictures.see(*at, record);
    }
    pictures.finish(end).pop()
}

/// The longest wait so far of a table's tasks.
struct Longest {
    table: Option<usize>,
    from: Instant,
    known: Known,
    wait: Option<Wait>,
}

impl Longest {
    fn look(&mut self, ended: &Ended) {
        let Stretch::Task {
            task,
            did: Doing::Waits(_),
            ..
        } = ended.stretch
        else {
            return;
        };
        let role = self.known.who(task).and_then(|who| who.role);
        let meant = match (role, self.table) {
            (Some((role, _)), Some(table)) => role as usize == table,
            (role, None) => role.is_some(),
            (None, Some(_)) => false,
        };
        let longest = self.wait.map(|(_, from, to)| to.since(from));
        if meant && ended.since(self.from) > longest.unwrap_or_default() {
            self.wait = Some((task, ended.from.max(self.from), ended.to));
        }
    }
}

/// What the CPUs did during some waits, which are known before: one pass over all records shows
/// them all.
#[derive(Debug)]
pub struct Pictures {
    names: Names,
    board: Board,
    known: Known,
    waits: Vec<(TaskId, Result<Evidence, Shown>)>,
    last: Instant,
}

impl Pictures {
    /// Of these waits, in a run of these names.
    pub fn of(names: &Names, waits: impl IntoIterator<Item = Wait>) -> Pictures {
        let shown = |(task, from, to)| (task, Err(Shown::of(from, to)));
        Pictures {
            names: names.clone(),
            board: Board::default(),
            known: Known::default(),
            waits: waits.into_iter().map(shown).collect(),
            last: Instant::START,
        }
    }

    /// Takes in the next record.
    pub fn see(&mut self, at: Instant, record: &Record) {
        self.close(at, false);
        self.last = at;
        self.known.learn(record);
        let ended = self.board.see(at, record);
        for (_, shown) in &mut self.waits {
            if let Err(shown) = shown {
                ended.iter().for_each(|stretch| shown.add(stretch));
            }
        }
    }

    /// Whether all waits are shown: no more records are needed.
    pub fn is_complete(&self) -> bool {
        self.waits.iter().all(|(_, shown)| shown.is_ok())
    }

    /// All of them, in the order in which they were given. What goes on lasts until `end`.
    pub fn finish(mut self, end: Instant) -> Vec<Evidence> {
        self.close(end.max(self.last), true);
        let all = self.waits.into_iter();
        let mut all: Vec<Evidence> = all.filter_map(|(_, shown)| shown.ok()).collect();
        for evidence in &mut all {
            evidence.chart.show(self.board.cpus());
        }
        all
    }

    /// Closes what is shown until before `at`, or everything.
    fn close(&mut self, at: Instant, all: bool) {
        for (task, wait) in &mut self.waits {
            if let Err(shown) = wait
                && (all || shown.to < at)
            {
                let end = shown.to.min(at.max(shown.wait.1));
                self.board.open(end).for_each(|stretch| shown.add(&stretch));
                *wait = Ok(shown.evidence(*task, &self.known, &self.names));
            }
        }
    }
}

impl Chart {
    /// CPUs that idled are shown, too.
    fn show(&mut self, cpus: impl Iterator<Item = CpuId>) {
        for cpu in cpus {
            let place = self.cpus.binary_search_by_key(&cpu, |(known, _)| *known);
            if let Err(place) = place {
                self.cpus.insert(place, (cpu, vec![None; CELLS]));
            }
        }
    }
}

/// Who ran around a wait: sums for each part of a chart, so that their number does not grow with
/// the wait.
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

    fn add(&mut self, ran: &Ended) {
        let Stretch::Cpu {
            cpu,
            did: Work::Runs(task),
            ..
        } = ran.stretch
        else {
            return;
        };
        let waited = ran.within(self.wait.0, self.wait.1);
        if waited > Duration::ZERO {
            *self.ran.entry((task, cpu)).or_default() += waited;
        }
        if ran.within(self.from, self.to) == Duration::ZERO {
            return;
        }
        let place =
            |at: Instant| (at.clamp(self.from, self.to).since(self.from).0 / self.cell.0) as usize;
        for index in place(ran.from)..=place(ran.to).min(CELLS - 1) {
            let begins = self.from + Duration(index as u64 * self.cell.0);
            let span = ran.within(begins, begins + self.cell);
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
            let cell = cell.iter();
            let most = cell.max_by_key(|(task, span)| (**span, std::cmp::Reverse(**task)));
            if let (Some((task, _)), Some((_, cells))) = (most, cpus.last_mut()) {
                let name = name(*task);
                let known = who.iter().position(|known| *known == name);
                let place = known.unwrap_or_else(|| {
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

    fn evidence(&self, task: TaskId, known: &Known, names: &Names) -> Evidence {
        let name = |task: TaskId| name(task, known, names);
        let may_use = |cpu: CpuId| known.who(task).is_none_or(|who| who.cpus.has(cpu));
        let mut ran: BTreeMap<String, Duration> = BTreeMap::new();
        for ((task, cpu), span) in &self.ran {
            if may_use(*cpu) {
                *ran.entry(name(*task)).or_default() += *span;
            }
        }
        let mut ran: Vec<(String, Duration)> = ran.into_iter().collect();
        ran.sort_by_key(|(name, span)| (std::cmp::Reverse(*span), name.clone()));
        Evidence {
            task: name(task),
            from: self.wait.0,
            to: self.wait.1,
            ran,
            chart: self.chart(&name),
        }
    }
}

fn name(task: TaskId, known: &Known, names: &Names) -> String {
    let who = known.who(task);
    if let Some((table, number)) = who.and_then(|who| who.role)
        && let Some(name) = names.tasks.get(table as usize)
    {
        return format!("{name} {number}");
    }
    let comm = who.map(|who| who.comm);
    let comm = comm.filter(|comm| *comm != Comm::default());
    comm.map_or_else(|| format!("task {}", task.0), |comm| comm.to_string())
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
    fn the_longest_wait_shows_who_ran_instead() {
        let found = longest_wait(&story(), &names(), Some(1), (ms(0), ms(50))).unwrap();
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
    fn what_ran_during_a_given_wait_is_shown_of_any_task() {
        let mut story = story();
        story.retain(|(_, record)| !matches!(record, Record::Role { .. }));
        let mut pictures = Pictures::of(&names(), [(B, ms(16), ms(40))]);
        story
            .iter()
            .for_each(|(at, record)| pictures.see(*at, record));
        let found = pictures.finish(ms(40)).remove(0);
        assert_eq!(found.ran, [("task 1".to_owned(), Duration::from_ms(24))]);
        assert_eq!((found.task.as_str(), found.to), ("task 2", ms(40)));
    }

    #[test]
    fn one_pass_shows_several_waits_each_with_what_was_so_then() {
        let elsewhere = Record::Affinity {
            task: B,
            from: CpuId(0),
            cpus: 0b10,
        };
        let other = CpuId(1);
        let idles = Record::Switch {
            cpu: other,
            prev: None,
            prev_runnable: false,
            next: None,
        };
        let mut story = story();
        story.insert(2, (ms(1), idles));
        story.extend([(ms(60), elsewhere), (ms(61), switch(Some(B), Some(A)))]);
        let shown = |waits: &[Wait]| {
            let mut pictures = Pictures::of(&names(), waits.iter().copied());
            for (at, record) in &story {
                pictures.see(*at, record);
            }
            (pictures.is_complete(), pictures.finish(ms(90)))
        };
        let waits = [
            (B, ms(16), ms(40)),
            (B, ms(10), ms(14)),
            (B, ms(61), ms(90)),
        ];
        let (complete, all) = shown(&waits);
        assert!(!complete, "the last one lasts");
        let each: Vec<Evidence> = waits.iter().flat_map(|wait| shown(&[*wait]).1).collect();
        assert_eq!(all, each);
        let hog = |span| vec![("hog 0".to_owned(), Duration::from_ms(span))];
        let ran: Vec<_> = all.iter().map(|evidence| evidence.ran.clone()).collect();
        assert_eq!(
            ran,
            [hog(24), hog(4), vec![]],
            "it may not run there any more"
        );
        let rows: Vec<CpuId> = all[0].chart.cpus.iter().map(|(cpu, _)| *cpu).collect();
        assert_eq!(rows, [CpuId(0), other], "one that idles is shown, too");
        assert!(shown(&waits[..2]).0);
    }

    #[test]
    fn a_wait_that_lasts_counts_and_what_came_before_the_measurement_does_not() {
        let found = longest_wait(&story(), &names(), Some(0), (ms(0), ms(90))).unwrap();
        assert_eq!((found.from, found.to), (ms(40), ms(90)));
        let found = longest_wait(&story(), &names(), Some(1), (ms(30), ms(90))).unwrap();
        assert_eq!((found.from, found.to), (ms(30), ms(40)));
        assert_eq!(longest_wait(&[], &names(), None, (ms(0), ms(9))), None);
    }
}
