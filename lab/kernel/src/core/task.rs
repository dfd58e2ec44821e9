//! Tasks, and what a scheduler may see of them.

use std::rc::Rc;

use warmq_trace::Comm;
use warmq_units::{Address, CpuId, CpuSet, Duration, Instant, TaskId};

use crate::words::{
    CpuTime, Fragment, GroupId, Mailbox, Mm, Operation, Policy, Role, Running, Step, TaskSpec,
    Uclamp, Waiting,
};

/// The state of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// Forked, and not yet runnable.
    #[default]
    New,
    Runnable,
    Sleeping(Waiting),
    Dead,
}

/// A task as the kernel knows it.
// In this order: what every system call looks at comes first, so that it is in one line of a host's
// cache.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct TaskStruct {
    // The program.
    pub(crate) mailbox: Rc<Mailbox<Operation>>,
    pub(crate) program: Option<Running>,

    // Set at fork.
    /// The 8 KB block of kernel stack (and, without slab coloring, task structure).
    pub(crate) block: Address,
    pub(crate) comm: Comm,
    pub(crate) mm: Option<Mm>,
    pub(crate) kernel_thread: bool,
    /// Whether the run waits for it to exit.
    pub(crate) awaited: bool,
    /// It is about to exit.
    pub(crate) exits: bool,
    pub(crate) role: Option<Role>,

    // Changed by system calls.
    pub(crate) nice: i8,
    pub(crate) policy: Policy,
    pub(crate) slice: Option<Duration>,
    pub(crate) uclamp: Uclamp,
    pub(crate) group: GroupId,
    /// The affinity within the CPUs of its group; `None` is all CPUs.
    pub(crate) allowed: Option<CpuSet>,
    /// The affinity that it asks for (`user_cpus_ptr`).
    pub(crate) asked: Option<CpuSet>,
    /// The data that it named last.
    pub(crate) fragment: Option<Fragment>,
    /// The data that it is to name on its way to user mode.
    pub(crate) new_fragment: Option<Option<Fragment>>,
    /// True from SIGSTOP to SIGCONT.
    pub(crate) stopped: bool,
    /// Since when it does not run for no other reason than that it is stopped, or that its group is
    /// frozen or throttled.
    pub(crate) held_back: Option<Instant>,

    // Changed by sleeping and waking.
    pub(crate) state: State,
    /// True from `enqueue` to `dequeue`: the scheduler owns the task.
    pub(crate) queued: bool,
    pub(crate) runnable_since: Instant,
    /// It is woken, and on the list of a CPU that is to make it runnable.
    pub(crate) on_wake_list: bool,

    // Changed by the switch.
    pub(crate) on_cpu: Option<CpuId>,
    pub(crate) last_cpu: CpuId,
    /// In whose queue it is, or was last: where it is put when it is woken, and not only when it
    /// runs.
    pub(crate) queue: CpuId,
    /// Where it waits to run for the first time.
    pub(crate) first_cpu: Option<CpuId>,
    pub(crate) switched_in: Instant,
    pub(crate) ran: Duration,
    /// Exact, up to its last switch.
    pub(crate) cpu_time: CpuTime,
    /// As the tick samples it; changed by the tick.
    pub(crate) sampled: CpuTime,
    /// The kernel stack while the task is off the CPU.
    pub(crate) stack: Vec<Step>,
}

