//! Which CPU of a domain is pulled from, and how much (`sched_balance_find_src_group()`,
//! `calculate_imbalance()`, `sched_balance_find_src_rq()`).

use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_units::CpuId;

use super::balance::Idleness;
use super::domains::{Domain, Group};
use super::fits::is_greater;
use super::load::CAPACITY;
use super::state::State;

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

/// The CPU to pull from.
pub(super) struct Busiest {
    pub(super) cpu: CpuId,
    pub(super) amount: Amount,
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
    fn is_busier_than(&self, other: &Standing) -> bool {
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
    fn is_within_reach(&self, local: &Standing, puller: Puller) -> bool {
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
struct Puller {
    capacity: u64,
    /// The rest of its core idles, as far as that counts (`dst_core_idle`).
    core_idles: bool,
}

/// How much less busy `local` has to be for something to move, in a domain.
#[derive(Clone, Copy, Debug)]
struct Terms {
    imbalance_pct: u64,
    shares_cache: bool,
    /// Its CPUs are of unlike capacity.
    unlike: bool,
    /// Where its groups are nodes: up to so many tasks in the one that pulls, others may have a few
    /// more (`imb_numa_nr`).
    nodes: Option<u64>,
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
fn imbalance(
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

impl State {
    /// The CPU to pull from in a domain of `here`, leaving out `without`.
    pub(super) fn busiest(
        &mut self,
        context: &mut Context<'_>,
        (here, number): (CpuId, usize),
        idleness: Idleness,
        without: &[CpuId],
    ) -> Option<Busiest> {
        let domain = &self.cpu(here).domains[number];
        let lines = domain.span.iter().map(|cpu| self.cpu(*cpu).line);
        context.touch_all(lines, Access::Read);
        self.update_group_capacity(context, (here, number), idleness);
        let domain = &self.cpu(here).domains[number];
        let pct = domain.level.imbalance_pct;
        let groups = domain.groups.iter();
        let mut standings: Vec<Standing> = groups
            .map(|group| self.standing(context, (here, domain), (group, without), idleness))
            .collect();
        self.see_caches(here, number, idleness, &mut standings);
        let standings: Vec<Standing> = standings
            .into_iter()
            .map(|standing| standing.classify(pct))
            .collect();
        if number + 1 == self.cpu(here).domains.len() {
            self.overloaded = standings.iter().any(|standing| standing.overloads);
        }
        let domain = &self.cpu(here).domains[number];
        let (local, others) = standings.split_first()?;
        let unlike = domain.capacities.is_any();
        let puller = Puller {
            capacity: self.capacity(here),
            core_idles: !self.rules.unlike_cores || self.siblings_idle(here),
        };
        let may_be_pulled = |standing: &Standing| {
            standing.fair > 0 && (!unlike || standing.is_within_reach(local, puller))
        };
        let mut best: Option<usize> = None;
        for (at, standing) in others
            .iter()
            .enumerate()
            .filter(|(_, standing)| may_be_pulled(standing))
        {
            if best.is_none_or(|best| standing.is_busier_than(&others[best])) {
                best = Some(at);
            }
        }
        let best = best?;
        let terms = Terms {
            imbalance_pct: pct,
            shares_cache: domain.level.shares_cache,
            unlike,
            nodes: domain.level.spans_nodes.then_some(domain.node_imbalance),
        };
        let amount = imbalance(local, &others[best], &standings, terms)?;
        let group = &domain.groups[best + 1].cpus;
        let cpus = group.iter().copied().filter(|cpu| !without.contains(cpu));
        let cpu = self.busiest_of((here, domain), cpus, amount)?;
        Some(Busiest { cpu, amount })
    }

    /// What of the CPUs of the own group is left to fair tasks is found out when the domain is
    /// balanced; by CPUs that are about to idle, only if it is due (`update_group_capacity()`).
    fn update_group_capacity(
        &mut self,
        context: &Context<'_>,
        (here, number): (CpuId, usize),
        idleness: Idleness,
    ) {
        let jiffies = self.jiffies(here);
        let own = self.cpu(here).domains[number].groups[0].capacity;
        if idleness == Idleness::NewlyIdle && jiffies < self.capacities[own].due {
            return;
        }
        let due = jiffies + self.interval(here, number, false);
        let parts = match number.checked_sub(1) {
            Some(below) => self.capacities_below(context, here, below),
            None => {
                let capacity = self.scaled_capacity(here);
                self.cpu_mut(here).capacity = capacity;
                vec![[capacity; 3]]
            }
        };
        let known = &mut self.capacities[own];
        known.capacity = parts.iter().map(|[all, ..]| all).sum::<u64>().max(1);
        known.least = parts.iter().map(|[_, least, _]| *least).min().unwrap_or(0);
        known.most = parts.iter().map(|[.., most]| *most).max().unwrap_or(0);
        known.due = due;
    }

    /// What the parts have of which a group is made: in all, and the least and the most of a CPU.
    fn capacities_below(&self, context: &Context<'_>, here: CpuId, below: usize) -> Vec<[u64; 3]> {
        let below = &self.cpu(here).domains[below];
        let is_online = |cpu: &&CpuId| context.is_online(**cpu);
        if below.level.spans_nodes {
            let cpus = below.span.iter().filter(is_online);
            return cpus.map(|cpu| [self.capacity(*cpu); 3]).collect();
        }
        let groups = below.groups.iter();
        let online = groups.filter(|group| group.cpus.iter().any(|cpu| is_online(&cpu)));
        let known = online.map(|group| &self.capacities[group.capacity]);
        known
            .map(|known| [known.capacity, known.least, known.most])
            .collect()
    }

    /// `update_sg_lb_stats()`.
    fn standing(
        &self,
        context: &Context<'_>,
        (here, domain): (CpuId, &Domain),
        (group, without): (&Group, &[CpuId]),
        idleness: Idleness,
    ) -> Standing {
        let is_own = std::ptr::eq(group, &domain.groups[0]);
        let idles = idleness != Idleness::Busy;
        let pct = domain.level.imbalance_pct;
        let known = &self.capacities[group.capacity];
        let helps_misfit =
            !self.rules.misfit_if_larger || is_greater(self.capacity(here), known.most);
        let mut standing = Standing {
            is_own,
            idles,
            cores: group.cores,
            is_smt: group.is_smt,
            prefers_siblings: group.prefers_siblings,
            is_imbalanced: known.imbalanced,
            capacity: known.capacity,
            least: known.least,
            most: known.most,
            priority: self.cpu(group.preferred).priority,
            ..Standing::default()
        };
        for cpu in group.cpus.iter().filter(|cpu| context.is_online(**cpu)) {
            standing.cpus += 1;
            if without.contains(cpu) {
                continue;
            }
            let idle = standing.idle;
            self.count_cpu(*cpu, &mut standing);
            standing.preferring += self.preferring(*cpu, here);
            if standing.idle > idle {
                continue;
            }
            standing.overloads |= self.nr_running(*cpu) > 1;
            if is_own {
                continue;
            }
            let misfit = match domain.capacities.is_any() {
                true => {
                    let misfit = self.cpu(*cpu).misfit;
                    standing.overloads |= misfit > 0;
                    misfit * u64::from(helps_misfit)
                }
                false if idles && self.has_reduced_capacity(*cpu, pct) => self.load(*cpu),
                false => 0,
            };
            standing.misfit = standing.misfit.max(misfit);
        }
        standing.cpus = standing.cpus.max(1);
        standing.is_packed = !is_own && self.packs(here, domain, group, &standing);
        standing
    }

    /// Adds what runs on a CPU, or that it idles.
    pub(super) fn count_cpu(&self, cpu: CpuId, standing: &mut Standing) {
        let running = self.nr_running(cpu);
        standing.load += self.load(cpu);
        standing.runnable += self.queues[self.cpu(cpu).root].load.runnable;
        standing.util += self.util(cpu);
        standing.running += running;
        standing.fair += self.fair_tasks(cpu);
        standing.idle += u64::from(running == 0 && self.is_idle(cpu));
    }

    /// Which of `cpus` has most of what is to be pulled (`sched_balance_find_src_rq()`).
    fn busiest_of(
        &self,
        (here, domain): (CpuId, &Domain),
        cpus: impl Iterator<Item = CpuId>,
        amount: Amount,
    ) -> Option<CpuId> {
        let mut best: Option<(CpuId, (u64, u64))> = None;
        for cpu in cpus {
            let Some(key) = self.to_pull(cpu, (here, domain), amount) else {
                continue;
            };
            let (more, part) = best.map_or((0, 1), |(_, best)| best);
            if key.0 * part > more * key.1 {
                best = Some((cpu, key));
            }
        }
        best.map(|(cpu, _)| cpu)
    }

    /// Whether the only task of `cpu`, one of unlike CPUs, may go to `here`, as that is larger;
    /// from 7.3 on also off a core with busy siblings, or between clusters of one capacity.
    fn may_leave_alone(&self, cpu: CpuId, here: CpuId) -> bool {
        let is_alike = self.clustered && self.cpu(here).whole == self.cpu(cpu).whole;
        let relieves = self.rules.misfit_if_larger && (is_alike || !self.siblings_idle(cpu));
        relieves || is_greater(self.capacity(here), self.capacity(cpu))
    }

    /// How much `cpu` has of what is to be pulled, and of which capacity; `None` if nothing could
    /// be pulled from it.
    fn to_pull(
        &self,
        cpu: CpuId,
        (here, domain): (CpuId, &Domain),
        amount: Amount,
    ) -> Option<(u64, u64)> {
        let fair = self.fair_tasks(cpu);
        let alone_stays = || {
            let larger = domain.capacities.is_any() && !self.may_leave_alone(cpu, here);
            larger || self.is_preferred(domain, cpu, here)
        };
        if fair == 0 || fair == 1 && alone_stays() {
            return None;
        }
        match amount {
            Amount::Misfit(_) => Some((self.cpu(cpu).misfit, 1)),
            Amount::Tasks(_) => Some((fair, 1)),
            Amount::Load(most) => {
                let load = self.load(cpu);
                let pct = domain.level.imbalance_pct;
                let fits = load <= most || self.lacks_capacity(cpu, pct);
                (fair > 1 || fits).then(|| (load, self.capacity(cpu)))
            }
            Amount::Util(_) => (fair > 1).then(|| (self.boosted_util(cpu), 1)),
            Amount::Drawn(_) => Some((self.preferring(cpu, here), 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Terms = Terms {
        imbalance_pct: 117,
        shares_cache: true,
        unlike: false,
        nodes: None,
    };

    fn of(running: u64, load: u64) -> Standing {
        let standing = Standing {
            cpus: 1,
            cores: 1,
            capacity: CAPACITY,
            load,
            util: running.min(1) * CAPACITY,
            runnable: running * CAPACITY,
            running,
            fair: running,
            idle: u64::from(running == 0),
            idles: true,
            ..Standing::default()
        };
        standing.classify(117)
    }

    /// A core of `threads` on which `running` hogs run, one on each thread.
    fn core(threads: u64, running: u64) -> Standing {
        let standing = Standing {
            cpus: threads,
            cores: 1,
            capacity: threads * CAPACITY,
            load: running * CAPACITY,
            util: running * CAPACITY,
            runnable: running * CAPACITY,
            running,
            fair: running,
            idle: threads - running,
            idles: true,
            is_smt: threads > 1,
            prefers_siblings: threads > 1,
            ..Standing::default()
        };
        standing.classify(117)
    }

    fn amount(local: Standing, busiest: Standing, idleness: Idleness) -> Option<Amount> {
        moved(local, busiest, idleness, ALONE)
    }

    fn moved(
        local: Standing,
        busiest: Standing,
        idleness: Idleness,
        terms: Terms,
    ) -> Option<Amount> {
        let idles = idleness != Idleness::Busy;
        let busiest = Standing { idles, ..busiest }.classify(117);
        let local = Standing {
            is_own: true,
            ..local
        };
        let local = local.classify(117);
        imbalance(&local, &busiest, &[local, busiest], terms)
    }

    /// A core whose threads are all busy gives one task to an idle core, and none where that would
    /// only turn the difference round.
    #[test]
    fn an_idle_core_relieves_one_with_several_busy_threads() {
        let one = Some(Amount::Tasks(1));
        assert_eq!(moved(core(2, 0), core(2, 2), Idleness::Idle, ALONE), one);
        assert_eq!(moved(core(4, 0), core(4, 2), Idleness::Idle, ALONE), one);
        assert_eq!(moved(core(4, 1), core(4, 3), Idleness::Idle, ALONE), one);
        assert_eq!(moved(core(2, 1), core(2, 2), Idleness::Idle, ALONE), None);
        assert_eq!(moved(core(2, 0), core(2, 1), Idleness::Idle, ALONE), None);
        assert_eq!(moved(core(2, 0), core(2, 2), Idleness::Busy, ALONE), None);
        assert_eq!(moved(core(1, 0), core(2, 2), Idleness::Idle, ALONE), one);
    }

    /// Groups with unlike numbers of cores are even where each has as many tasks a core.
    #[test]
    fn tasks_are_counted_by_cores() {
        let caches = |cores: u64, running: u64| Standing {
            cores,
            ..core(cores, running)
        };
        assert_eq!(
            caches(8, 8).more_than(&caches(4, 4)),
            1,
            "rounded, and not enough"
        );
        assert_eq!(caches(8, 8).more_than(&caches(4, 1)), 5);
        assert_eq!(caches(8, 2).more_than(&caches(4, 0)), 2);
        assert_eq!(caches(4, 3).more_than(&caches(4, 1)), 2);
    }

    /// Of cores with a thread to spare the one is busiest that has most tasks; a core of one thread
    /// comes before one of several that would be left empty.
    #[test]
    fn which_core_is_the_busiest() {
        assert!(core(2, 2).is_busier_than(&core(2, 1)));
        assert!(core(4, 3).is_busier_than(&core(4, 2)));
        assert!(
            !core(2, 2).is_busier_than(&core(2, 2)),
            "the first of equals"
        );
        assert!(core(1, 1).is_busier_than(&core(1, 1)), "the last of equals");
        assert!(!core(4, 1).is_busier_than(&core(4, 1)));
    }

    /// A task of which real-time tasks take a part is moved to a CPU that idles.
    #[test]
    fn a_task_with_too_little_of_its_cpu_may_go() {
        let squeezed = Standing {
            misfit: 1_024,
            ..of(1, 1_024)
        };
        assert_eq!(
            amount(of(0, 0), squeezed, Idleness::Idle),
            Some(Amount::Load(1_024))
        );
    }

    /// A CPU of four little ones (446), four big ones (1024) beside them, with so many hogs.
    fn four(each: u64, running: u64) -> Standing {
        Standing {
            cpus: 4,
            cores: 4,
            capacity: 4 * each,
            least: each,
            most: each,
            load: running * CAPACITY,
            util: running.min(4) * each,
            runnable: running * CAPACITY,
            running,
            fair: running,
            idle: 4u64.saturating_sub(running),
            idles: true,
            ..Standing::default()
        }
        .classify(117)
    }

    /// Of unlike CPUs, larger ones take what needs them, and smaller ones only what has to wait.
    #[test]
    fn who_pulls_from_whom_among_unlike_cpus() {
        let needs_larger = |running| Standing {
            misfit: CAPACITY,
            ..four(446, running)
        };
        let (little, big) = (four(446, 0), four(1_024, 0));
        let at = |capacity: u64, core_idles: bool| Puller {
            capacity,
            core_idles,
        };
        for (case, from, local, puller, expected) in [
            (
                "what needs a larger CPU",
                needs_larger(1),
                big,
                at(1_024, true),
                true,
            ),
            (
                "to an equal one",
                needs_larger(1),
                little,
                at(446, true),
                false,
            ),
            (
                "to a hardly larger one",
                needs_larger(1),
                little,
                at(469, true),
                false,
            ),
            (
                "to one with a busy sibling",
                needs_larger(1),
                big,
                at(1_024, false),
                false,
            ),
            (
                "to one that is squeezed",
                needs_larger(1),
                big,
                at(400, true),
                false,
            ),
            (
                "to a full group",
                needs_larger(1),
                four(1_024, 4),
                at(1_024, true),
                false,
            ),
            (
                "one of a big CPU",
                four(1_024, 1),
                little,
                at(446, true),
                false,
            ),
            (
                "all big ones busy",
                four(1_024, 4),
                little,
                at(446, true),
                false,
            ),
            (
                "one waits on a big one",
                four(1_024, 5),
                little,
                at(446, true),
                true,
            ),
            (
                "one that fits a little CPU",
                four(446, 1),
                big,
                at(1_024, true),
                true,
            ),
        ] {
            let from = from.classify(117);
            assert_eq!(from.is_within_reach(&local, puller), expected, "{case}");
        }
    }

    #[test]
    fn what_needs_a_larger_cpu_is_asked_for_by_itself() {
        let from = Standing {
            misfit: 446,
            ..four(446, 1)
        };
        let terms = Terms {
            unlike: true,
            ..ALONE
        };
        let found = moved(four(1_024, 0), from, Idleness::Idle, terms);
        assert_eq!(found, Some(Amount::Misfit(1)));
        let busy = moved(four(1_024, 1), from, Idleness::Busy, terms);
        assert_eq!(busy, Some(Amount::Misfit(1)), "by a busy CPU, too");
    }

    /// Section 12 of the specification: an idle CPU takes half of the difference of the numbers of
    /// tasks; two CPUs with two and one equal hogs differ by half a hog each.
    #[test]
    fn an_idle_cpu_counts_tasks_and_a_busy_one_load() {
        let idle = amount(of(0, 0), of(2, 2_048), Idleness::Idle);
        assert_eq!(idle, Some(Amount::Tasks(1)));
        assert_eq!(amount(of(0, 0), of(1, 1_024), Idleness::Idle), None);
        let busy = amount(of(1, 1_024), of(2, 2_048), Idleness::Busy);
        assert_eq!(busy, Some(Amount::Load(512)));
        assert_eq!(amount(of(2, 2_048), of(1, 1_024), Idleness::Busy), None);
    }

    /// A CPU that a real-time task keeps has next to no capacity. Nobody gives it a second task, as
    /// it has room for what runs there, which is nothing; and what waits there is taken away.
    #[test]
    fn a_real_time_task_is_not_relieved_of_others() {
        let urgent = |fair: u64| {
            let standing = Standing {
                capacity: 1,
                util: 0,
                ..of(1 + fair, fair * 1_024)
            };
            let runnable = fair * CAPACITY;
            Standing {
                runnable,
                fair,
                ..standing
            }
            .classify(117)
        };
        assert_eq!(amount(urgent(0), of(2, 2_048), Idleness::Busy), None);
        assert!(amount(of(1, 1_024), urgent(1), Idleness::Busy).is_some());
    }

    /// The odd hog of three does not fit at first, and does after one failure.
    #[test]
    fn a_task_that_is_too_heavy_fits_after_a_failure() {
        let mut left = Amount::Load(512);
        assert!(!left.takes(1_024, 0, 0));
        assert!(left.takes(1_024, 0, 1) && left.is_nothing());
    }

    /// A group of `cpus` on which `running` hogs run, of CPUs without siblings.
    fn group(cpus: u64, running: u64) -> Standing {
        Standing {
            cpus,
            cores: cpus,
            capacity: cpus * CAPACITY,
            load: running * CAPACITY,
            util: running.min(cpus) * CAPACITY,
            runnable: running * CAPACITY,
            running,
            fair: running,
            idle: cpus.saturating_sub(running),
            idles: true,
            prefers_siblings: true,
            ..Standing::default()
        }
        .classify(117)
    }

    const NODES: Terms = Terms {
        shares_cache: false,
        nodes: Some(2),
        ..ALONE
    };

    /// Nodes may differ by two tasks while the one that pulls would have two at most.
    #[test]
    fn nodes_with_few_tasks_need_not_be_even() {
        for (case, local, busiest, expected) in [
            ("a pair", 0, 2, None),
            ("one more than a pair", 0, 3, Some(Amount::Tasks(1))),
            ("one here, three there", 1, 3, None),
            ("two here, four there", 2, 4, Some(Amount::Tasks(1))),
            ("even", 4, 4, None),
            ("all there", 0, 8, Some(Amount::Tasks(4))),
        ] {
            let (local, busiest) = (group(8, local), group(8, busiest));
            let pulled = moved(local, busiest, Idleness::Idle, NODES);
            assert_eq!(pulled, expected, "{case}");
        }
    }

    /// What may not run everywhere, and what should be on a better CPU, moves whatever the numbers
    /// say.
    #[test]
    fn pinned_tasks_and_priorities_force_a_move() {
        let pinned = Standing {
            is_imbalanced: true,
            ..group(4, 4)
        };
        let packed = Standing {
            is_packed: true,
            ..group(4, 1)
        };
        for (case, local, busiest, expected) in [
            ("even, without reason", group(4, 4), group(4, 4), None),
            (
                "even, but pinned",
                group(4, 4),
                pinned,
                Some(Amount::Tasks(1)),
            ),
            (
                "one on a lesser CPU",
                group(4, 0),
                packed,
                Some(Amount::Tasks(1)),
            ),
            (
                "to a group that has more",
                group(4, 3),
                packed,
                Some(Amount::Tasks(1)),
            ),
        ] {
            assert_eq!(
                moved(local, busiest, Idleness::Idle, ALONE),
                expected,
                "{case}"
            );
        }
    }

    /// The order of kinds (`enum group_type`), each with all that comes before it.
    #[test]
    fn the_most_pressing_kind_of_a_group_counts() {
        let spare = Standing {
            idles: true,
            ..group(4, 2)
        };
        let full = group(4, 4);
        let misfit = Standing { misfit: 1, ..full };
        let smt = Standing {
            is_smt: true,
            ..misfit
        };
        let packed = Standing {
            is_packed: true,
            ..smt
        };
        let imbalanced = Standing {
            is_imbalanced: true,
            ..packed
        };
        let drawn = Standing {
            is_drawn: true,
            ..imbalanced
        };
        let overloaded = Standing {
            running: 5,
            runnable: 5 * CAPACITY,
            ..drawn
        };
        let kinds = [
            spare, full, misfit, smt, packed, imbalanced, drawn, overloaded,
        ];
        let kinds = kinds.map(|standing| standing.classify(117).fullness);
        assert_eq!(
            kinds,
            [
                Fullness::HasSpare,
                Fullness::FullyBusy,
                Fullness::Misfit,
                Fullness::SmtBusy,
                Fullness::AsymPacking,
                Fullness::Imbalanced,
                Fullness::Drawn,
                Fullness::Overloaded,
            ]
        );
        assert!(kinds.is_sorted());
    }

    /// Of groups whose tasks should be packed elsewhere that of the least priority is the first.
    #[test]
    fn the_least_cpu_is_relieved_first() {
        let of = |priority: u16| {
            let standing = Standing {
                is_packed: true,
                priority,
                ..group(1, 1)
            };
            standing.classify(117)
        };
        assert!(of(10).is_busier_than(&of(20)));
        assert!(!of(20).is_busier_than(&of(10)));
        assert!(!of(10).is_busier_than(&of(10)), "the first of equals");
    }

    /// A full group takes load off an overloaded one only, and where that is below the average, as
    /// others take its time, as much as brings itself there.
    #[test]
    fn load_is_pulled_up_to_the_average() {
        let squeezed = Standing {
            capacity: CAPACITY / 8,
            load: CAPACITY / 16,
            running: 2,
            fair: 2,
            ..group(1, 1)
        };
        let third = group(1, 8);
        let (local, busiest) = (group(1, 1), squeezed.classify(117));
        let less = Standing {
            load: CAPACITY / 4,
            ..local
        };
        assert_eq!(busiest.fullness, Fullness::Overloaded);
        for (case, local, busiest, all, expected) in [
            (
                "two of three",
                group(2, 2),
                group(2, 4),
                vec![group(2, 2), group(2, 4)],
                1_024,
            ),
            (
                "full and full",
                group(2, 2),
                group(2, 2),
                vec![group(2, 2), group(2, 2)],
                0,
            ),
            ("more here", local, busiest, vec![local, busiest, third], 0),
            (
                "less here",
                less,
                busiest,
                vec![less, busiest, third],
                3_749,
            ),
        ] {
            let mean = mean_load(&all);
            assert_eq!(load_to_pull(&local, &busiest, mean), expected, "{case}");
        }
    }
}
