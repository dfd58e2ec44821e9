//! What records tell of a machine, kept up to date: who is where, and in what state.

use warmq_units::{CpuId, Instant, LockId, TaskId};

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
    tasks: Table<TaskId, Task>,
    // When each lock was released last.
    released: Table<LockId, Option<Instant>>,
    // True if records tell of the machine from its start.
    whole: bool,
}

/// A CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Cpu {
    /// What runs; unknown before the first switch of a recording.
    pub running: Option<Option<TaskId>>,
    /// Since when it runs that and is online.
    since: Instant,
    /// When it went through a switch last.
    switched: Instant,
    offline: bool,
    /// Since when a reschedule interrupt is pending.
    reschedule: Option<Instant>,
    /// True if no reschedule interrupt of the time before the recording is pending.
    reschedules_known: bool,
    /// The interrupts that it is in, outermost first.
    pub open: Vec<Interrupt>,
    /// True if the interrupts of the time before the recording are over.
    pub interrupts_known: bool,
}

/// A task.
#[derive(Clone, Debug, Default)]
struct Task {
    state: State,
    /// Bit n of word m is set where the task may use CPU 64 m + n; it may use all CPUs beyond.
    allowed: Vec<u64>,
}

/// What a task does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing is known: it does not exist, or it did before the recording began.
    #[default]
    Unknown,
    /// It exists and waits for something other than a CPU.
    Asleep,
    /// It waits for a CPU since `since`, in the queue of `cpu` (where each has one) since `queued`.
    Runnable {
        cpu: CpuId,
        since: Instant,
        queued: Instant,
    },
    /// It has this CPU.
    Running(CpuId),
    /// It exited, and has this CPU until the next switch there; or nobody's, if it had none.
    Gone,
}

impl State {
    fn waits(cpu: CpuId, since: Instant) -> State {
        let queued = since;
        State::Runnable { cpu, since, queued }
    }
}

/// CPUs of one word of an affinity.
const WORD: usize = u64::BITS as usize;

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
        self.tasks
            .get(task)
            .map(|task| task.state)
            .unwrap_or_default()
    }

    /// What runs on `cpu`, if that is known; `Some(None)` is the idle task.
    pub fn running(&self, cpu: CpuId) -> Option<Option<TaskId>> {
        let known = self.cpus.get(cpu).and_then(|cpu| cpu.running);
        known.or(self.whole.then_some(None))
    }

    /// Since when `cpu` idles, if it does and is online.
    pub fn idle_since(&self, cpu: CpuId) -> Option<Instant> {
        let state = self.cpus.get(cpu);
        let idle = self.running(cpu) == Some(None) && !state.is_some_and(|cpu| cpu.offline);
        idle.then(|| state.map_or(Instant::START, |cpu| cpu.since))
    }

    /// When `cpu` went through a switch last.
    pub fn switched(&self, cpu: CpuId) -> Instant {
        self.cpus
            .get(cpu)
            .map_or(Instant::START, |cpu| cpu.switched)
    }

    /// When `lock` was released last, if it ever was.
    pub fn released(&self, lock: LockId) -> Option<Instant> {
        self.released.get(lock).copied().flatten()
    }

    /// Since when a reschedule interrupt for `cpu` is pending, if one is.
    pub fn reschedule(&self, cpu: CpuId) -> Option<Instant> {
        self.cpus.get(cpu).and_then(|cpu| cpu.reschedule)
    }

    /// True if `cpu` may take a reschedule interrupt that was sent before the recording.
    pub fn may_take_unknown_reschedule(&self, cpu: CpuId) -> bool {
        let known = self.cpus.get(cpu).is_some_and(|cpu| cpu.reschedules_known);
        !self.whole && !known
    }

    /// Whether the affinity of `task` allows `cpu`.
    pub fn allows(&self, task: TaskId, cpu: CpuId) -> bool {
        let allowed = self.tasks.get(task).map_or(&[][..], |task| &task.allowed);
        let word = allowed.get(cpu.index() / WORD).copied();
        word.unwrap_or(u64::MAX) >> (cpu.index() % WORD) & 1 == 1
    }

    /// Every CPU that was ever named.
    pub fn cpus(&self) -> impl Iterator<Item = CpuId> {
        self.cpus.iter().map(|(cpu, _)| cpu)
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
        self.tasks.iter().map(|(id, task)| (id, task.state))
    }

    /// `record` happened at `at`.
    pub fn apply(&mut self, at: Instant, record: &Record) {
        self.now = at;
        self.records += 1;
        match *record {
            Record::Fork { child, .. } => self.tasks.touch(child).state = State::Asleep,
            Record::Exit { task, .. } => self.tasks.touch(task).state = State::Gone,
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
                    self.tasks.touch(task).state = State::Running(cpu);
                }
                let cpu = self.cpus.touch(cpu);
                cpu.running = Some(next);
                (cpu.since, cpu.switched) = (at, at);
                // Nobody switches inside an interrupt.
                cpu.interrupts_known = true;
            }
            Record::Migrate { task, to, .. } => {
                if let State::Runnable { cpu, queued, .. } = &mut self.tasks.touch(task).state {
                    (*cpu, *queued) = (to, at);
                }
            }
            Record::InterruptEnter { cpu, interrupt } => {
                let cpu = self.cpus.touch(cpu);
                cpu.open.push(interrupt);
                if interrupt == Interrupt::Reschedule {
                    cpu.reschedule = None;
                    cpu.reschedules_known = true;
                }
            }
            Record::InterruptExit { cpu, .. } => {
                self.cpus.touch(cpu).open.pop();
            }
            // One that is pending already takes in the new one, as an APIC merges them.
            Record::RescheduleSent { to, .. } => {
                self.cpus.touch(to).reschedule.get_or_insert(at);
            }
            Record::Lock { cpu, lock, .. } => {
                self.cpus.touch(cpu);
                *self.released.touch(lock) = Some(at);
            }
            Record::Affinity { task, from, cpus } => self.set_affinity(at, task, from, cpus),
            Record::Hotplug { cpu, online } => {
                let cpu = self.cpus.touch(cpu);
                (cpu.offline, cpu.since) = (!online, at);
            }
            Record::LockBusy { .. } | Record::Recalculate { .. } => {}
        }
    }

    /// A task that waits does so for other CPUs from here on.
    fn set_affinity(&mut self, at: Instant, task: TaskId, from: CpuId, cpus: u64) {
        let (task, word) = (self.tasks.touch(task), from.index() / WORD);
        if task.allowed.len() <= word {
            task.allowed.resize(word + 1, u64::MAX);
        }
        task.allowed[word] = cpus;
        if let State::Runnable { since, queued, .. } = &mut task.state {
            (*since, *queued) = (at, at);
        }
    }

    /// A task that runs or waits already keeps its place.
    fn wake(&mut self, at: Instant, task: TaskId, target: CpuId) {
        let state = &mut self.tasks.touch(task).state;
        if let State::Unknown | State::Asleep = state {
            *state = State::waits(target, at);
        }
    }

    fn leave(&mut self, at: Instant, cpu: CpuId, task: TaskId, runnable: bool) {
        let state = &mut self.tasks.touch(task).state;
        *state = match (*state, runnable) {
            (State::Gone, _) => State::Gone,
            (_, true) => State::waits(cpu, at),
            (_, false) => State::Asleep,
        };
    }
}
