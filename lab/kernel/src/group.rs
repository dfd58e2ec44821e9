//! Task groups: a tree, as of cgroups or autogroups.

use warmq_trace::Comm;

/// The id of a task group; [`GroupId::ROOT`] always exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// Its weight among its siblings, as `cpu.weight` of cgroup v2: 1 to 10,000.
    pub weight: u32,
}

/// The default weight of a group (`cpu.weight`).
pub(crate) const DEFAULT_WEIGHT: u32 = 100;

/// All groups.
///
/// Invariant: entry 0 is the root, and every other's parent stands before it.
#[derive(Debug)]
pub(crate) struct Groups(Vec<Group>);

impl Groups {
    pub(crate) fn new() -> Groups {
        Groups(vec![Group {
            name: Comm::new("root"),
            parent: None,
            weight: DEFAULT_WEIGHT,
        }])
    }

    /// Creates a group within `parent`; `weight` is clamped to its range.
    pub(crate) fn create(&mut self, parent: GroupId, name: &str, weight: u32) -> GroupId {
        self.0.push(Group {
            name: Comm::new(name),
            parent: Some(parent),
            weight: weight.clamp(1, 10_000),
        });
        GroupId(self.0.len() as u32 - 1)
    }

    pub(crate) fn get(&self, group: GroupId) -> &Group {
        &self.0[group.index()]
    }

    pub(crate) fn set_weight(&mut self, group: GroupId, weight: u32) {
        self.0[group.index()].weight = weight.clamp(1, 10_000);
    }
}
