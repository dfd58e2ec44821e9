//! What a task group is, for schedulers and workloads.

use warmq_trace::Comm;
use warmq_units::Duration;

/// The id of a task group; [`GroupId::ROOT`] always exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub(crate) u32);

impl GroupId {
    /// The group of all tasks that are in no other.
    pub const ROOT: GroupId = GroupId(0);

    /// The group as an index into a table with one entry per group.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A task group, as a scheduler may see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: Comm,
    /// The group that it is part of; `None` for the root.
    pub parent: Option<GroupId>,
    /// Its weight among its siblings, as `cpu.weight` of cgroup v2: 1 to 10,000. That of an
    /// autogroup is [`group_weight_of_nice`](crate::group_weight_of_nice).
    pub weight: u32,
    /// Its tasks run only where nobody else wants to (`cpu.idle`). Its weight is the least then.
    pub idle: bool,
    /// It is the group of a session, which schedulers of sched_ext do not see.
    pub autogroup: bool,
    /// Its limits, where the scheduler is to keep them (`Throttling::Scheduler`) and there are any.
    pub limits: Option<Limits>,
}

impl Group {
    /// An ordinary one, without limits.
    pub(crate) fn new(name: &str, parent: Option<GroupId>, weight: u32) -> Group {
        Group {
            name: Comm::new(name),
            parent,
            weight,
            idle: false,
            autogroup: false,
            limits: None,
        }
    }
}

/// `cpu.max` and `cpu.max.burst` of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// CPU time in each period; more than zero.
    pub quota: Duration,
    /// More than zero.
    pub period: Duration,
    /// How much of what periods leave unused is kept for later ones.
    pub burst: Duration,
}
