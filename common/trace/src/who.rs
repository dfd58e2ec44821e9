//! Who a task is, as far as records say.

use warmq_units::{CpuId, Duration, TaskId};

use crate::{Allowed, Comm, Policy, Record, Table};

/// What all tasks are like.
#[derive(Clone, Debug, Default)]
pub struct Known(Table<TaskId, Who>);

impl Known {
    /// Takes in what a record says of a task. A child is like its parent.
    pub fn learn(&mut self, record: &Record) {
        match *record {
            Record::Fork {
                parent,
                child,
                comm,
            } => {
                let parent = parent.and_then(|parent| self.0.get(parent));
                *self.0.touch(child) = Who::of_child(parent, comm);
            }
            _ => {
                if let Some(task) = Who::described(record) {
                    self.0.touch(task).learn(record);
                }
            }
        }
    }

    /// What `task` is like, if a record said anything of it.
    pub fn who(&self, task: TaskId) -> Option<&Who> {
        self.0.get(task)
    }

    /// Every task of which a record said anything.
    pub fn tasks(&self) -> impl Iterator<Item = TaskId> {
        self.0.iter().map(|(task, _)| task)
    }
}

/// What a task is like: as a trace said last.
#[derive(Clone, Debug, Default)]
pub struct Who {
    /// Its name.
    pub comm: Comm,
    /// Its table and number in the scenario.
    pub role: Option<(u32, u32)>,
    /// Its thread id.
    pub tid: Option<u32>,
    /// Its process; none if unknown.
    pub tgid: Option<u32>,
    /// Its group, as [`Record::Group`] numbers it.
    pub group: u32,
    /// From -20 to 19.
    pub nice: i8,
    /// Its policy; none if nothing was said of it.
    pub policy: Option<Policy>,
    /// Of a real-time policy, from 1 to 99.
    pub priority: u8,
    /// The slice that it asks for; zero: the scheduler's own.
    pub slice: Duration,
    /// Whether it is a thread of the kernel.
    pub kernel: bool,
    /// The CPUs that it may use.
    pub cpus: Allowed,
    /// How often something was set that had been set before.
    pub changes: u64,
}

impl Who {
    /// Of a child of `parent`, if that is known.
    #[must_use]
    pub fn of_child(parent: Option<&Who>, comm: Comm) -> Who {
        Who {
            comm,
            role: None,
            tid: None,
            changes: 0,
            ..parent.cloned().unwrap_or_default()
        }
    }

    /// Its policy, the usual one if nothing was said of it.
    pub fn policy(&self) -> Policy {
        self.policy.unwrap_or(Policy::Other)
    }

    /// Whether it comes before all fair tasks.
    pub fn is_realtime(&self) -> bool {
        let policy = self.policy();
        matches!(policy, Policy::Fifo | Policy::RoundRobin | Policy::Deadline)
    }

    /// The task that `record` describes: what it is called, which one it is, how it is scheduled.
    pub fn described(record: &Record) -> Option<TaskId> {
        match *record {
            Record::Role { task, .. }
            | Record::Renamed { task, .. }
            | Record::Ids { task, .. }
            | Record::Nice { task, .. }
            | Record::Policy { task, .. }
            | Record::Slice { task, .. }
            | Record::Group { task, .. }
            | Record::KernelThread { task }
            | Record::Affinity { task, .. } => Some(task),
            _ => None,
        }
    }

    /// Takes in what a record says of the task.
    pub fn learn(&mut self, record: &Record) {
        match *record {
            Record::Role { table, number, .. } => self.role = Some((table, number)),
            Record::Renamed { comm, .. } => self.comm = comm,
            Record::Ids { tid, tgid, .. } => {
                self.tid = Some(tid);
                self.tgid = (tgid != 0).then_some(tgid);
            }
            Record::Nice { nice, .. } => {
                self.changes += u64::from(self.nice != 0 && self.nice != nice);
                self.nice = nice;
            }
            Record::Policy {
                policy, priority, ..
            } => {
                let other = self.policy.is_some_and(|known| known != policy);
                self.changes += u64::from(other);
                (self.policy, self.priority) = (Some(policy), priority);
            }
            Record::Slice { slice, .. } => self.slice = slice,
            Record::Group { group, .. } => {
                self.changes += u64::from(self.group != 0 && self.group != group);
                self.group = group;
            }
            Record::KernelThread { .. } => self.kernel = true,
            Record::Affinity { from, cpus, .. } => self.allow(from, cpus),
            _ => {}
        }
    }

    /// The CPUs from `from` on are those of `cpus`.
    fn allow(&mut self, from: CpuId, cpus: u64) {
        let known = self.cpus.set(from, cpus);
        self.changes += u64::from(known.is_some_and(|known| known != cpus));
    }

    /// Of the first `count` CPUs, those that it may use; none: all.
    pub fn allowed(&self, count: usize) -> Option<Vec<usize>> {
        let may = |cpu: &usize| u16::try_from(*cpu).is_ok_and(|cpu| self.cpus.has(CpuId(cpu)));
        let allowed: Vec<usize> = (0..count).filter(may).collect();
        (allowed.len() < count).then_some(allowed)
    }
}
