//! The state of a machine as its records show it: which task is on which CPU, and in what state
//! each is.

use std::collections::{BTreeMap, BTreeSet};

use warmq_units::{CpuId, Instant, LockId, TaskId};

use crate::Allowed;
use crate::{Interrupt, Record, Table};

/// The state of a machine as its records show it.
///
/// Invariant, as long as no invariant was broken: a task is `Running` on a CPU if and only if that CPU
/// runs the task.
#[derive(Clone, Debug, Default)]
pub(super) struct Board {
    /// The time of the last record.
    pub now: Instant,
    /// How many records were seen.
    pub records: u64,
    cpus: Table<CpuId, Cpu>,
    tasks: Table<TaskId, Task>,
    // When each lock was last released.
    released: Table<LockId, Option<Instant>>,
    // True if the records begin when the machine starts.
    whole: bool,
    // The spans that ever began, by name and number.
    spans: BTreeSet<(u32, u64)>,
    // What each counter of the scenario has counted.
    counts: BTreeMap<u32, u64>,
    // The CPUs some of whose events are missing: since a `Lost`, and until their next switch.
    gaps: BTreeSet<CpuId>,
}

/// A CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Cpu {
    /// The running task (`Some(None)` is the idle task); unknown before the first switch of a
    /// recording.
    pub running: Option<Option<TaskId>>,
    /// Since when it has been online and running that task.
    since: Instant,
    /// The time of its last switch.
    switched: Instant,
    offline: bool,
    /// True while it is in an idle state.
    idles: bool,
    /// Since when a reschedule interrupt is pending.
    reschedule: Option<Instant>,
    /// The interrupts that it is serving, outermost first.
    pub open: Vec<Interrupt>,
    /// True once all interrupts that began before the recording are over.
    pub interrupts_known: bool,
}

/// A task.
#[derive(Clone, Debug, Default)]
struct Task {
    state: State,
    // True if it is about to leave its CPU asleep.
    blocks: bool,
    /// The CPUs that it may use.
    allowed: Allowed,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Unknown: the task does not exist, or was forked before the recording began.
    #[default]
    Unknown,
    /// It waits for something other than a CPU.
    Asleep,
    /// It has waited for a CPU since `since`, and has been in the queue of `cpu` (if each CPU has
    /// one) since `queued`.
    Runnable {
        cpu: CpuId,
        since: Instant,
        queued: Instant,
    },
    /// It runs on this CPU.
    Running(CpuId),
    /// It exited. It occupies this CPU until the next switch there; `None` if it was not running.
    Gone,
}

impl State {
    fn waits(cpu: CpuId, since: Instant) -> State {
        let queued = since;
        State::Runnable { cpu, since, queued }
    }
}

impl Board {
    /// The board of a machine that has just been switched on.
    pub fn at_the_start() -> Board {
        Board {
            whole: true,
            ..Board::default()
        }
    }

    /// The board of a machine whose past is unknown.
    pub fn midway() -> Board {
        Board::default()
    }

    /// True if the records begin when the machine starts, so that nothing is unknown.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// True unless events of some CPU are missing now: it may have woken, run or ended any task.
    pub fn is_certain(&self) -> bool {
        self.gaps.is_empty()
    }

    /// The state of `task`.
    pub fn state(&self, task: TaskId) -> State {
        self.tasks
            .get(task)
            .map(|task| task.state)
            .unwrap_or_default()
    }

    /// The task that runs on `cpu`, if known; `Some(None)` is the idle task.
    pub fn running(&self, cpu: CpuId) -> Option<Option<TaskId>> {
        let known = self.cpus.get(cpu).and_then(|cpu| cpu.running);
        known.or(self.whole.then_some(None))
    }

    /// Since when `cpu` has been idle, if it is idle and online.
    pub fn idle_since(&self, cpu: CpuId) -> Option<Instant> {
        let state = self.cpus.get(cpu);
        let idle = self.running(cpu) == Some(None) && !state.is_some_and(|cpu| cpu.offline);
        idle.then(|| state.map_or(Instant::START, |cpu| cpu.since))
    }

    /// The time of the last switch on `cpu`.
    pub fn switched(&self, cpu: CpuId) -> Instant {
        self.cpus
            .get(cpu)
            .map_or(Instant::START, |cpu| cpu.switched)
    }

    /// When `lock` was last released, if it ever was.
    pub fn released(&self, lock: LockId) -> Option<Instant> {
        self.released.get(lock).copied().flatten()
    }

    /// Since when a reschedule interrupt has been pending on `cpu`, if one is.
    pub fn reschedule(&self, cpu: CpuId) -> Option<Instant> {
        self.cpus.get(cpu).and_then(|cpu| cpu.reschedule)
    }

    /// Whether the affinity of `task` allows `cpu`.
    pub fn allows(&self, task: TaskId, cpu: CpuId) -> bool {
        let task = self.tasks.get(task);
        task.is_none_or(|task| task.allowed.has(cpu))
    }

    /// Every CPU that a record named.
    pub fn cpus(&self) -> impl Iterator<Item = CpuId> {
        self.cpus.iter().map(|(cpu, _)| cpu)
    }

    /// The innermost interrupt that `cpu` is serving.
    pub fn open(&self, cpu: CpuId) -> Option<Interrupt> {
        self.cpus.get(cpu).and_then(|cpu| cpu.open.last().copied())
    }

