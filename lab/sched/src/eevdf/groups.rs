//! Group scheduling: a group is an entity on each CPU, whose weight is the part of the group's shares
//! that its load there is of all its load (`calc_group_shares()`).
//!
//! ```text
//!     load   := max(weight of the group's queue on the CPU, its average)
//!     weight := shares * load / (load of the group elsewhere + load)     from 2 to shares
//! ```

use crate::fair::tree::EntityId;

use super::state::{QueueId, State, What};
use super::weights::{SHARES, down};

/// The part of `shares` that `load` is of `total`.
fn part(shares: u64, load: u64, total: u64) -> u64 {
    let part = u128::from(shares) * u128::from(load) / u128::from(total.max(1));
    (part as u64).clamp(SHARES.0, shares.max(SHARES.0))
}

impl State {
    /// The weight of the entity of `own`, the queue of a group.
    fn shares_on_cpu(&self, own: QueueId) -> Option<u64> {
        let queue = &self.queues[own];
        let group = &self.groups[queue.group?];
        let load = down(queue.weight).max(queue.load.load);
        let total = group.load.saturating_sub(queue.contribution) + load;
        Some(part(group.shares, load, total))
    }

    /// Makes the weight of a group's entity up to date; that of an empty group stays
    /// (`update_cfs_group()`).
    pub(super) fn update_shares(&mut self, entity: EntityId) {
        let What::Group(own) = self.entities[entity].what else {
            return;
        };
        if self.queues[own].weight == 0 {
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
            assert_eq!(part(shares, load, total), weight, "{load} of {total}");
        }
    }
}
