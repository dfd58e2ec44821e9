//! How long each task runs, waits and sleeps, and how often it is switched out.

use warmq_trace::{Board, Comm, Doing, Ended, Observer, Record, Stretch, Table};
use warmq_units::{Duration, Instant, TaskId};

use crate::sum;

/// What one task did. Its times include interrupts that were served meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskFigures {
    /// Its name.
    pub comm: Comm,
    /// How long it was on a CPU.
    pub ran: Duration,
    /// How long it was runnable but not on a CPU (the kernel's `run_delay`).
    pub waited: Duration,
    /// The longest time for which it was runnable without a CPU, after a wakeup or a preemption.
    pub longest_wait: Duration,
    /// How long it slept or was throttled: it waited for something other than a CPU.
    pub slept: Duration,
    /// Wakeups that ended a sleep.
    pub wakeups: u64,
    /// How often it left its CPU to sleep or to exit (`ru_nvcsw`, `time -v`: "voluntary context
    /// switches").
    pub voluntary: u64,
    /// How often it left its CPU while runnable, preempted or by yielding, as Linux counts
    /// (`ru_nivcsw`, "involuntary context switches").
    pub involuntary: u64,
    /// How often it moved to another CPU.
    pub migrations: u64,
    /// Whether it has exited.
    pub exited: bool,
}

impl TaskFigures {
    /// From its fork, or from the beginning of the measurement, to its exit or to the end (`time
    /// -v`: "elapsed").
    pub fn elapsed(&self) -> Duration {
        sum(sum(self.ran, self.waited), self.slept)
    }

    /// It did this for `span`.
    #[inline]
    fn charge(&mut self, did: Doing, span: Duration) {
        let charged = match did {
            Doing::Sleeps | Doing::Throttled => &mut self.slept,
            Doing::Waits(_) => &mut self.waited,
            Doing::Runs(_) => &mut self.ran,
            Doing::Unknown | Doing::Exited => return,
        };
        *charged = sum(*charged, span);
        if let Doing::Waits(_) = did {
            self.longest_wait = self.longest_wait.max(span);
        }
    }
}

/// What tasks did in one window, summed from the stretches of a [`Board`].
///
/// A task is asleep from its fork to its first wakeup. In a recording it may have been forked long
/// before: nothing is counted before the first record that shows its state.
#[derive(Clone, Debug, Default)]
pub struct TaskSums {
    from: Instant,
    tasks: Table<TaskId, TaskFigures>,
    missing: Duration,
}

impl TaskSums {
    /// Counts what happens at `from` or later.
    pub fn starting_at(from: Instant) -> TaskSums {
        TaskSums {
            from,
            ..TaskSums::default()
        }
    }

    /// Counts `record`, by which `ended` ended.
    #[inline]
    pub fn see(&mut self, at: Instant, record: &Record, ended: &[Ended]) {
        for ended in ended {
            let span = ended.since(self.from);
            match ended.stretch {
                Stretch::Task { task, did, .. } => self.tasks.touch(task).charge(did, span),
                Stretch::Gap => self.missing = sum(self.missing, span),
                Stretch::Cpu { .. } | Stretch::Spent { .. } => {}
            }
        }
        if let Record::Fork { child, comm, .. } = *record {
            self.tasks.touch(child).comm = comm;
        }
        if at >= self.from {
            self.count(record, ended);
        }
    }

    fn count(&mut self, record: &Record, ended: &[Ended]) {
        match *record {
            Record::Wakeup { task, .. } if ended.iter().any(ends_a_sleep) => {
                self.tasks.touch(task).wakeups += 1;
            }
            // A task that is picked again never left its CPU.
            Record::Switch {
                prev: Some(task),
                prev_runnable,
                next,
                ..
            } if next != Some(task) => {
                let figures = self.tasks.touch(task);
                match prev_runnable {
                    true => figures.involuntary += 1,
                    false => figures.voluntary += 1,
                }
            }
            Record::Migrate { task, .. } => self.tasks.touch(task).migrations += 1,
            _ => {}
        }
    }

    /// The figures of `task` up to `end`, which is not before the last record of `board`; `None`
    /// for a task that no record named.
    pub fn figures(&self, board: &Board, task: TaskId, end: Instant) -> Option<TaskFigures> {
        let open = board.open_of(end, task)?;
        let mut figures = self.tasks.get(task).copied().unwrap_or_default();
        figures.charge(board.doing(task), open.since(self.from));
        figures.exited = board.doing(task) == Doing::Exited;
        Some(figures)
    }

