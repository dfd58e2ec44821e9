//! The tree of groups.

use std::collections::BTreeMap;

use warmq_trace::Comm;
use warmq_units::Duration;

/// What is known of a group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub parent: u32,
    /// As `cpu.weight`.
    pub weight: u32,
    pub name: Comm,
    pub throttled: Duration,
}

impl Default for Group {
    fn default() -> Group {
        Group {
            parent: 0,
            weight: 100,
            name: Comm::default(),
            throttled: Duration::ZERO,
        }
    }
}

/// All groups that were named. A group that was not has the usual weight in the root.
#[derive(Debug, Default)]
pub(crate) struct Groups(BTreeMap<u32, Group>);

/// No tree of groups is deeper; a damaged trace may have a cycle.
const DEEPEST: usize = 32;

impl Groups {
    pub fn learn(&mut self, group: u32, parent: u32, weight: u32, name: Comm) {
        let known = self.0.entry(group).or_default();
        (known.parent, known.weight, known.name) = (parent, weight, name);
    }

    pub fn throttle(&mut self, group: u32, span: Duration) {
        self.0.entry(group).or_default().throttled += span;
    }

    pub fn restart(&mut self) {
        let all = self.0.values_mut();
        all.for_each(|group| group.throttled = Duration::ZERO);
    }

    pub fn get(&self, group: u32) -> Group {
        self.0.get(&group).cloned().unwrap_or_default()
    }

    /// `group`, the group that it is part of, and so on; the root is not among them.
    pub fn upwards(&self, group: u32) -> Vec<u32> {
        let parent = |group: &u32| Some(self.get(*group).parent);
        let all = std::iter::successors(Some(group), parent);
        all.take_while(|group| *group != 0).take(DEEPEST).collect()
    }
}
