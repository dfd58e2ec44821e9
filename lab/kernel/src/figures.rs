//! What a run measured, as integers.

use warmq_machine::Counts;
use warmq_trace::Observer;
use warmq_units::{Duration, Instant, TaskId};

use crate::kernel::Kernel;
use crate::lock::LockFigures;
use crate::memory::{AccessCounts, Within};
use crate::step::Mode;

/// Walks over run queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Walks {
    /// How many.
    pub walks: u64,
    /// Entries visited, in all.
    pub visits: u64,
    /// Entries visited by the longest.
    pub longest: u64,
    /// How often all time slices were computed anew.
    pub recalculations: u64,
}

/// How many tasks are runnable, added up over time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunnableClock {
    tasks: u64,
    since: Instant,
    /// Tasks times picoseconds, up to `since`.
    area: u128,
}

impl RunnableClock {
    pub(crate) fn charge(&mut self, now: Instant) {
        self.area += u128::from(self.tasks) * u128::from((now - self.since).0);
        self.since = now;
    }

    pub(crate) fn joins(&mut self, now: Instant) {
        self.charge(now);
        self.tasks += 1;
    }

    pub(crate) fn leaves(&mut self, now: Instant) {
        self.charge(now);
        self.tasks -= 1;
    }
}

/// What `time -v` would say of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TaskFigures {
    /// CPU time, up to the last switch.
    pub ran: Duration,
    /// Switches because it slept.
    pub voluntary_switches: u64,
    /// Switches though it could have gone on.
    pub involuntary_switches: u64,
}

impl<O: Observer> Kernel<O> {
    /// Forgets everything counted so far, after a warm-up; caches and queues stay as they are.
    pub fn reset_figures(&mut self) {
        let now = self.now();
        self.measured_from = now;
        self.core.walks = Walks::default();
        self.core.switches = 0;
        self.core.migrations = 0;
        self.core.memory.reset_counts();
        self.runnable.charge(now);
        self.runnable.area = 0;
        for lock in &mut self.core.locks {
            lock.reset_figures();
        }
        for cpu in &mut self.core.cpus {
            cpu.charge(now);
            cpu.spent = Default::default();
        }
    }

    /// The time that the figures are of.
    pub fn measured(&self) -> Duration {
        self.now() - self.measured_from
    }

    /// Time that all CPUs together spent in `mode`.
    pub fn spent(&self, mode: Mode) -> Duration {
        self.core
            .cpus
            .iter()
            .map(|cpu| cpu.spent[mode as usize])
            .sum()
    }

    /// Time that each CPU spent in each of [`Mode::ALL`].
    pub fn spent_by_cpu(&self) -> Vec<[Duration; 5]> {
        self.core.cpus.iter().map(|cpu| cpu.spent).collect()
    }

    /// The figures of every lock.
    pub fn locks(&self) -> Vec<LockFigures> {
        self.core
            .locks
            .iter()
            .map(|lock| lock.figures().clone())
            .collect()
    }

    /// The walks over run queues.
    pub fn walks(&self) -> Walks {
        self.core.walks
    }

    /// The accesses made within a stretch of code.
    pub fn accesses(&self, within: Within) -> AccessCounts {
        self.core.memory.counts(within)
    }

    /// What the caches and the bus counted; `None` without caches.
    pub fn counts(&self) -> Option<&Counts> {
        self.core
            .memory
            .hierarchy()
            .map(warmq_machine::Hierarchy::counts)
    }

    /// Checks that the caches are coherent; a checker for tests.
    pub fn check_coherence(&self) -> Result<(), String> {
        self.core
            .memory
            .hierarchy()
            .map_or(Ok(()), warmq_machine::Hierarchy::check_coherence)
    }

    /// What `time -v` would say of `task`; `None` when there never was such a task.
    pub fn task(&self, task: TaskId) -> Option<TaskFigures> {
        self.core.lives.get(task.index()).map(|life| TaskFigures {
            ran: life.ran,
            voluntary_switches: life.voluntary_switches,
            involuntary_switches: life.involuntary_switches,
        })
    }

    /// How many tasks were runnable, as thousandths of a task in the mean over the measured time.
    pub fn runnable_mean_milli(&self) -> u64 {
        let mut clock = self.runnable;
        clock.charge(self.now());
        (clock.area * 1_000 / u128::from(self.measured().0.max(1))) as u64
    }

    /// Switches from one task (or idling) to another.
    pub fn switches(&self) -> u64 {
        self.core.switches
    }

    /// How often a task was picked by another CPU than the one before.
    pub fn migrations(&self) -> u64 {
        self.core.migrations
    }

    /// How many tasks are runnable now.
    pub fn runnable(&self) -> usize {
        self.core
            .lives
            .iter()
            .filter(|life| life.is_runnable())
            .count()
    }
}