    /// The figures of every task up to `end`, in the order of ids.
    pub fn all(&self, board: &Board, end: Instant) -> impl Iterator<Item = (TaskId, TaskFigures)> {
        let of = move |task| Some((task, self.figures(board, task, end)?));
        board.tasks().filter_map(of)
    }

    /// For how long up to `end` events of some CPU were missing.
    pub(crate) fn missing(&self, board: &Board, end: Instant) -> Duration {
        sum(self.missing, board.missing_since(self.from, end))
    }
}

/// A wakeup ends no sleep of one that runs or waits already, or whose group had no quota.
fn ends_a_sleep(ended: &Ended) -> bool {
    let Stretch::Task { did, .. } = ended.stretch else {
        return false;
    };
    did != Doing::Throttled
}

/// Collects the figures of every task: [`TaskSums`] with a board of their own.
#[derive(Clone, Debug, Default)]
pub struct TaskMeter {
    board: Board,
    sums: TaskSums,
}

impl TaskMeter {
    /// Counts what happens at `from` or later.
    pub fn starting_at(from: Instant) -> TaskMeter {
        TaskMeter {
            board: Board::default(),
            sums: TaskSums::starting_at(from),
        }
    }

    /// The figures of `task` up to `end`, which is not before the last record; `None` for a task
    /// that no record named.
    pub fn figures(&self, task: TaskId, end: Instant) -> Option<TaskFigures> {
        self.sums.figures(&self.board, task, end)
    }

    /// The figures of every task up to `end`, in the order of ids.
    pub fn all(&self, end: Instant) -> impl Iterator<Item = (TaskId, TaskFigures)> {
        self.sums.all(&self.board, end)
    }
}

impl Observer for TaskMeter {
    const DETAIL: bool = false;

