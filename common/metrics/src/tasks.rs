//! How long each task runs, waits and sleeps, and how often it is switched out.

use warmq_trace::{Comm, Observer, Record, Table};
use warmq_units::{CpuId, Duration, Instant, TaskId};

use crate::gaps::Gaps;
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
/// before: nothing is counted before the first record that shows its state, nor while events of a CPU are missing on
/// which it may have been.
#[derive(Clone, Debug, Default)]
pub struct TaskMeter {
    from: Instant,
    tasks: Table<TaskId, Task>,
    gaps: Gaps,
    /// Since when there are gaps, if there are any, and for how long there were.
    gaps_since: Instant,
    gaps_lasted: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Task {
    figures: TaskFigures,
    state: State,
    since: Instant,
    /// Where it ran last.
    cpu: CpuId,
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
        TaskMeter {
            from: at,
            tasks,
            gaps: self.gaps.clone(),
            gaps_since: self.gaps_since,
            gaps_lasted: Duration::ZERO,
        }
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

    /// For how long up to `end` events of some CPU were missing.
    pub(crate) fn missing(&self, end: Instant) -> Duration {
        let lasts = match self.gaps.any() {
            true => end.since(self.gaps_since.max(self.from)),
            false => Duration::ZERO,
        };
        sum(self.gaps_lasted, lasts)
    }

    /// Takes note of a gap that begins or ends by `record`.
    fn follow_gaps(&mut self, at: Instant, record: &Record) {
        let lasted = self.missing(at);
        if let Some(silent) = self.gaps.see(record) {
            self.forget(at, silent);
            (self.gaps_since, self.gaps_lasted) = (at, lasted);
        }
    }

    fn closed(&self, mut task: Task, end: Instant) -> TaskFigures {
        task.becomes(end, task.state, self.from);
        task.figures
    }

    /// Of `silent` nothing is known: nor is it of any task but those that run elsewhere.
    fn forget(&mut self, at: Instant, silent: CpuId) {
        for task in self.tasks.values_mut() {
            let known = match task.state {
                State::Running => task.cpu != silent,
                State::Gone => true,
                State::Unknown | State::Asleep | State::Waiting => false,
            };
            if !known {
                task.becomes(at, State::Unknown, self.from);
            }
        }
    }

    /// `state`, if no CPU's events are missing; else a task that does not run may be in any.
    fn surely(&self, state: State) -> State {
        match self.gaps.any() {
            true => State::Unknown,
            false => state,
        }
    }

    fn switch(
        &mut self,
        (at, cpu): (Instant, CpuId),
        prev: Option<TaskId>,
        runnable: bool,
        next: Option<TaskId>,
    ) {
        let counts = u64::from(at >= self.from);
        let (waits, sleeps) = (self.surely(State::Waiting), self.surely(State::Asleep));
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
                (_, true) => waits,
                (_, false) => sleeps,
            };
            task.becomes(at, state, self.from);
        }
        if let Some(task) = next {
            let task = self.tasks.touch(task);
            task.becomes(at, State::Running, self.from);
            task.cpu = cpu;
        }
    }
}

impl Observer for TaskMeter {
    const DETAIL: bool = false;

    fn see(&mut self, at: Instant, record: &Record) {
        let counts = u64::from(at >= self.from);
        self.follow_gaps(at, record);
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
                let waits = self.surely(State::Waiting);
                let task = self.tasks.touch(task);
                if let State::Unknown | State::Asleep = task.state {
                    task.becomes(at, waits, self.from);
                    task.figures.wakeups += counts;
                }
            }
            Record::Switch {
                cpu,
                prev,
                prev_runnable,
                next,
            } => self.switch((at, cpu), prev, prev_runnable, next),
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

    /// B waits when events of its CPU are lost, C runs elsewhere, and A is woken elsewhere meanwhile.
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
        let told = |events| {
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
        let [a, b, c] = told(100);
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
        let [a, b, _] = told(1);
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
