//! Cgroup weights, flattened: a task gets its part of its cgroup's weight, by what is active in
//! that cgroup, level by level. So cgroups need no queues, and groups and domains know nothing of
//! them.

use warmq_decide::{WEIGHT_NICE_0, share};
use warmq_kernel::{Context, GroupId};

/// What is active in one cgroup.
#[derive(Clone, Copy, Debug, Default)]
struct Active {
    /// The weights of its runnable tasks and active children.
    weight: u64,
    /// What it has added to its parent's.
    counted: u64,
}

/// All cgroups, by their ids; the root's entry is unused.
#[derive(Debug, Default)]
pub(super) struct Cgroups(Vec<Active>);

impl Cgroups {
    fn of(&mut self, group: GroupId) -> &mut Active {
        if self.0.len() <= group.index() {
            self.0.resize(group.index() + 1, Active::default());
        }
        &mut self.0[group.index()]
    }

    /// Counts `weight` as active in `group`. A cgroup that had nothing active becomes active in its
    /// parent.
    pub(super) fn add(&mut self, context: &Context<'_>, group: GroupId, weight: u64) {
        let (mut at, mut weight) = (cgroup(context, group), weight);
        while let Some(parent) = context.group(at).parent {
            let active = self.of(at);
            active.weight += weight;
            if active.weight != weight {
                return;
            }
            weight = own_weight(context, at);
            self.of(at).counted = weight;
            at = parent;
        }
    }

    /// The reverse of [`Cgroups::add`].
    pub(super) fn take(&mut self, context: &Context<'_>, group: GroupId, weight: u64) {
        let (mut at, mut weight) = (cgroup(context, group), weight);
        while let Some(parent) = context.group(at).parent {
            let active = self.of(at);
            active.weight -= weight;
            if active.weight != 0 {
                return;
            }
            weight = active.counted;
            at = parent;
        }
    }

    /// The weight among all tasks of the machine of a task with `weight` in `group`.
    pub(super) fn flat_weight(&self, context: &Context<'_>, group: GroupId, weight: u64) -> u64 {
        let (mut at, mut weight) = (cgroup(context, group), weight);
        while let Some(parent) = context.group(at).parent {
            let active = self.0.get(at.index()).map_or(0, |it| it.weight);
            weight = share(weight, own_weight(context, at), active);
            at = parent;
        }
        weight
    }

    /// The weight of `group` itself has changed.
    pub(super) fn reweighed(&mut self, context: &Context<'_>, group: GroupId) {
        let Some(parent) = context.group(group).parent else {
            return;
        };
        let weight = own_weight(context, group);
        let active = self.of(group);
        if active.weight == 0 {
            return;
        }
        let before = std::mem::replace(&mut active.counted, weight);
        if parent != GroupId::ROOT {
            let above = self.of(parent);
            above.weight = above.weight + weight - before;
        }
    }
}

/// The cgroup of a task in `group`: schedulers of sched_ext do not see autogroups.
fn cgroup(context: &Context<'_>, group: GroupId) -> GroupId {
    match context.group(group).autogroup {
        true => GroupId::ROOT,
        false => group,
    }
}

fn own_weight(context: &Context<'_>, group: GroupId) -> u64 {
    u64::from(context.group(group).weight) * (WEIGHT_NICE_0 / 100)
}
