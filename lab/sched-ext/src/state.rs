//! What the kernel's part of sched_ext knows: tasks, CPUs, queues, groups.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use warmq_bpf_run::Guest;
use warmq_classes::TaskClass;
use warmq_kernel::{Context, GroupId, Mm, Timer};
use warmq_units::{Address, CpuId, Instant, LockId, TaskId};

use crate::again::Again;
use crate::call::Code;
use crate::expenses::Costs;
use crate::idle::Idle;
use crate::kicks::{KickWait, Wait};
use crate::layout::Layouts;
use crate::lines::Lines;
use crate::profiler::Profiler;
use crate::queue::{Dsq, Place, Queue};
use crate::realtime::Above;
use crate::variables::Variables;
use crate::words::{Enq, dsq};

/// Who has a runnable task (`p->scx.ops_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Held {
    /// A queue, or nobody: it runs or sleeps.
    #[default]
    Kernel,
    /// The program, which is to insert it somewhere.
    Program,
}

/// That a task is to be inserted into a queue: the answer to `ops.select_cpu`, `ops.enqueue` or
/// `ops.dispatch`, which takes effect when the callback has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Insert {
    pub(crate) dsq: u64,
    /// 0: the one that it has is kept.
    pub(crate) slice: u64,
    pub(crate) vtime: Option<u64>,
    pub(crate) flags: u64,
}

impl Insert {
    /// Into the own queue of a CPU.
    pub(crate) fn local(slice: u64, flags: u64) -> Insert {
        Insert {
            dsq: dsq::LOCAL,
            slice,
            vtime: None,
            flags,
        }
    }
}

/// What `ops.dispatch` has inserted: the task, its `sequence` then, and where.
pub(crate) type Dispatched = (TaskId, u64, Insert);

/// A task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Task {
    /// Its `struct task_struct`; 0 before fork and after it has exited.
    pub(crate) address: u64,
    pub(crate) group: Option<GroupId>,
    /// It is on a run queue (`SCX_TASK_QUEUED`).
    pub(crate) queued: bool,
    pub(crate) held: Held,
    /// `ops.dequeue` is called when it leaves the program (`SCX_TASK_IN_CUSTODY`). 6.18 does so
    /// only of a task that is in no queue.
    pub(crate) custody: bool,
    /// How often it was given to the program.
    pub(crate) sequence: u64,
    /// Its queue, and where in it.
    pub(crate) on: Option<(Dsq, Place)>,
    /// Where it is inserted when the callback has returned.
    pub(crate) direct: Option<Insert>,
    /// The CPU on whose run queue it is.
    pub(crate) cpu: CpuId,
    /// Since when it has waited for a CPU, if it does.
    pub(crate) waits_since: Option<Instant>,
    pub(crate) weight: u64,
    /// It was inserted to run at once (`SCX_TASK_IMMED`).
    pub(crate) immediate: bool,
    /// How often it has gone back to the program since it ran.
    pub(crate) repeats: u32,
    /// Whether it is the program's, and what it is above that.
    pub(crate) class: TaskClass,
    /// No signal wakes it from its sleep.
    pub(crate) blocked: bool,
    /// Its CPU was chosen by the last `select_cpu`.
    pub(crate) cpu_selected: bool,
}

/// A CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cpu {
    pub(crate) lock: LockId,
    /// Where the word of `lock` is.
    pub(crate) word: Address,
    pub(crate) node: u16,
    pub(crate) local: Queue,
    /// Who runs, from the moment it is picked.
    pub(crate) current: Option<TaskId>,
    /// Since when what it ran is not charged yet.
    pub(crate) exec_start: Instant,
    /// The program knows that it idles (`ops.update_idle`).
    pub(crate) known_idle: bool,
    /// The task_struct of its idle task.
    pub(crate) idle_task: u64,
    /// What it waits for after kicks.
    pub(crate) wait: Wait,
    /// Whom `cpumask_any_distribute()` and its like returned last, plus one. The first time they
    /// leave out CPU 0 if they can.
    pub(crate) turn: u32,
}

/// A cgroup.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cgroup {
    /// Its `struct cgroup`.
    pub(crate) address: u64,
    /// What points to it: of tasks, `struct css_set` and `struct task_group`.
    pub(crate) css_set: u64,
    pub(crate) task_group: u64,
    pub(crate) weight: u32,
    pub(crate) idle: bool,
    /// Period, quota and burst in us.
    pub(crate) limits: [u64; 3],
}

/// What a callback may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum During {
    #[default]
    Other,
    /// `ops.select_cpu` or `ops.enqueue` of this task, which may insert it once.
    Placing(TaskId),
    /// The same, after that.
    Placed,
    /// `ops.dispatch` of this CPU.
    Dispatch,
}

/// What an iterator over a queue knows: its tasks when it began, and how far it is.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    pub(crate) dsq: Dsq,
    pub(crate) tasks: Vec<TaskId>,
    pub(crate) next: usize,
    /// What the next move sets.
    pub(crate) slice: Option<u64>,
    pub(crate) vtime: Option<u64>,
}

/// How often what happened (`struct scx_event_stats`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// A CPU that the program chose was not allowed.
    pub(crate) fallback: u64,
    /// A task went to the global queue, since it may not run on the CPU it was sent to.
    pub(crate) offline: u64,
    /// A task went on since nobody else was there.
    pub(crate) keep_last: u64,
    /// A task that exits was not given to the program.
    pub(crate) skip_exiting: u64,
    /// A task got the default slice.
    pub(crate) refill: u64,
}

