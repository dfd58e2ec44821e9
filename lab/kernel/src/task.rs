//! Tasks, and what a scheduler may see of them.

use std::rc::Rc;

use warmq_trace::Comm;
use warmq_units::{Address, CpuId, CpuSet, Duration, Instant, TaskId};

use crate::ending::Waiting;
use crate::operation::{Fragment, Mm, Operation};
use crate::program::{Mailbox, Running};
use crate::step::Step;

/// How a task is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Policy {
    /// SCHED_OTHER: time sharing.
    #[default]
    Other,
    /// SCHED_BATCH: time sharing that never preempts on wakeup.
    Batch,
    /// SCHED_FIFO with a priority from 1 to 99.
    Fifo(u8),
    /// SCHED_RR with a priority from 1 to 99.
    RoundRobin(u8),
}

/// What a task is born with.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    /// Its name.
    pub comm: Comm,
    /// Its address space; `None` for a kernel thread.
    pub mm: Option<Mm>,
    /// -20 to 19.
    pub nice: i8,
    /// Its policy.
    pub policy: Policy,
    /// Where it may run; `None` is everywhere. CPUs that the machine lacks do not count; where none
    /// is left, the task may run everywhere.
    pub allowed: Option<CpuSet>,
}

impl TaskSpec {
    /// A plain SCHED_OTHER task of nice 0 that may run everywhere.
    pub fn new(comm: &str, mm: Option<Mm>) -> TaskSpec {
        TaskSpec {
            comm: Comm::new(comm),
            mm,
            nice: 0,
            policy: Policy::Other,
            allowed: None,
        }
    }

    /// The same with another nice value, from -20 to 19.
    pub fn nice(self, nice: i8) -> TaskSpec {
        TaskSpec { nice, ..self }
    }

    /// The same with another policy.
    pub fn policy(self, policy: Policy) -> TaskSpec {
        TaskSpec { policy, ..self }
    }

    /// The same bound to `cpus`.
    pub fn bound(self, cpus: impl IntoIterator<Item = CpuId>) -> TaskSpec {
        TaskSpec {
            allowed: Some(cpus.into_iter().collect()),
            ..self
        }
    }
}

/// Whether a task can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Created, never runnable so far.
    New,
    Runnable,
    Sleeping(Waiting),
    Dead,
}

/// A task as the kernel knows it.
pub(crate) struct TaskStruct {
    // Set at fork.
    pub(crate) comm: Comm,
    pub(crate) mm: Option<Mm>,
    /// The 8 KB block of kernel stack (and, without slab coloring, task structure).
    pub(crate) block: Address,

    // Changed by system calls.
    pub(crate) nice: i8,
    pub(crate) policy: Policy,
    /// `None` is everywhere.
    pub(crate) allowed: Option<CpuSet>,
    /// The data that it said it uses.
    pub(crate) fragment: Option<Fragment>,

    // Changed by sleeping and waking.
    pub(crate) state: State,
    /// True from `enqueue` to `dequeue`: the scheduler owns the task.
    pub(crate) queued: bool,
    pub(crate) runnable_since: Instant,

    // Changed by the switch.
    pub(crate) on_cpu: Option<CpuId>,
    pub(crate) last_cpu: CpuId,
    pub(crate) switched_in: Instant,
    pub(crate) ran: Duration,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
    /// The kernel stack while the task is off the CPU.
    pub(crate) stack: Vec<Step>,

    // The program.
    pub(crate) mailbox: Rc<Mailbox<Operation>>,
    pub(crate) program: Option<Running>,
}

impl TaskStruct {
    /// A task of `spec` that has never run, with the kernel stack `block`; it may use `allowed`, and
    /// `cpu` is where it will be placed first.
    pub(crate) fn new(
        spec: &TaskSpec,
        allowed: Option<CpuSet>,
        block: Address,
        cpu: CpuId,
        now: Instant,
    ) -> TaskStruct {
        TaskStruct {
            comm: spec.comm,
            mm: spec.mm,
            block,
            nice: spec.nice.clamp(-20, 19),
            policy: spec.policy,
            allowed,
            fragment: None,
            state: State::New,
            queued: false,
            runnable_since: now,
            on_cpu: None,
            last_cpu: cpu,
            switched_in: now,
            ran: Duration::ZERO,
            voluntary_switches: 0,
            involuntary_switches: 0,
            stack: Vec::new(),
            mailbox: Mailbox::new(),
            program: None,
        }
    }

    pub(crate) fn is_runnable(&self) -> bool {
        self.state == State::Runnable
    }

    pub(crate) fn may_run_on(&self, cpu: CpuId) -> bool {
        self.allowed
            .as_ref()
            .is_none_or(|allowed| allowed.contains(cpu))
    }
}

/// What a real scheduler could know about a task. What it will do next is not in here.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(crate) id: TaskId,
    pub(crate) task: &'a TaskStruct,
}

impl View<'_> {
    /// Who it is.
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// Its address space, if it has one.
    pub fn mm(&self) -> Option<Mm> {
        self.task.mm
    }

    /// From -20 to 19.
    pub fn nice(&self) -> i8 {
        self.task.nice
    }

    /// Its policy.
    pub fn policy(&self) -> Policy {
        self.task.policy
    }

    /// The data that it said it uses, if it did.
    pub fn fragment(&self) -> Option<Fragment> {
        self.task.fragment
    }

    /// Whether its affinity allows `cpu`.
    pub fn may_run_on(&self, cpu: CpuId) -> bool {
        self.task.may_run_on(cpu)
    }

    /// True when it could run: it does not sleep and has not exited.
    pub fn is_runnable(&self) -> bool {
        self.task.is_runnable()
    }

    /// The CPU that runs it, from the moment it was picked until the switch away is complete
    /// (`has_cpu` of Linux 2.4).
    pub fn on_cpu(&self) -> Option<CpuId> {
        self.task.on_cpu
    }

    /// The CPU it ran on last, or was placed on at fork.
    pub fn last_cpu(&self) -> CpuId {
        self.task.last_cpu
    }

    /// The physical address of its 8 KB block of kernel memory.
    pub fn block(&self) -> Address {
        self.task.block
    }

    /// CPU time it had up to its last switch.
    pub fn ran(&self) -> Duration {
        self.task.ran
    }
}