    fn see(&mut self, at: Instant, record: &Record) {
        let ended = self.board.see(at, record);
        self.sums.see(at, record, ended);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warmq_units::CpuId;

    use super::*;

    const CPU: CpuId = CpuId(0);
    const A: TaskId = TaskId(0);
    const B: TaskId = TaskId(1);

    fn switch(prev: Option<TaskId>, prev_runnable: bool, next: Option<TaskId>) -> Record {
        Record::Switch {
            cpu: CPU,
            prev,
            prev_runnable,
            next,
        }
    }

    fn story() -> Vec<(u64, Record)> {
        let fork = |child, name| Record::Fork {
            parent: None,
            child,
            comm: Comm::new(name),
        };
        let wake = |task| Record::Wakeup {
            waker: CPU,
            task,
            target: CPU,
        };
        vec![
            (0, fork(A, "A")),
            (0, fork(B, "B")),
            (10, wake(A)),
            (12, switch(None, false, Some(A))),
            (20, wake(B)),
            (30, switch(Some(A), true, Some(B))),
            (33, switch(Some(B), true, Some(B))),
            (
                35,
                Record::Migrate {
                    task: A,
                    from: CPU,
                    to: CpuId(1),
                },
            ),
            (40, switch(Some(B), false, Some(A))),
            (50, Record::Exit { cpu: CPU, task: A }),
            (51, switch(Some(A), false, None)),
        ]
    }

    fn measured(from: u64) -> TaskMeter {
        let mut meter = TaskMeter::starting_at(Instant(from));
        story()
            .iter()
            .for_each(|(at, record)| meter.see(Instant(*at), record));
        meter
    }

    #[test]
    fn a_story_of_two_tasks_in_figures() {
        let meter = measured(0);
        let [(_, a), (_, b)]: [_; 2] = meter
            .all(Instant(100))
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
        // A: asleep 10, waits 2, runs 18, waits 10, runs 10, exits and leaves.
        let expected = TaskFigures {
            comm: Comm::new("A"),
            ran: Duration(28),
            waited: Duration(12),
            longest_wait: Duration(10),
            slept: Duration(10),
            wakeups: 1,
            voluntary: 1,
            involuntary: 1,
            migrations: 1,
            exited: true,
        };
        assert_eq!(a, expected);
        assert_eq!(a.elapsed(), Duration(50));
        // B: asleep 20, waits 10, runs 10 (picked again at 33), sleeps 60.
        assert_eq!(
            (b.ran, b.waited, b.slept),
            (Duration(10), Duration(10), Duration(80))
        );
        assert_eq!((b.voluntary, b.involuntary, b.wakeups), (1, 0, 1));
        assert_eq!(b.longest_wait, Duration(10));
        let mut early = TaskMeter::default();
        early.see(Instant(20), &story()[4].1);
        let b_waits = early.figures(B, Instant(25)).unwrap();
        assert_eq!(b_waits.longest_wait, Duration(5), "one that lasts counts");
        assert_eq!(meter.figures(TaskId(9), Instant(100)), None);
    }

    #[test]
    fn a_warm_up_is_left_out() {
        let a = measured(35).figures(A, Instant(100)).unwrap();
        assert_eq!(
            (a.ran, a.waited, a.slept),
            (Duration(10), Duration(5), Duration(0))
        );
        assert_eq!(
            (a.voluntary, a.involuntary, a.wakeups, a.migrations),
            (1, 0, 0, 1)
        );
    }

    #[test]
    fn a_throttled_task_waits_for_no_cpu_and_its_next_period_is_no_wakeup() {
        let woken = Record::Wakeup {
            waker: CPU,
            task: A,
            target: CPU,
        };
        let throttled = Record::Block {
            cpu: CPU,
            task: A,
            cause: warmq_trace::Cause::Quota,
            state: warmq_trace::State::Runnable,
            object: None,
        };
        let mut meter = TaskMeter::default();
        let story = [
            (0, woken),
            (5, throttled),
            (50, woken),
            (52, switch(None, false, Some(A))),
            (60, throttled),
            (60, switch(Some(A), true, None)),
            (90, woken),
        ];
        for (at, record) in &story {
            meter.see(Instant(*at), record);
        }
        let a = meter.figures(A, Instant(91)).unwrap();
        assert_eq!(
            (a.waited, a.longest_wait, a.slept, a.ran),
            (Duration(8), Duration(5), Duration(75), Duration(8))
        );
        assert_eq!(a.wakeups, 1);
    }

    /// B waits when events of its CPU are lost, C runs elsewhere, and A is woken elsewhere
    /// meanwhile.
    #[test]
    fn what_happens_in_a_gap_is_not_known() {
        const C: TaskId = TaskId(2);
        let other = CpuId(1);
        let on = |cpu, prev, next| Record::Switch {
            cpu,
            prev,
            prev_runnable: false,
            next,
        };
        let wake = |task| Record::Wakeup {
            waker: other,
            task,
            target: CPU,
        };
        let lost = |events| Record::Lost { cpu: CPU, events };
        let figures = |events| {
            let mut meter = TaskMeter::default();
            let story = [
                (0, on(other, None, Some(C))),
                (5, switch(None, false, Some(A))),
                (10, wake(B)),
                (15, switch(Some(A), false, None)),
                (20, lost(events)),
                (30, wake(A)),
                (80, switch(None, false, Some(B))),
                (90, switch(Some(B), true, Some(A))),
                (95, on(other, Some(C), None)),
            ];
            for (at, record) in &story {
                meter.see(Instant(*at), record);
            }
            [A, B, C].map(|task| meter.figures(task, Instant(100)).unwrap())
        };
        let [a, b, c] = figures(100);
        assert_eq!(
            (b.waited, b.longest_wait),
            (Duration(20), Duration(10)),
            "10 to 20, and 90 to 100"
        );
        assert_eq!(
            (a.ran, a.waited, a.slept),
            (Duration(20), Duration(0), Duration(5))
        );
        assert_eq!(c.ran, Duration(95), "of another CPU everything is known");
        let [a, b, _] = figures(1);
        assert_eq!(
            (a.longest_wait, b.longest_wait),
            (Duration(60), Duration(70)),
            "one that was inferred hides nothing"
        );
    }

    proptest! {
        #[test]
        fn a_life_is_running_waiting_and_sleeping(from in 0u64..120, end in 51u64..120) {
            let meter = measured(from);
            for (task, gone) in [(A, 50), (B, u64::MAX)] {
                let figures = meter.figures(task, Instant(end)).unwrap();
                let lived = figures.ran + figures.waited + figures.slept;
                prop_assert_eq!(lived, Duration(end.min(gone).saturating_sub(from)));
            }
        }
    }
}
