//! How busy groups of CPUs are, which is the busiest, and how much is to move from it
//! (`update_sd_pick_busiest()`, `sched_balance_find_src_group()`, `calculate_imbalance()`).

use super::fits::is_greater;
use super::load::CAPACITY;

/// How much is to be pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    /// So many tasks.
    Tasks(u64),
    /// Tasks of so much load.
    Load(u64),
    /// Tasks that use so much of a CPU, in 1024ths.
    Util(u64),
    /// So many tasks that prefer the cache of the CPU that pulls (`migrate_llc_task`).
    Drawn(u64),
    /// So many tasks that need a larger CPU than theirs (`migrate_misfit`).
    Misfit(u64),
}

impl Amount {
    pub(super) fn is_nothing(self) -> bool {
        matches!(
            self,
            Amount::Tasks(0)
                | Amount::Load(0)
                | Amount::Util(0)
                | Amount::Drawn(0)
                | Amount::Misfit(0)
        )
    }

    /// Whether a task of `load` and `util` fits; if so, it is taken off. After failures, larger
    /// ones fit.
    pub(super) fn takes(&mut self, load: u64, util: u64, failed: u32) -> bool {
        let shrunk = |value: u64| value >> failed.min(63);
        match self {
            Amount::Tasks(left) | Amount::Drawn(left) | Amount::Misfit(left) => {
                *left -= 1;
                true
            }
            Amount::Load(left) if shrunk(load.max(1)) <= *left => {
                *left = left.saturating_sub(load.max(1));
                true
            }
            Amount::Util(left) if shrunk(util) <= *left => {
                *left = left.saturating_sub(util);
                true
            }
            Amount::Load(_) | Amount::Util(_) => false,
        }
    }
}

/// How full a group of CPUs is (`enum group_type`), the busiest last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fullness {
    #[default]
    HasSpare,
    FullyBusy,
    /// It has a CPU whose only fair task has too little of it, as others take a part; or where CPUs
    /// are of unlike capacity, a task that needs a larger one.
    Misfit,
    /// It is a core on which several threads are busy, and the CPU that balances idles.
    SmtBusy,
    /// The CPU that balances idles and is of a higher priority than any of it.
    AsymPacking,
    /// Below, tasks could not be moved as they may not run everywhere.
    Imbalanced,
    /// It has tasks that prefer the cache of the CPU that balances, and may go there.
    Drawn,
    Overloaded,
}

/// A group as balancing sees it (`struct sg_lb_stats`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    pub(super) cpus: u64,
    pub(super) cores: u64,
    /// It is one core of several threads (`SD_SHARE_CPUCAPACITY`).
    pub(super) is_smt: bool,
    /// Tasks spread evenly over it and its like (`SD_PREFER_SIBLING`).
    pub(super) prefers_siblings: bool,
    /// It is that of the CPU that balances.
    pub(super) is_own: bool,
    /// That CPU idles, or is about to.
    pub(super) idles: bool,
    /// That CPU is to have its tasks, being of a higher priority.
    pub(super) is_packed: bool,
    /// The priority of the best of its CPUs.
    pub(super) priority: u16,
    pub(super) is_imbalanced: bool,
    pub(super) capacity: u64,
    /// The least and the most capacity of one of its CPUs.
    pub(super) least: u64,
    pub(super) most: u64,
    pub(super) load: u64,
    pub(super) util: u64,
    /// Tasks that were runnable on average, in 1024ths; real-time tasks are not among them.
    pub(super) runnable: u64,
    pub(super) running: u64,
    /// Those that are fair.
    pub(super) fair: u64,
    pub(super) idle: u64,
    /// The most load of a fair task that has too little of its CPU.
    pub(super) misfit: u64,
    /// How many tasks prefer the cache of the CPU that balances, and whether one of them is to go
    /// there.
    pub(super) preferring: u64,
    pub(super) is_drawn: bool,
    /// One of its CPUs has a task that waits.
    pub(super) overloads: bool,
    pub(super) fullness: Fullness,
}

impl Standing {
    /// Whether its tasks could be packed on a better CPU: it has some, and if it is a core, one of
    /// its threads is busy and no more.
    pub(super) fn may_be_packed(&self) -> bool {
        self.idles && self.fair > 0 && (!self.is_smt || self.cpus - self.idle == 1)
    }

    pub(super) fn average_load(&self) -> u64 {
        self.load * CAPACITY / self.capacity
    }

    /// The same, where it is overloaded; nobody computes that of others.
    fn average_overload(&self) -> u64 {
        match self.fullness {
            Fullness::Overloaded => self.average_load(),
            _ => 0,
        }
    }

