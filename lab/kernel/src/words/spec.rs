//! What a task is like when it is created.

use warmq_machine::FULL_CAPACITY;
use warmq_trace::Comm;
use warmq_units::{CpuId, CpuSet, Duration};

use crate::words::{GroupId, Mm, Role};

/// How a task is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Policy {
    /// SCHED_OTHER: time sharing.
    #[default]
    Other,
    /// SCHED_BATCH: time sharing that never preempts on wakeup.
    Batch,
    /// SCHED_IDLE: runs when a CPU would otherwise be idle.
    Idle,
    /// SCHED_FIFO with a priority from 1 to 99.
    Fifo(u8),
    /// SCHED_RR with a priority from 1 to 99.
    RoundRobin(u8),
    /// SCHED_DEADLINE with what has been reserved.
    Deadline(Reserved),
}

impl Policy {
    /// Whether tasks of it share time, and run after those of all others.
    pub fn is_fair(self) -> bool {
        matches!(self, Policy::Other | Policy::Batch | Policy::Idle)
    }

    /// The real-time priority, 1 to 99, of a policy that has one.
    pub fn real_time(self) -> Option<u8> {
        match self {
            Policy::Fifo(priority) | Policy::RoundRobin(priority) => Some(priority),
            Policy::Other | Policy::Batch | Policy::Idle | Policy::Deadline(_) => None,
        }
    }
}

/// What a deadline task has: none is less than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reserved {
    /// CPU time in each period.
    pub runtime: Duration,
    /// Until when it has that, from the beginning of the period.
    pub deadline: Duration,
    /// From one period to the next.
    pub period: Duration,
}

/// The attributes of a new task.
#[derive(Clone, Debug, Default)]
pub struct TaskSpec {
    /// Its name.
    pub comm: Comm,
    /// Its address space; without one, it borrows that of the task that ran before, as kernel
    /// threads do.
    pub mm: Option<Mm>,
    /// Whether it is a kernel thread: a run does not wait for kernel threads to exit.
    pub kernel_thread: bool,
    /// Whether the run ends without it once all others have exited.
    pub background: bool,
    /// Its nice value, -20 to 19.
    pub nice: i8,
    /// Its policy.
    pub policy: Policy,
    /// The slice that it asks for (`sched_attr::sched_runtime` of a SCHED_OTHER task, since Linux
    /// 6.12); `None` is the scheduler's default.
    pub slice: Option<Duration>,
    /// What utilization it is taken to have.
    pub uclamp: Uclamp,
    /// Its task group.
    pub group: GroupId,
    /// Which task of a scenario it is, if it is one.
    pub role: Option<Role>,
    /// Its affinity; `None` is all CPUs. CPUs that the machine lacks are ignored; if none is left,
    /// the task may run on all CPUs.
    pub allowed: Option<CpuSet>,
}

/// Between which bounds the utilization of a task counts, in 1024ths of the fastest CPU
/// (`sched_attr::sched_util_min`, `sched_util_max`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uclamp {
    /// As how much it counts at least.
    pub min: u16,
    /// And at most.
    pub max: u16,
}

impl Default for Uclamp {
    fn default() -> Uclamp {
        Uclamp {
            min: 0,
            max: FULL_CAPACITY as u16,
        }
    }
}

impl TaskSpec {
    /// A plain SCHED_OTHER task of nice 0 that may run on every CPU.
    pub fn new(comm: &str, mm: Option<Mm>) -> TaskSpec {
        TaskSpec {
            comm: Comm::new(comm),
            mm,
            ..TaskSpec::default()
        }
    }

    /// A kernel thread.
    pub fn kernel_thread(comm: &str) -> TaskSpec {
        TaskSpec {
            kernel_thread: true,
            ..TaskSpec::new(comm, None)
        }
    }

    /// The same, which the run does not wait for if `background`.
    pub fn background(self, background: bool) -> TaskSpec {
        TaskSpec { background, ..self }
    }

    /// The same asking for slices of `slice`.
    pub fn slice(self, slice: Duration) -> TaskSpec {
        let slice = Some(slice);
        TaskSpec { slice, ..self }
    }

    /// The same counting as of a utilization within `uclamp`.
    pub fn uclamp(self, uclamp: Uclamp) -> TaskSpec {
        TaskSpec { uclamp, ..self }
    }

    /// The same as the task `role` of a scenario.
    pub fn role(self, role: Role) -> TaskSpec {
        let role = Some(role);
        TaskSpec { role, ..self }
    }

    /// The same in `group`.
    pub fn group(self, group: GroupId) -> TaskSpec {
        TaskSpec { group, ..self }
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