impl TaskStruct {
    /// A new task of `spec` with the kernel stack `block`. It may use the CPUs `allowed`, and is
    /// first placed on `cpu`.
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
            kernel_thread: spec.kernel_thread,
            awaited: !spec.kernel_thread && !spec.background,
            exits: false,
            role: spec.role,
            block,
            nice: spec.nice.clamp(-20, 19),
            policy: spec.policy,
            slice: spec.slice,
            uclamp: spec.uclamp,
            group: spec.group,
            allowed,
            runnable_since: now,
            last_cpu: cpu,
            queue: cpu,
            switched_in: now,
            ..TaskStruct::default()
        }
    }

    /// From now on it counts as one that last ran on `cpu`. Returns where it was moved from, if it
    /// was: where a new task waits first is no move (`wake_up_new_task()`).
    pub(crate) fn moves_to(&mut self, cpu: CpuId) -> Option<CpuId> {
        let last = std::mem::replace(&mut self.last_cpu, cpu);
        let from = self.first_cpu.take().unwrap_or(last);
        (from != cpu).then_some(from)
    }

    pub(crate) fn is_runnable(&self) -> bool {
        self.state == State::Runnable
    }

    pub(crate) fn is_asleep(&self) -> bool {
        matches!(self.state, State::Sleeping(_))
    }

    pub(crate) fn may_run_on(&self, cpu: CpuId) -> bool {
        self.allowed
            .as_ref()
            .is_none_or(|allowed| allowed.contains(cpu))
    }
}

/// What a real scheduler could know about a task, which excludes what the task will do next.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(crate) id: TaskId,
    pub(crate) task: &'a TaskStruct,
    pub(crate) offline: Option<&'a CpuSet>,
}

impl<'a> View<'a> {
    /// Its id.
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// Its name.
    pub fn comm(&self) -> Comm {
        self.task.comm
    }

    /// Its address space, if it has one.
    pub fn mm(&self) -> Option<Mm> {
        self.task.mm
    }

    /// Its nice value, from -20 to 19.
    pub fn nice(&self) -> i8 {
        self.task.nice
    }

    /// Its policy.
    pub fn policy(&self) -> Policy {
        self.task.policy
    }

    /// The data that it named, if any.
    pub fn fragment(&self) -> Option<Fragment> {
        self.task.fragment
    }

    /// The slice that it asks for; `None` is the scheduler's default.
    pub fn slice(&self) -> Option<Duration> {
        self.task.slice
    }

    /// Between which bounds its utilization counts.
    pub fn uclamp(&self) -> Uclamp {
        self.task.uclamp
    }

    /// Its task group.
    pub fn group(&self) -> GroupId {
        self.task.group
    }

    /// Whether it is a kernel thread.
    pub fn is_kernel_thread(&self) -> bool {
        self.task.kernel_thread
    }

    /// Whether its affinity allows `cpu` and `cpu` is online.
    #[inline]
    pub fn may_run_on(&self, cpu: CpuId) -> bool {
        self.task.may_run_on(cpu) && self.offline.is_none_or(|offline| !offline.contains(cpu))
    }

    /// `near`, or the first of `cpus` CPUs where it may run (`any_online_cpu()`).
    pub fn allowed_near(&self, cpus: u16, near: CpuId) -> CpuId {
        let all = (0..cpus).map(CpuId);
        let mut near_first = std::iter::once(near).chain(all);
        let allowed = near_first.find(|cpu| self.may_run_on(*cpu));
        allowed.unwrap_or(near)
    }

    /// The CPUs that its affinity allows, online or not; `None` is all CPUs.
    pub fn allowed(&self) -> Option<&'a CpuSet> {
        self.task.allowed.as_ref()
    }

    /// True if it is runnable or running: it neither sleeps nor has exited.
    pub fn is_runnable(&self) -> bool {
        self.task.is_runnable()
    }

    /// What it waits for, if it sleeps.
    pub fn waits_for(&self) -> Option<Waiting> {
        match self.task.state {
            State::Sleeping(waiting) => Some(waiting),
            State::New | State::Runnable | State::Dead => None,
        }
    }

    /// Whether it has exited, or is about to (`PF_EXITING`).
    pub fn has_exited(&self) -> bool {
        self.task.exits || self.task.state == State::Dead
    }

    /// The CPU that runs it, from the moment it was picked until the switch away is complete
    /// (`has_cpu` of Linux 2.4).
    pub fn on_cpu(&self) -> Option<CpuId> {
        self.task.on_cpu
    }

    /// The CPU that it last ran on, or was placed on at fork.
    pub fn last_cpu(&self) -> CpuId {
        self.task.last_cpu
    }

    /// The physical address of its 8 KB block of kernel memory.
    pub fn block(&self) -> Address {
        self.task.block
    }
}