    /// Whether fair tasks use less than what there is, with a margin.
    fn has_room(&self, imbalance_pct: u64) -> bool {
        self.capacity * 100 > self.util * imbalance_pct
    }

    /// Whether it has so much load itself that nothing is pulled from `busiest`, `mean` being the
    /// average of all groups. Where it is not overloaded, other rules say so.
    fn is_loaded_like(&self, busiest: &Standing, mean: u64, imbalance_pct: u64) -> bool {
        let own = self.average_load();
        self.fullness == Fullness::Overloaded
            && (own >= busiest.average_load()
                || own >= mean
                || 100 * busiest.average_load() <= imbalance_pct * own)
    }

    /// `group_classify()`.
    pub(super) fn classify(mut self, imbalance_pct: u64) -> Standing {
        let used_up = self.capacity * 100 < self.util * imbalance_pct;
        let crowded = self.capacity * imbalance_pct < self.runnable * 100;
        self.fullness = if self.running > self.cpus && (used_up || crowded) {
            Fullness::Overloaded
        } else if self.is_drawn {
            Fullness::Drawn
        } else if self.is_imbalanced {
            Fullness::Imbalanced
        } else if self.is_packed {
            Fullness::AsymPacking
        } else if !self.is_own && self.idles && self.is_smt && self.fair > 1 {
            Fullness::SmtBusy
        } else if self.misfit > 0 {
            Fullness::Misfit
        } else if self.running < self.cpus || !crowded && self.has_room(imbalance_pct) {
            Fullness::HasSpare
        } else {
            Fullness::FullyBusy
        };
        self
    }

    /// Whether it is busier than `other` (`update_sd_pick_busiest()`). The load of what is not
    /// overloaded does not count: of fully busy groups the first core of several threads is taken,
    /// or else the last.
    pub(super) fn is_busier_than(&self, other: &Standing) -> bool {
        if self.fullness != other.fullness {
            return self.fullness > other.fullness;
        }
        let fuller = (other.idle, self.running) > (self.idle, other.running);
        match self.fullness {
            Fullness::Overloaded => self.average_load() > other.average_load(),
            Fullness::Drawn => self.preferring > other.preferring,
            // None is more than another: the first.
            Fullness::Imbalanced => false,
            Fullness::AsymPacking => self.priority < other.priority,
            Fullness::SmtBusy if self.idle > 0 || other.idle > 0 => fuller,
            Fullness::SmtBusy | Fullness::FullyBusy => !other.is_smt,
            Fullness::Misfit => self.misfit > other.misfit,
            // The last task of a core of several threads is not taken off it where others can be.
            Fullness::HasSpare if self.is_smt != other.is_smt => !self.is_smt || self.fair > 1,
            Fullness::HasSpare => fuller,
        }
    }

    /// Whether a CPU of unlike ones may pull from it: a task that needs a larger CPU only if it is
    /// that, and has time for it; and none that is better off where it is
    /// (`update_sd_pick_busiest()`).
    pub(super) fn is_within_reach(&self, local: &Standing, puller: Puller) -> bool {
        use Fullness::{FullyBusy, HasSpare, Misfit};
        if self.fullness == Misfit {
            let larger = is_greater(puller.capacity, self.most);
            return puller.core_idles && larger && local.fullness == HasSpare;
        }
        self.fullness > FullyBusy || !is_greater(self.least, puller.capacity)
    }

    /// How many tasks it has more than `local`, by the number of their cores if those differ, where
    /// the CPU that balances idles (`sibling_imbalance()`).
    ///
    /// ```text
    ///     2 (l B - b L) / (l + b), rounded      l, b := cores of local and busiest   L, B := tasks
    /// ```
    fn more_than(&self, local: &Standing) -> u64 {
        if !self.idles || self.running == 0 {
            return 0;
        }
        if self.cores == local.cores {
            return self.running.saturating_sub(local.running);
        }
        let cores = local.cores + self.cores;
        let apart = (local.cores * self.running).saturating_sub(self.cores * local.running);
        match (2 * apart + cores) / cores {
            0 | 1 if local.running == 0 && self.running > 1 => 2,
            more => more,
        }
    }
}

/// The CPU that pulls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Puller {
    pub(super) capacity: u64,
    /// The rest of its core idles, as far as that counts (`dst_core_idle`).
    pub(super) core_idles: bool,
}

/// How much less busy `local` has to be for something to move, in a domain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) imbalance_pct: u64,
    pub(super) shares_cache: bool,
    /// Its CPUs are of unlike capacity.
    pub(super) unlike: bool,
    /// Where its groups are nodes: up to so many tasks in the one that pulls, others may have a few
    /// more (`imb_numa_nr`).
    pub(super) nodes: Option<u64>,
}

