//! What can be set while the machine runs.

use warmq_units::{CpuId, CpuSet, Duration, TaskId};

use crate::words::{Fragment, GroupId, Policy};

/// Something that is set while the machine runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The nice value of a task, from -20 to 19.
    Nice(TaskId, i8),
    /// The policy of a task.
    Policy(TaskId, Policy),
    /// The slice that a task asks for; `None` is the scheduler's default.
    Slice(TaskId, Option<Duration>),
    /// As what utilization a task counts at least, from 0 to 1024.
    UclampMin(TaskId, u16),
    /// And at most.
    UclampMax(TaskId, u16),
    /// The group of a task.
    Group(TaskId, GroupId),
    /// The CPUs that a task may use. CPUs that the machine lacks are ignored; if none is left,
    /// nothing changes.
    Affinity(TaskId, CpuSet),
    /// The data that a task uses: the task names it on its next way to user mode.
    Fragment(TaskId, Option<Fragment>),
    /// SIGSTOP: the task does not run from its next way to user mode on.
    Stop(TaskId),
    /// SIGCONT.
    Continue(TaskId),
    /// The weight of a group among its siblings (`cpu.weight`), from 1 to 10,000.
    Weight(GroupId, u32),
    /// The CPU time of a group in each of its periods (`cpu.max`). It has all of it at once. The
    /// period is that which the group has, or 100 ms.
    Quota(GroupId, Duration),
    /// How much CPU time a group keeps of what periods left unused (`cpu.max.burst`).
    Burst(GroupId, Duration),
    /// Whether the tasks of a group run only where nobody else wants to (`cpu.idle`). A group that
    /// is no longer idle has the default weight.
    Idle(GroupId, bool),
    /// The CPUs that the tasks of a group may use (`cpuset.cpus`). CPUs that the machine lacks are
    /// ignored; if none is left, nothing changes.
    Cpuset(GroupId, CpuSet),
    /// Freezes a group with all groups in it (`cgroup.freeze`).
    Freeze(GroupId),
    /// Thaws it.
    Thaw(GroupId),
    /// Takes a CPU offline, or online. The last one stays online.
    Online(CpuId, bool),
}