    /// True if `cpu` may still be serving an interrupt that began before the recording.
    pub fn may_be_in_unknown_interrupt(&self, cpu: CpuId) -> bool {
        let known = self.cpus.get(cpu).is_some_and(|cpu| cpu.interrupts_known);
        !self.whole && !known
    }

    /// True if `task` is about to leave its CPU asleep.
    pub fn blocks(&self, task: TaskId) -> bool {
        self.tasks.get(task).is_some_and(|task| task.blocks)
    }

    /// True if `cpu` is known to be in an idle state.
    pub fn in_idle_state(&self, cpu: CpuId) -> bool {
        self.cpus.get(cpu).is_some_and(|cpu| cpu.idles)
    }

    /// True if this span ever began.
    pub fn has_begun(&self, span: u32, number: u64) -> bool {
        self.spans.contains(&(span, number))
    }

    /// What `counter` has counted.
    pub fn counted(&self, counter: u32) -> u64 {
        self.counts.get(&counter).copied().unwrap_or(0)
    }

    /// Every task that a record named, and its state.
    pub fn tasks(&self) -> impl Iterator<Item = (TaskId, State)> {
        self.tasks.iter().map(|(id, task)| (id, task.state))
    }

    /// Updates the state by `record`, which happened at `at`.
    pub fn apply(&mut self, at: Instant, record: &Record) {
        self.now = at;
        self.records += 1;
        self.follow_gaps(record);
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
                // A switch cannot happen inside an interrupt.
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
                }
            }
            Record::InterruptExit { cpu, .. } => {
                self.cpus.touch(cpu).open.pop();
            }
            // If one is pending already the two merge, as in an APIC.
            Record::RescheduleSent { to, .. } => {
                let to = self.cpus.touch(to);
                to.reschedule.get_or_insert(at);
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
            // One that is runnable all the same, as a throttled task is, may leave as it likes.
            Record::Block { task, state, .. } => {
                let task = self.tasks.touch(task);
                task.blocks = state != crate::State::Runnable;
                // One that waits leaves its queue at once.
                if let (crate::State::Runnable, State::Runnable { .. }) = (state, task.state) {
                    task.state = State::Asleep;
                }
            }
            Record::Idle { cpu, state } => self.cpus.touch(cpu).idles = state.is_some(),
            Record::SpanBegin { span, number, .. } => {
                self.spans.insert((span, number));
            }
            Record::Count { counter, total } => {
                self.counts.insert(counter, total);
            }
            // The others do not change who runs where.
            Record::LockBusy { .. }
            | Record::Recalculate { .. }
            | Record::Waking { .. }
            | Record::Ids { .. }
            | Record::Renamed { .. }
            | Record::Nice { .. }
            | Record::Policy { .. }
            | Record::Slice { .. }
            | Record::Group { .. }
            | Record::Cgroup { .. }
            | Record::Throttled { .. }
            | Record::Quota { .. }
            | Record::Owed { .. }
            | Record::KernelThread { .. }
            | Record::Fragment { .. }
            | Record::Packet { .. }
            | Record::Drop { .. }
            | Record::Poll { .. }
            | Record::Steal { .. }
            | Record::Lost { .. }
            | Record::Role { .. }
            | Record::SpanEnd { .. }
            | Record::Phase { .. }
            | Record::Ran { .. } => {}
        }
    }

    /// A CPU whose events are missing is unknown until it switches again. What the others run is
    /// known all the same, and nothing else.
    fn follow_gaps(&mut self, record: &Record) {
        match *record {
            Record::Lost { cpu, .. } => {
                self.whole = false;
                self.gaps.insert(cpu);
            }
            Record::Switch { cpu, .. } if self.gaps.remove(&cpu) => {
                let state = self.cpus.touch(cpu);
                *state = Cpu {
                    offline: state.offline,
                    ..Cpu::default()
                };
                self.forget(cpu);
            }
            _ => {}
        }
    }

    /// Forgets all that `silent` may have changed.
    fn forget(&mut self, silent: CpuId) {
        let elsewhere = |state| matches!(state, State::Running(cpu) if cpu != silent);
        for task in self.tasks.values_mut() {
            if !elsewhere(task.state) {
                task.state = State::Unknown;
                task.blocks = false;
            }
        }
    }

    /// Changes the affinity of `task`. A waiting task waits for the new CPUs from here on.
    fn set_affinity(&mut self, at: Instant, task: TaskId, from: CpuId, cpus: u64) {
        let task = self.tasks.touch(task);
        task.allowed.tell(from, cpus);
        if let State::Runnable { since, queued, .. } = &mut task.state {
            (*since, *queued) = (at, at);
        }
    }

    /// Wakes `task`. A task that is running or runnable already stays as it is.
    fn wake(&mut self, at: Instant, task: TaskId, target: CpuId) {
        let task = self.tasks.touch(task);
        task.blocks = false;
        let state = &mut task.state;
        if let State::Unknown | State::Asleep = state {
            *state = State::waits(target, at);
        }
    }

    fn leave(&mut self, at: Instant, cpu: CpuId, task: TaskId, runnable: bool) {
        let task = self.tasks.touch(task);
        task.blocks = false;
        let state = &mut task.state;
        *state = match (*state, runnable) {
            (State::Gone, _) => State::Gone,
            (_, true) => State::waits(cpu, at),
            (_, false) => State::Asleep,
        };
    }
}