/// By how many tasks nodes may differ while they have few (`NUMA_IMBALANCE_MIN`).
const NODES_DIFFER: u64 = 2;

/// What of an `imbalance` counts between nodes, one of which would have `running` tasks
/// (`adjust_numa_imbalance()`): a pair of tasks that work together stays in its node.
pub(super) fn counted_between_nodes(imbalance: u64, running: u64, allowed: u64) -> u64 {
    match running <= allowed && imbalance <= NODES_DIFFER {
        true => 0,
        false => imbalance,
    }
}

/// What is to be pulled from `busiest` to `local`, of all in a domain; `None` if nothing
/// (`sched_balance_find_src_group()`).
pub(super) fn imbalance(
    local: &Standing,
    busiest: &Standing,
    all: &[Standing],
    terms: Terms,
) -> Option<Amount> {
    use Fullness::{AsymPacking, Imbalanced, Misfit};
    let mean = mean_load(all);
    let is_forced = matches!(busiest.fullness, Misfit | AsymPacking | Imbalanced);
    if !is_forced && is_balanced(local, busiest, mean, terms) {
        return None;
    }
    let amount = amount(local, busiest, mean, terms);
    (!amount.is_nothing()).then_some(amount)
}

/// Whether the two groups differ so little that nothing moves.
fn is_balanced(local: &Standing, busiest: &Standing, mean: u64, terms: Terms) -> bool {
    use Fullness::{Drawn, HasSpare, Overloaded, SmtBusy};
    if local.fullness > busiest.fullness {
        return true;
    }
    let spreads = busiest.prefers_siblings
        && local.fullness == HasSpare
        && (busiest.fullness == Drawn || busiest.more_than(local) > 1);
    match busiest.fullness {
        Overloaded => local.is_loaded_like(busiest, mean, terms.imbalance_pct),
        _ if spreads => false,
        _ if !busiest.idles => true,
        // A core of one thread relieves one of several.
        SmtBusy if !local.is_smt => false,
        _ => busiest.cpus > 1 && local.idle <= busiest.idle + 1 || busiest.fair == 1,
    }
}

/// The average load of all groups, as that of a CPU.
fn mean_load(all: &[Standing]) -> u64 {
    let total: u64 = all.iter().map(|standing| standing.load).sum();
    let capacity: u64 = all.iter().map(|standing| standing.capacity).sum();
    total * CAPACITY / capacity
}

/// `calculate_imbalance()`.
fn amount(local: &Standing, busiest: &Standing, mean: u64, terms: Terms) -> Amount {
    use Fullness::{AsymPacking, Drawn, HasSpare, Imbalanced, Misfit, Overloaded, SmtBusy};
    match (local.fullness, busiest.fullness) {
        (_, Misfit) if terms.unlike => Amount::Misfit(1),
        (_, Misfit) => Amount::Load(busiest.misfit),
        (_, AsymPacking) => Amount::Tasks(busiest.fair),
        (_, Drawn) => Amount::Drawn(1),
        (_, SmtBusy | Imbalanced) => Amount::Tasks(1),
        (HasSpare, Overloaded) if !terms.shares_cache => {
            match local.capacity.saturating_sub(local.util) {
                0 if busiest.idles => Amount::Tasks(1),
                spare => Amount::Util(spare),
            }
        }
        (HasSpare, _) => Amount::Tasks(tasks_to_pull(local, busiest, terms) / 2),
        _ => Amount::Load(load_to_pull(local, busiest, mean)),
    }
}

/// By how many tasks, or idle CPUs, the groups differ.
fn tasks_to_pull(local: &Standing, busiest: &Standing, terms: Terms) -> u64 {
    let differ = match busiest.cpus == 1 || busiest.prefers_siblings {
        true => busiest.more_than(local),
        false => local.idle.saturating_sub(busiest.idle),
    };
    match terms.nodes {
        Some(allowed) => counted_between_nodes(differ, local.running + 1, allowed),
        None => differ,
    }
}

/// How much load brings both groups nearer to the average of all, without overshooting for either.
/// Where load is below the average in `busiest`, as it has less capacity, only `local` limits it.
fn load_to_pull(local: &Standing, busiest: &Standing, mean: u64) -> u64 {
    let (own, theirs) = (local.average_load(), busiest.average_overload());
    if local.fullness < Fullness::Overloaded && own >= theirs {
        return 0;
    }
    let over = theirs
        .checked_sub(mean)
        .map_or(u64::MAX, |over| over * busiest.capacity);
    let under = mean.saturating_sub(own) * local.capacity;
    over.min(under) / CAPACITY
}

#[cfg(test)]
mod tests;
