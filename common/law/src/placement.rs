//! Where tasks run, against where they should: with their data, with whoever wakes them, and one on
//! each core.

use std::collections::BTreeMap;

use warmq_metrics::Described;
use warmq_trace::{Board, Context, Doing, Ended, Record, Stretch, Table, Work};
use warmq_units::{CpuId, Duration, Instant, TaskId};

const FRAGMENT_AWAY: &str = "fragment_away_share";
const WOKEN_ACROSS: &str = "woken_across_share";
const CORE_CROWDED: &str = "core_crowded_share";

/// The figures of this module.
pub(crate) fn described() -> impl Iterator<Item = Described> {
    let all = [
        (
            FRAGMENT_AWAY,
            "of the CPU time of tasks that name a fragment, what they had under another last-level \
             cache than the one where tasks of that fragment ran most",
        ),
        (
            WOKEN_ACROSS,
            "of the times that a task of the scenario woke another, those where the other then ran \
             under another last-level cache",
        ),
        (
            CORE_CROWDED,
            "of the time measured, that in which tasks of the scenario had two CPUs of a core while \
             another core was idle",
        ),
    ];
    all.into_iter().map(|(name, what)| Described {
        name: name.to_owned(),
        unit: "%",
        what: what.to_owned(),
    })
}

/// The core and the last-level cache of each CPU, by its number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(pub Vec<(u16, u16)>);

impl Places {
    /// A CPU that is not known is alone.
    fn core(&self, cpu: CpuId) -> u16 {
        self.0.get(cpu.index()).map_or(cpu.0, |(core, _)| *core)
    }

    fn llc(&self, cpu: CpuId) -> u16 {
        self.0.get(cpu.index()).map_or(cpu.0, |(_, llc)| *llc)
    }
}

type Fragment = (u32, u32);

/// Follows where the tasks of a scenario run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Placement {
    places: Places,
    from: Instant,
    /// What each task uses, and since when.
    fragment: Table<TaskId, (Option<Fragment>, Instant)>,
    /// Under which cache another task of the scenario woke the task.
    woken_under: Table<TaskId, Option<u16>>,
    /// How long tasks of each fragment ran under each cache.
    ran: BTreeMap<Fragment, BTreeMap<u16, Duration>>,
    wakeups: u64,
    across: u64,
    /// Since when a core has been crowded.
    crowded_since: Option<Instant>,
    crowded: Duration,
}

impl Placement {
    pub(crate) fn of(places: Places, from: Instant) -> Placement {
        Placement {
            places,
            from,
            ..Placement::default()
        }
    }

    /// `board` has seen `record` already; `ours` says whether a task is one of the scenario's.
    pub(crate) fn see(
        &mut self,
        at: Instant,
        record: &Record,
        board: &Board,
        ours: impl Fn(TaskId) -> bool,
    ) {
        for ended in board.ended() {
            self.count(ended, &ours);
        }
        match *record {
            Record::Waking {
                cpu,
                waker: Some(waker),
                task,
                // What goes through a socket of this machine wakes in a softirq of the sender's.
                context: Context::Task | Context::Softirq,
                ..
            } if ours(waker) && ours(task) => {
                *self.woken_under.touch(task) = Some(self.places.llc(cpu));
            }
            Record::Fragment { task, fragment } => {
                // What a running task had so far belongs to the fragment that it named so far.
                if let (Doing::Runs(cpu), Some(ran)) = (board.doing(task), board.open_of(at, task))
                    && ours(task)
                {
                    self.ran(cpu, task, &ran);
                }
                *self.fragment.touch(task) = (fragment, at);
            }
            Record::Switch { .. } => self.look_at_cores(at, board, &ours),
            _ => {}
        }
    }

    /// Counts what ended on a CPU, and what begins there.
    fn count(&mut self, ended: &Ended, ours: &impl Fn(TaskId) -> bool) {
        let Stretch::Cpu { cpu, did, then } = ended.stretch else {
            return;
        };
        if let Work::Runs(task) = did
            && ours(task)
        {
            self.ran(cpu, task, ended);
        }
        if let Work::Runs(task) = then
            && ours(task)
            && let Some(llc) = self.woken_under.touch(task).take()
            && ended.to >= self.from
        {
            self.wakeups += 1;
            self.across += u64::from(llc != self.places.llc(cpu));
        }
    }

    /// `task` ran on `cpu`.
    fn ran(&mut self, cpu: CpuId, task: TaskId, ended: &Ended) {
        if let Some((Some(fragment), named)) = self.fragment.get(task) {
            let under = self.ran.entry(*fragment).or_default();
            let span = ended.since(self.from.max(*named));
            *under.entry(self.places.llc(cpu)).or_default() += span;
        }
    }

