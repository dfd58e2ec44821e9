//! Task groups: a tree, as of cgroups or autogroups.

use warmq_units::{CpuId, CpuSet};

use crate::core::groups::Bandwidth;
use crate::words::{Group, GroupId, Limits};

/// The default weight of a group (`cpu.weight`).
pub(crate) const DEFAULT_WEIGHT: u32 = 100;

/// The weight of an idle group: 3 shares of the kernel's, of which 1024 are a weight of 100.
const IDLE_WEIGHT: u32 = 1;

/// Those CPUs of `outer` (`None`: all) that are in `wanted`, or `outer` if none of them is online
/// (`guarantee_online_cpus()`).
pub(crate) fn within(wanted: &CpuSet, outer: Option<CpuSet>, online: &CpuSet) -> Option<CpuSet> {
    let both = outer
        .as_ref()
        .map_or_else(|| wanted.clone(), |outer| wanted.intersection(outer));
    match both.intersection(online).is_empty() {
        true => outer,
        false => Some(both),
    }
}

/// A group, and what keeps its tasks from running.
#[derive(Debug)]
struct GroupState {
    group: Group,
    frozen: bool,
    bandwidth: Option<Bandwidth>,
    /// The CPUs that its tasks may use (`cpuset.cpus`); `None`: those of the group that it is in.
    cpus: Option<CpuSet>,
}

impl GroupState {
    fn new(group: Group) -> GroupState {
        GroupState {
            group,
            frozen: false,
            bandwidth: None,
            cpus: None,
        }
    }
}

/// All groups.
///
/// Invariant: entry 0 is the root, and every other's parent stands before it.
#[derive(Debug)]
pub(crate) struct Groups(Vec<GroupState>);

impl Groups {
    pub(crate) fn new() -> Groups {
        let root = Group::new("root", None, DEFAULT_WEIGHT);
        Groups(vec![GroupState::new(root)])
    }

    /// Creates a group; its weight is clamped to its range.
    pub(crate) fn create(&mut self, group: Group) -> GroupId {
        self.0.push(GroupState::new(Group {
            weight: group.weight.clamp(1, 10_000),
            ..group
        }));
        GroupId(self.0.len() as u32 - 1)
    }

    pub(crate) fn get(&self, group: GroupId) -> &Group {
        &self.0[group.index()].group
    }

    /// Sets a weight. That of an idle group stays (EINVAL of `sched_group_set_shares()`).
    pub(crate) fn set_weight(&mut self, group: GroupId, weight: u32) {
        let group = &mut self.0[group.index()].group;
        if !group.idle {
            group.weight = weight.clamp(1, 10_000);
        }
    }

    /// Makes a group idle, or one of the default weight (`sched_group_set_idle()`).
    pub(crate) fn set_idle(&mut self, group: GroupId, idle: bool) {
        let group = &mut self.0[group.index()].group;
        if group.idle != idle {
            group.idle = idle;
            group.weight = if idle { IDLE_WEIGHT } else { DEFAULT_WEIGHT };
        }
    }

    pub(crate) fn set_cpus(&mut self, group: GroupId, cpus: CpuSet) {
        self.0[group.index()].cpus = Some(cpus);
    }

    /// The CPUs that tasks of `group` may use, which has no more than the group that it is in:
    /// where none of its own is among those, it has those (`cpuset.cpus.effective`). `None`: all.
    pub(crate) fn cpus_of(&self, group: GroupId, online: &CpuSet) -> Option<CpuSet> {
        let outermost_first = self.upwards(group).collect::<Vec<_>>().into_iter().rev();
        let own = outermost_first.filter_map(|group| self.0[group.index()].cpus.as_ref());
        own.fold(None, |outer, own| within(own, outer, online))
    }

    /// `group`, the group that it is part of, and so on up to the root.
    fn upwards(&self, group: GroupId) -> impl Iterator<Item = GroupId> {
        std::iter::successors(Some(group), |group| self.get(*group).parent)
    }

    /// Whether `group` is `outer`, or part of it.
    pub(crate) fn is_within(&self, group: GroupId, outer: GroupId) -> bool {
        self.upwards(group).any(|group| group == outer)
    }

    /// Whether `group`, or one that it is in, is frozen.
    pub(crate) fn is_frozen(&self, group: GroupId) -> bool {
        let mut groups = self.upwards(group);
        groups.any(|group| self.0[group.index()].frozen)
    }

    /// Whether `group`, or one that it is in, is out of quota on `cpu`.
    pub(crate) fn is_throttled(&self, group: GroupId, cpu: CpuId) -> bool {
        let bandwidth = |group: GroupId| self.0[group.index()].bandwidth.as_ref();
        let mut limits = self.upwards(group).filter_map(bandwidth);
        limits.any(|limit| limit.is_throttled(cpu))
    }

    /// Those of `group` and of the groups that it is in that have a quota, the innermost first.
    pub(crate) fn limited(&self, group: GroupId) -> Vec<GroupId> {
        let limited = |group: &GroupId| self.0[group.index()].bandwidth.is_some();
        self.upwards(group).filter(limited).collect()
    }

    /// All that have a quota.
    pub(crate) fn all_limited(&self) -> Vec<GroupId> {
        let all = (0..).map(GroupId).zip(&self.0);
        let limited = all.filter(|(_, state)| state.bandwidth.is_some());
        limited.map(|(group, _)| group).collect()
    }

    pub(crate) fn freeze(&mut self, group: GroupId, freezes: bool) {
        self.0[group.index()].frozen = freezes;
    }

    pub(crate) fn set_limits(&mut self, group: GroupId, limits: Option<Limits>) {
        self.0[group.index()].group.limits = limits;
    }

    pub(crate) fn set_bandwidth(&mut self, group: GroupId, bandwidth: Bandwidth) {
        self.0[group.index()].bandwidth = Some(bandwidth);
    }

    pub(crate) fn bandwidth_mut(&mut self, group: GroupId) -> Option<&mut Bandwidth> {
        self.0[group.index()].bandwidth.as_mut()
    }
}
