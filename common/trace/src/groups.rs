//! The tree of groups (cgroups), as far as records show.

use std::collections::BTreeMap;

use warmq_units::Duration;

use crate::{Comm, Record};

/// What is known of a group.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// The group that it is part of; 0 is the root.
    pub parent: u32,
    /// As `cpu.weight`.
    pub weight: u32,
    /// Its name.
    pub name: Comm,
}

impl Default for Group {
    fn default() -> Group {
        Group {
            parent: 0,
            weight: 100,
            name: Comm::default(),
        }
    }
}

/// All groups that were named. A group that was not has the usual weight in the root.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    groups: BTreeMap<u32, Group>,
    limits: BTreeMap<u32, Limit>,
}

/// CPU time of a group in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// CPU time.
    pub quota: Duration,
    /// The period.
    pub period: Duration,
}

/// No tree of groups is deeper; a damaged trace may have a cycle.
const DEEPEST: usize = 32;

impl Groups {
    /// Takes in what a record says of a group.
    pub fn learn(&mut self, record: &Record) {
        match *record {
            Record::Cgroup {
                group,
                parent,
                weight,
                name,
            } => {
                let known = Group {
                    parent,
                    weight,
                    name,
                };
                self.groups.insert(group, known);
            }
            Record::Limit {
                group,
                quota,
                period,
            } => drop(self.limits.insert(group, Limit { quota, period })),
            _ => {}
        }
    }

    /// What `group` itself may use at most, as far as that was recorded.
    pub fn limit(&self, group: u32) -> Option<Limit> {
        self.limits.get(&group).copied()
    }

    /// What is known of `group`.
    pub fn get(&self, group: u32) -> Group {
        self.groups.get(&group).copied().unwrap_or_default()
    }

    /// Every group that was named, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Group)> {
        self.groups.iter().map(|(number, group)| (*number, *group))
    }

    /// `group`, the group that it is part of, and so on; the root is not among them.
    pub fn upwards(&self, group: u32) -> Vec<u32> {
        let parent = |group: &u32| Some(self.get(*group).parent);
        let all = std::iter::successors(Some(group), parent);
        all.take_while(|group| *group != 0).take(DEEPEST).collect()
    }
}