    fn look_at_cores(&mut self, at: Instant, board: &Board, ours: &impl Fn(TaskId) -> bool) {
        let mut busy: BTreeMap<u16, u32> = BTreeMap::new();
        for (core, _) in &self.places.0 {
            busy.insert(*core, 0);
        }
        for cpu in board.cpus() {
            if board.running(cpu).is_some_and(ours) {
                *busy.entry(self.places.core(cpu)).or_default() += 1;
            }
        }
        let crowded = busy.values().any(|load| *load > 1) && busy.values().any(|load| *load == 0);
        match (crowded, self.crowded_since) {
            (true, None) => self.crowded_since = Some(at),
            (false, Some(since)) => {
                self.crowded += at.since(since.max(self.from));
                self.crowded_since = None;
            }
            _ => {}
        }
    }

    /// What was measured up to `end`; a share of nothing is absent.
    pub(crate) fn figures(
        &self,
        board: &Board,
        end: Instant,
        ours: impl Fn(TaskId) -> bool,
    ) -> BTreeMap<String, f64> {
        let mut last = self.clone();
        for open in board.open(end) {
            if let Stretch::Cpu {
                cpu,
                did: Work::Runs(task),
                ..
            } = open.stretch
                && ours(task)
            {
                last.ran(cpu, task, &open);
            }
        }
        let (mut away, mut all) = (Duration::ZERO, Duration::ZERO);
        for under in last.ran.values() {
            let ran = under.values().fold(Duration::ZERO, |sum, ran| sum + *ran);
            all += ran;
            away += ran - under.values().copied().max().unwrap_or_default();
        }
        let open = self.crowded_since;
        let open = open.map_or(Duration::ZERO, |since| end.since(since.max(self.from)));
        let crowded = self.crowded + open;
        let shares = [
            (FRAGMENT_AWAY, away.0, all.0),
            (WOKEN_ACROSS, self.across, self.wakeups),
            (CORE_CROWDED, crowded.0, end.since(self.from).0),
        ];
        let shares = shares.into_iter().filter(|(_, _, whole)| *whole > 0);
        shares
            .map(|(name, part, whole)| (name.to_owned(), 100.0 * part as f64 / whole as f64))
            .collect()
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

    fn runs(cpu: u16, next: Option<TaskId>) -> Record {
        Record::Switch {
            cpu: CpuId(cpu),
            prev: None,
            prev_runnable: false,
            next,
        }
    }

    /// Measures from 10 to 110 ms; two CPUs a core, two cores, each under a cache of its own.
    fn figure(name: &str, records: &[(u64, Record)]) -> Option<f64> {
        let places = Places(vec![(0, 0), (0, 0), (1, 1), (1, 1)]);
        let mut placement = Placement::of(places, ms(10));
        let mut board = Board::default();
        let ours = |task| task == A || task == B;
        for (at, record) in records {
            board.see(ms(*at), record);
            placement.see(ms(*at), record, &board, ours);
        }
        placement.figures(&board, ms(110), ours).get(name).copied()
    }

    #[test]
    fn time_away_from_the_cache_of_most_is_counted_by_fragment() {
        let names = |task| Record::Fragment {
            task,
            fragment: Some((1, 7)),
        };
        let records = [
            (0, names(A)),
            (0, runs(0, Some(A))),
            (30, names(B)),
            (30, runs(2, Some(B))),
            (70, runs(2, None)),
        ];
        // A had 100 ms at home, B 40 ms away.
        let away = figure(FRAGMENT_AWAY, &records).unwrap();
        assert!((away - 100.0 * 40.0 / 140.0).abs() < 1e-9, "{away}");
        assert_eq!(figure(FRAGMENT_AWAY, &records[1..2]), None);
        assert_eq!(figure(FRAGMENT_AWAY, &records[1..2]), None);
        let stranger = TaskId(9);
        let others = [(20, runs(3, Some(stranger))), (40, names(stranger))];
        let beside = [&records[..], &others].concat();
        assert_eq!(
            figure(FRAGMENT_AWAY, &beside),
            Some(away),
            "it is not of the scenario"
        );
    }

    #[test]
    fn a_wakeup_counts_where_the_woken_task_runs() {
        let wakes = Record::Waking {
            cpu: CpuId(0),
            waker: Some(A),
            task: B,
            context: Context::Task,
            synchronous: false,
        };
        let on = |cpu| {
            let records = [(20, wakes), (21, runs(cpu, Some(B))), (22, runs(cpu, None))];
            figure(WOKEN_ACROSS, &records)
        };
        assert_eq!((on(1), on(3)), (Some(0.0), Some(100.0)));
    }

    #[test]
    fn a_core_is_crowded_only_beside_an_idle_one() {
        let two_on_one = [(0, runs(0, Some(A))), (60, runs(1, Some(B)))];
        assert_eq!(figure(CORE_CROWDED, &two_on_one), Some(50.0));
        let one_each = [(0, runs(0, Some(A))), (20, runs(2, Some(B)))];
        assert_eq!(figure(CORE_CROWDED, &one_each), Some(0.0));
    }
}
