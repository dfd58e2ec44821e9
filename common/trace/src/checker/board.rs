//! What records tell of a machine, kept up to date: who is where, and in what state.

use warmq_units::{CpuId, Instant, TaskId};

use crate::{Interrupt, Record, Table};

/// A machine as its records tell of it.
///
/// Invariant, as long as no law was broken: a task is `Running` on a CPU if and only if that CPU
/// runs the task.
#[derive(Clone, Debug, Default)]
pub(super) struct Board {
    /// The time of the last record.
    pub now: Instant,
    /// How many records there were.
    pub records: u64,
    cpus: Table<CpuId, Cpu>,
    tasks: Table<TaskId, State>,
    // True if records tell of the machine from its start.
    whole: bool,
}

/// A CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Cpu {
    /// What runs; unknown before the first switch of a recording.
    pub running: Option<Option<TaskId>>,
    /// Since when.
    pub since: Instant,
    /// The interrupts that it is in, outermost first.
    pub open: Vec<Interrupt>,
    /// True if the interrupts of the time before the recording are over.
    pub interrupts_known: bool,
}

/// What a task does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing is known: it does not exist, or it did before the recording began.
    #[default]
    Unknown,
    /// It exists and waits for something other than a CPU.
    Asleep,
    /// It waits for `cpu` (or for any, where one queue serves all) since `since`.
    Runnable { cpu: CpuId, since: Instant },
    /// It has this CPU.
    Running(CpuId),
    /// It exited, and has this CPU until the next switch there; or nobody's, if it had none.
    Gone,
}

impl Board {
    /// The board of a machine that is just switched on.
    pub fn at_the_start() -> Board {
        Board {
            whole: true,
            ..Board::default()
        }
    }

    /// The board of a machine of whose past nothing is known.
    pub fn midway() -> Board {
        Board::default()
    }

    /// True if nothing that happened is unknown.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// What `task` does.
    pub fn state(&self, task: TaskId) -> State {
        self.tasks.get(task).copied().unwrap_or_default()
    }

    /// What runs on `cpu`, if that is known; `Some(None)` is the idle task.
    pub fn running(&self, cpu: CpuId) -> Option<Option<TaskId>> {
        let known = self.cpus.get(cpu).and_then(|cpu| cpu.running);
        known.or(self.whole.then_some(None))
    }

    /// Since when `cpu` idles, if it does.
    pub fn idle_since(&self, cpu: CpuId) -> Option<Instant> {
        let idle = self.running(cpu) == Some(None);
        idle.then(|| self.cpus.get(cpu).map_or(Instant::START, |cpu| cpu.since))
    }

    /// The interrupt that `cpu` is in.
    pub fn open(&self, cpu: CpuId) -> Option<Interrupt> {
        self.cpus.get(cpu).and_then(|cpu| cpu.open.last().copied())
    }

    /// True if `cpu` may be in an interrupt of which no record tells.
    pub fn may_be_in_unknown_interrupt(&self, cpu: CpuId) -> bool {
        let known = self.cpus.get(cpu).is_some_and(|cpu| cpu.interrupts_known);
        !self.whole && !known
    }

    /// Every task that was ever named, and what it does.
    pub fn tasks(&self) -> impl Iterator<Item = (TaskId, State)> {
        self.tasks.iter().map(|(task, state)| (task, *state))
    }

    /// `record` happened at `at`.
    pub fn apply(&mut self, at: Instant, record: &Record) {
        self.now = at;
        self.records += 1;
        match *record {
            Record::Fork { child, .. } => *self.tasks.touch(child) = State::Asleep,
            Record::Exit { task, .. } => *self.tasks.touch(task) = State::Gone,
            Record::Wakeup { task, target, .. } => self.wake(at, task, target),
            Record::Switch {
                cpu,
                prev,
                prev_runnable,
                next,
            } => {
                if let Some(task) = prev {
                    self.leave(at, cpu, task, prev_runnable);
                }
                if let Some(task) = next {
                    *self.tasks.touch(task) = State::Running(cpu);
                }
                let cpu = self.cpus.touch(cpu);
                cpu.running = Some(next);
                cpu.since = at;
                // Nobody switches inside an interrupt.
                cpu.interrupts_known = true;
            }
            Record::Migrate { task, to, .. } => {
                if let State::Runnable { cpu, since } = self.tasks.touch(task) {
                    (*cpu, *since) = (to, at);
                }
            }
            Record::InterruptEnter { cpu, interrupt } => {
                self.cpus.touch(cpu).open.push(interrupt);
            }
            Record::InterruptExit { cpu, .. } => {
                self.cpus.touch(cpu).open.pop();
            }
            Record::RescheduleSent { .. }
            | Record::Lock { .. }
            | Record::LockBusy { .. }
            | Record::Recalculate { .. } => {}
        }
    }

    /// A task that runs or waits already keeps its place.
    fn wake(&mut self, at: Instant, task: TaskId, target: CpuId) {
        let state = self.tasks.touch(task);
        if let State::Unknown | State::Asleep = state {
            *state = State::Runnable {
                cpu: target,
                since: at,
            };
        }
    }

    fn leave(&mut self, at: Instant, cpu: CpuId, task: TaskId, runnable: bool) {
        let state = self.tasks.touch(task);
        *state = match (*state, runnable) {
            (State::Gone, _) => State::Gone,
            (_, true) => State::Runnable { cpu, since: at },
            (_, false) => State::Asleep,
        };
    }
}
