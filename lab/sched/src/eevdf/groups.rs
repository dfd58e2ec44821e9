//! Group scheduling: a group is an entity on each CPU, whose weight is the part of the group's
//! shares that its load there is of all its load (`calc_group_shares()`).
//!
//! ```text
//!     load   := max(weight of the group's queue on the CPU, its average)
//!     weight := shares * load / (load of the group elsewhere + load)     from 2 to shares
//! ```
//!
//! With many CPUs the parts of a group that runs on all of them are small, each no more than a task
//! of nice 19 on 64 CPUs. [`CgroupMode`] says what its shares are multiplied by against that.

use crate::fair::tree::EntityId;

use super::rules::CgroupMode;
use super::state::{QueueId, State, What};
use super::weights::{HEAVIEST, SHARES, down};

/// The part of `shares` that `load` is of `total`, `most` at most.
fn part(shares: u64, load: u64, total: u64, most: u64) -> u64 {
    let part = u128::from(shares) * u128::from(load) / u128::from(total.max(1));
    (part as u64).clamp(SHARES.0, most.max(SHARES.0))
}

impl CgroupMode {
    /// Whether it asks how many tasks of a group are runnable.
    pub(super) fn counts_tasks(self) -> bool {
        matches!(self, CgroupMode::Concurrent | CgroupMode::Tasks)
    }

    /// The weight of a group of `shares` where its load is `load` of `total`, on one of `cpus`
    /// CPUs; on average, `runnable` 1024ths of its tasks are runnable on all of them
    /// (`calc_up_shares()` to `calc_tasks_shares()`).
    fn weight(self, shares: u64, (load, total): (u64, u64), cpus: u64, runnable: u64) -> u64 {
        let tasks = (runnable >> 10).max(1);
        let scaled = match self {
            CgroupMode::Up => return shares,
            CgroupMode::Smp => shares,
            CgroupMode::Concurrent => shares * tasks.min(cpus),
            CgroupMode::Max => shares * cpus,
            CgroupMode::Tasks => shares * tasks,
        };
        let most = match self {
            CgroupMode::Max => HEAVIEST,
            _ => scaled,
        };
        part(scaled, load, total, most)
    }
}

impl State {
    /// The weight of the entity of `own`, the queue of a group.
    fn shares_on_cpu(&self, own: QueueId) -> Option<u64> {
        let queue = &self.queues[own];
        let group = &self.groups[queue.group?];
        let load = down(queue.weight).max(queue.load.load);
        let total = group.total.load.saturating_sub(queue.contribution.load) + load;
        let (cpus, runnable) = (self.cpus.len() as u64, group.total.runnable);
        let mode = self.rules.cgroup_mode;
        Some(mode.weight(group.shares, (load, total), cpus, runnable))
    }

    /// Makes the weight of a group's entity up to date; that of an empty group stays, or follows
    /// its past load (`update_cfs_group()`).
    pub(super) fn update_shares(&mut self, entity: EntityId) {
        let What::Group(own) = self.entities[entity].what else {
            return;
        };
        if self.rules.empty_keeps_weight && self.queues[own].weight == 0 {
            return;
        }
        if let Some(group) = self.queues[own].group {
            self.effects.read(self.groups[group].line);
        }
        let weight = self.shares_on_cpu(own);
        if let Some(weight) = weight.filter(|weight| *weight != self.entities[entity].weight) {
            self.reweigh(entity, weight);
        }
    }

    /// The shares of a group have changed (`__sched_group_set_shares()`).
    pub(super) fn set_shares(&mut self, group: usize, shares: u64) {
        self.groups[group].shares = shares;
        for queue in self.groups[group].queues.clone() {
            let mut next = self.queues[queue].owner;
            while let Some(entity) = next {
                self.update_load(entity, true);
                self.update_shares(entity);
                next = self.parent(entity);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decision case 22.
    #[test]
    fn case_22_a_group_has_the_part_that_its_load_is() {
        let shares = 1 << 20;
        for (load, total, weight) in [
            (1_024, 2_048, 524_288),
            (2_048, 3_072, 699_050),
            (1_024, 1_024, 1_048_576),
            (0, 5_000, 2),
        ] {
            let smp = CgroupMode::Smp.weight(shares, (load, total), 2, 0);
            assert_eq!(smp, weight, "{load} of {total}");
        }
    }

    /// Section 13: of 1024 shares on 8 CPUs, half of the load is here, and so many tasks are
    /// runnable.
    #[test]
    fn shares_are_multiplied_by_what_the_mode_says() {
        use CgroupMode::{Concurrent, Max, Smp, Tasks, Up};
        let shares = 1 << 20;
        let halves = |mode: CgroupMode, tasks: u64| {
            mode.weight(shares, (512, 1_024), 8, tasks << 10) / (shares / 2)
        };
        for (mode, of_1, of_4, of_20) in [
            (Up, 2, 2, 2),
            (Smp, 1, 1, 1),
            (Concurrent, 1, 4, 8),
            (Max, 8, 8, 8),
            (Tasks, 1, 4, 20),
        ] {
            assert_eq!(
                [1, 4, 20].map(|tasks| halves(mode, tasks)),
                [of_1, of_4, of_20],
                "{mode:?}"
            );
        }
        let alone = |shares: u64| Max.weight(shares, (1_024, 1_024), 64, 0);
        assert_eq!(alone(4 << 20), HEAVIEST, "no more than nice -20");
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// The weights of a group on all CPUs come to its shares, but for rounding, if its load is
        /// what its queues have contributed.
        #[test]
        fn the_weights_of_a_group_come_to_its_shares(
            loads in proptest::collection::vec(1u64..100_000, 1..64),
            shares in 1u64..100_000,
        ) {
            let (shares, total) = (shares << 10, loads.iter().sum::<u64>());
            let cpus = loads.len() as u64;
            let weight = |load: &u64| CgroupMode::Smp.weight(shares, (*load, total), cpus, 0);
            let sum: u64 = loads.iter().map(weight).sum();
            proptest::prop_assert!((shares - cpus.min(shares)..=shares + 2 * cpus).contains(&sum), "{sum} of {shares}");
        }
    }
}
