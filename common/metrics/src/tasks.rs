//! How long each task runs, waits and sleeps, and how often it is switched out.

use warmq_trace::{Comm, Observer, Record, Table};
use warmq_units::{Duration, Instant, TaskId};

use crate::{ratio, sum};

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
    /// How long it slept: it waited for something other than a CPU.
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
    /// From its fork, or from the beginning of the measurement, to its exit or to the end (`time -v`:
    /// "elapsed").
    pub fn elapsed(&self) -> Duration {
        sum(sum(self.ran, self.waited), self.slept)
    }

    /// `ran / whole`: the share of one CPU if `whole` is the elapsed time; the share of all work if
    /// it is the sum of all tasks' `ran`.
    pub fn share_of(&self, whole: Duration) -> f64 {
        ratio(self.ran.0, whole.0)
    }

    /// `ran / (ran + waited)`: 1 for a task that never waited for a CPU, 0 for one that never ran.
    pub fn served(&self) -> f64 {
        ratio(self.ran.0, sum(self.ran, self.waited).0)
    }
}

/// Collects the figures of every task.
///
/// A task is asleep from its fork to its first wakeup. In a recording it may have been forked long
/// before: nothing is counted before the first record that shows its state.
#[derive(Clone, Debug, Default)]
pub struct TaskMeter {
    from: Instant,
    tasks: Table<TaskId, Task>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Task {
    figures: TaskFigures,
    state: State,
    since: Instant,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Unknown,
    Asleep,
    Waiting,
    Running,
    Gone,
}

impl Task {
    /// Charges the time since the last change to the state that ends now, and begins `state`.
    fn becomes(&mut self, at: Instant, state: State, from: Instant) {
        let span = at.since(self.since.max(from));
        let charged = match self.state {
            State::Asleep => &mut self.figures.slept,
            State::Waiting => &mut self.figures.waited,
            State::Running => &mut self.figures.ran,
            State::Unknown | State::Gone => &mut Duration::default(),
        };
        *charged = sum(*charged, span);
        if self.state == State::Waiting {
            self.figures.longest_wait = self.figures.longest_wait.max(span);
        }
        (self.state, self.since) = (state, at);
    }
}

impl TaskMeter {
    /// Counts what happens at `from` or later.
    pub fn starting_at(from: Instant) -> TaskMeter {
        TaskMeter {
            from,
            ..TaskMeter::default()
        }
    }

    /// What goes on now, with nothing counted before `at`.
    #[must_use]
    pub(crate) fn restarted(&self, at: Instant) -> TaskMeter {
        let mut tasks = Table::default();
        for (id, task) in self.tasks.iter() {
            let figures = TaskFigures {
                comm: task.figures.comm,
                exited: task.figures.exited,
                ..TaskFigures::default()
            };
            *tasks.touch(id) = Task { figures, ..*task };
        }
        TaskMeter { from: at, tasks }
    }

    /// The figures of `task` up to `end`, which is not before the last record; `None` for a task
    /// that no record named.
    pub fn figures(&self, task: TaskId, end: Instant) -> Option<TaskFigures> {
        self.tasks.get(task).map(|task| self.closed(*task, end))
    }

    /// The figures of every task up to `end`, in the order of ids.
    pub fn all(&self, end: Instant) -> impl Iterator<Item = (TaskId, TaskFigures)> {
        self.tasks
            .iter()
            .map(move |(id, task)| (id, self.closed(*task, end)))
    }

    fn closed(&self, mut task: Task, end: Instant) -> TaskFigures {
        task.becomes(end, task.state, self.from);
        task.figures
    }

    fn switch(&mut self, at: Instant, prev: Option<TaskId>, runnable: bool, next: Option<TaskId>) {
        let counts = u64::from(at >= self.from);
        // A task that is picked again never left its CPU.
        if prev == next {
            return;
        }
        if let Some(task) = prev {
            let task = self.tasks.touch(task);
            if runnable {
                task.figures.involuntary += counts;
            } else {
                task.figures.voluntary += counts;
            }
            let state = match (task.state, runnable) {
                (State::Gone, _) => State::Gone,
                (_, true) => State::Waiting,
                (_, false) => State::Asleep,
            };
            task.becomes(at, state, self.from);
        }
        if let Some(task) = next {
            self.tasks
                .touch(task)
                .becomes(at, State::Running, self.from);
        }
    }
}

impl Observer for TaskMeter {
    const DETAIL: bool = false;

    fn see(&mut self, at: Instant, record: &Record) {
        let counts = u64::from(at >= self.from);
        match *record {
            Record::Fork { child, comm, .. } => {
                let task = self.tasks.touch(child);
                task.figures.comm = comm;
                task.becomes(at, State::Asleep, self.from);
            }
            Record::Exit { task, .. } => {
                let task = self.tasks.touch(task);
                task.becomes(at, State::Gone, self.from);
                task.figures.exited = true;
            }
            Record::Wakeup { task, .. } => {
                let task = self.tasks.touch(task);
                if let State::Unknown | State::Asleep = task.state {
                    task.becomes(at, State::Waiting, self.from);
                    task.figures.wakeups += counts;
                }
            }
            Record::Switch {
                prev,
                prev_runnable,
                next,
                ..
            } => {
                self.switch(at, prev, prev_runnable, next);
            }
            Record::Migrate { task, .. } => self.tasks.touch(task).figures.migrations += counts,
            _ => {}
        }
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
    fn a_story_of_two_tasks_is_told_in_figures() {
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
        assert_eq!(b.share_of(Duration(100)), 0.1);
        assert_eq!(b.served(), 0.5);
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