/// What the kernel knows of one path alone, from the beginning of an event to its end.
#[derive(Default)]
pub(crate) struct Own {
    pub(crate) during: During,
    /// What `ops.dispatch` has inserted.
    pub(crate) batch: Vec<Dispatched>,
    /// Tasks that the last dispatch moved or inserted.
    pub(crate) dispatched: u64,
    /// The CPU that picks.
    pub(crate) picking: Option<CpuId>,
    pub(crate) walks: BTreeMap<u64, Walk>,
    /// What iterators over cgroups still have to give.
    pub(crate) css_walks: BTreeMap<u64, VecDeque<u64>>,
    /// CPUs to be kicked when the callback has returned, and how.
    pub(crate) kicks: Vec<(CpuId, u64)>,
    /// Tasks that have left the program, of which it is to be notified.
    pub(crate) left: Vec<TaskId>,
    /// Queues that are to be looked through for tasks that go back to the program.
    pub(crate) again: Vec<Again>,
    /// The CPU that looks for its next task (`SCX_RQ_IN_DISPATCH`).
    pub(crate) finding: Option<CpuId>,
}

/// All of it.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) layouts: Layouts,
    pub(crate) enq: Enq,
    /// `sched_ext_ops.flags`.
    pub(crate) flags: u64,
    pub(crate) tasks: Vec<Task>,
    /// Tasks by their `struct task_struct`.
    pub(crate) by_address: BTreeMap<u64, TaskId>,
    pub(crate) cpus: Vec<Cpu>,
    /// What each CPU has above its tasks of sched_ext.
    pub(crate) above: Vec<Above>,
    /// This kernel has a deadline server of tasks of sched_ext.
    pub(crate) is_served: bool,
    /// CPUs that wait for others after kicks, or are to.
    pub(crate) waiting: Vec<CpuId>,
    /// How this kernel waits for CPUs that were kicked.
    pub(crate) kick_wait: KickWait,
    /// A slice of SCHED_RR, in ticks.
    pub(crate) round_robin: u64,
    /// CPUs whose server may want its timer armed otherwise than it is.
    pub(crate) servers: Vec<CpuId>,
    /// Tasks whose throttling may end at another time.
    pub(crate) deadlines: Vec<TaskId>,
    pub(crate) globals: Vec<Queue>,
    pub(crate) users: BTreeMap<u64, Queue>,
    pub(crate) groups: BTreeMap<GroupId, Cgroup>,
    pub(crate) idle: Rc<Idle>,
    pub(crate) lines: Lines,
    pub(crate) costs: Costs,
    /// That of the path that goes on.
    pub(crate) own: Own,
    /// Callbacks are called by the execution alone, which may be interrupted in them.
    pub(crate) interleaved: bool,
    pub(crate) most_batch: u64,
    /// Tasks that still leave their CPU, and the CPUs that would have taken them.
    pub(crate) leaving: Vec<(TaskId, CpuId)>,
    pub(crate) timers: BTreeMap<u64, Timer>,
    /// The first thread of each process, which is an address space here.
    pub(crate) leaders: BTreeMap<Mm, TaskId>,
    /// The CPU that the loader's thread is bound to, while it runs.
    pub(crate) bound_to: Option<CpuId>,
    /// Whether a program wants to know that tasks change CPUs, and those that it does not know of.
    pub(crate) watches_migrations: bool,
    pub(crate) migrated: Vec<(TaskId, CpuId)>,
    pub(crate) variables: Variables,
    /// The only user's credentials: root's, in the first user namespace.
    pub(crate) cred: u64,
    pub(crate) possible: u64,
    pub(crate) online: u64,
    pub(crate) random: u64,
    pub(crate) counts: Counts,
    /// The program is to be ended, and its loader starts it anew.
    pub(crate) restarts: bool,
    /// Why the program was ejected.
    pub(crate) ejected: Option<String>,
    /// Instructions that have been paid for.
    pub(crate) paid: u64,
    /// Who counts what callbacks cost.
    pub(crate) profiler: Option<Profiler>,
}

impl State {
    pub(crate) fn task(&self, task: TaskId) -> &Task {
        &self.tasks[task.index()]
    }

    pub(crate) fn task_mut(&mut self, task: TaskId) -> &mut Task {
        &mut self.tasks[task.index()]
    }

    pub(crate) fn cpu(&self, cpu: CpuId) -> &Cpu {
        &self.cpus[cpu.index()]
    }

    pub(crate) fn cpu_mut(&mut self, cpu: CpuId) -> &mut Cpu {
        &mut self.cpus[cpu.index()]
    }

    pub(crate) fn queue(&self, dsq: Dsq) -> Option<&Queue> {
        match dsq {
            Dsq::Local(cpu) => Some(&self.cpu(cpu).local),
            Dsq::Global(node) => self.globals.get(usize::from(node)),
            Dsq::User(id) => self.users.get(&id),
        }
    }

    pub(crate) fn queue_mut(&mut self, dsq: Dsq) -> Option<&mut Queue> {
        match dsq {
            Dsq::Local(cpu) => Some(&mut self.cpu_mut(cpu).local),
            Dsq::Global(node) => self.globals.get_mut(usize::from(node)),
            Dsq::User(id) => self.users.get_mut(&id),
        }
    }
}

/// Everything that the kernel's part has to do with at once: its state, the program's memory, and
/// the machine.
pub(crate) struct Here<'a, 'k> {
    pub(crate) code: &'a Code,
    pub(crate) state: &'a mut State,
    pub(crate) guest: &'a mut Guest,
    pub(crate) context: &'a mut Context<'k>,
}
