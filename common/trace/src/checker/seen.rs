//! What the invariants look at: the board, and what is known beside it.

use std::collections::{BTreeMap, BTreeSet};

use warmq_units::{CpuId, Instant, LockId, TaskId};

use crate::{Allowed, Board, Doing, Interrupt, Policy, Record, State, Table, Work};

/// The state of a machine as its records show it.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub board: Board,
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
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    /// The time of its last switch.
    switched: Option<Instant>,
    /// True while it is in an idle state.
    idles: bool,
    /// Since when a reschedule interrupt is pending.
    reschedule: Option<Instant>,
}

#[derive(Clone, Debug, Default)]
struct Task {
    /// The CPUs that it may use, and since when.
    allowed: Allowed,
    bound: Instant,
    /// It is of SCHED_DEADLINE: it may have to wait for its next period, and no record says so.
    is_reserved: bool,
}

/// A wait for a CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    /// In whose queue, if each CPU has one.
    pub cpu: CpuId,
    /// Since when it could have run on a CPU that it may use now.
    pub since: Instant,
    /// The same, in this queue.
    pub queued: Instant,
}

impl Seen {
    /// That of a machine that has just been switched on.
    pub fn at_the_start() -> Seen {
        Seen {
            board: Board::of_a_run(),
            whole: true,
            ..Seen::default()
        }
    }

    /// That of a machine whose past is unknown.
    pub fn midway() -> Seen {
        Seen::default()
    }

    /// True if the records begin when the machine starts, so that nothing is unknown.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// The task that runs on `cpu`, if known; `Some(None)` is the idle task.
    pub fn running(&self, cpu: CpuId) -> Option<Option<TaskId>> {
        match self.board.work(cpu) {
            Work::Unknown => None,
            Work::Idle | Work::Offline => Some(None),
            Work::Runs(task) => Some(Some(task)),
        }
    }

    /// Since when `cpu` has been idle, if it is idle and online.
    pub fn idle_since(&self, cpu: CpuId) -> Option<Instant> {
        let idle = self.board.work(cpu) == Work::Idle;
        idle.then(|| self.board.work_since(cpu))
    }

    /// The wait of `task`, if it waits. New CPUs are waited for from when they are set.
    pub fn wait(&self, task: TaskId) -> Option<Wait> {
        let Doing::Waits(cpu) = self.board.doing(task) else {
            return None;
        };
        let bound = self.tasks.get(task);
        let bound = bound.map_or(Instant::START, |task| task.bound);
        Some(Wait {
            cpu,
            since: self.board.since(task).max(bound),
            queued: self.board.queued(task).max(bound),
        })
    }

    /// The time of the last switch on `cpu`.
    pub fn switched(&self, cpu: CpuId) -> Instant {
        let cpu = self.cpus.get(cpu);
        cpu.and_then(|cpu| cpu.switched).unwrap_or(Instant::START)
    }

    /// When `lock` was last released, if it ever was.
    pub fn released(&self, lock: LockId) -> Option<Instant> {
        self.released.get(lock).copied().flatten()
    }

    /// Since when a reschedule interrupt has been pending on `cpu`, if one is.
    pub fn reschedule(&self, cpu: CpuId) -> Option<Instant> {
        self.cpus.get(cpu).and_then(|cpu| cpu.reschedule)
    }

    /// Every CPU that a reschedule interrupt may be pending on.
    pub fn rescheduled(&self) -> impl Iterator<Item = CpuId> {
        self.cpus.iter().map(|(cpu, _)| cpu)
    }

    /// Whether the affinity of `task` allows `cpu`.
    pub fn allows(&self, task: TaskId, cpu: CpuId) -> bool {
        let task = self.tasks.get(task);
        task.is_none_or(|task| task.allowed.has(cpu))
    }

    /// Whether `task` may have to wait although a CPU idles.
    pub fn is_reserved(&self, task: TaskId) -> bool {
        self.tasks.get(task).is_some_and(|task| task.is_reserved)
    }

    /// The innermost interrupt that `cpu` is serving.
    pub fn open(&self, cpu: CpuId) -> Option<Interrupt> {
        self.board.interrupts(cpu).last().copied()
    }

    /// True if `cpu` may still be serving an interrupt that began before the recording: a switch
    /// cannot happen inside one.
    pub fn may_be_in_unknown_interrupt(&self, cpu: CpuId) -> bool {
        let cpu = self.cpus.get(cpu);
        !self.whole && cpu.is_none_or(|cpu| cpu.switched.is_none())
    }

    /// True if `task` is about to leave its CPU asleep.
    pub fn blocks(&self, task: TaskId) -> bool {
        let block = self.board.block(task);
        block.is_some_and(|block| block.state != State::Runnable)
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

    /// Updates the state by `record`, which happened at `at`.
    pub fn apply(&mut self, at: Instant, record: &Record) {
        self.now = at;
        self.records += 1;
        match *record {
            // A single missing event hides nothing, but it is no event to be judged either.
            Record::Lost { cpu, .. } => {
                self.whole = false;
                *self.cpus.touch(cpu) = Cpu::default();
                self.board.see(at, &Record::Lost { cpu, events: 0 });
                return;
            }
            Record::Switch { cpu, .. } => self.cpus.touch(cpu).switched = Some(at),
            Record::InterruptEnter {
                cpu,
                interrupt: Interrupt::Reschedule,
            } => self.cpus.touch(cpu).reschedule = None,
            // If one is pending already the two merge, as in an APIC.
            Record::RescheduleSent { to, .. } => {
                self.cpus.touch(to).reschedule.get_or_insert(at);
            }
            Record::Lock { lock, .. } => *self.released.touch(lock) = Some(at),
            Record::Affinity { task, from, cpus } => {
                let task = self.tasks.touch(task);
                task.allowed.set(from, cpus);
                task.bound = at;
            }
            Record::Policy { task, policy, .. } => {
                self.tasks.touch(task).is_reserved = policy == Policy::Deadline;
            }
            Record::Idle { cpu, state } => self.cpus.touch(cpu).idles = state.is_some(),
            Record::SpanBegin { span, number, .. } | Record::SpanBegan { span, number, .. } => {
                self.spans.insert((span, number));
            }
            Record::Count { counter, total } => {
                self.counts.insert(counter, total);
            }
            _ => {}
        }
        self.board.see(at, record);
    }
}
