//! Which CPU of a domain is pulled from (`update_sg_lb_stats()`, `sched_balance_find_src_rq()`).

use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_units::CpuId;

use super::balance::Idleness;
use super::domains::{Domain, Group};
use super::fits::is_greater;
use super::standing::{Amount, Puller, Standing, Terms, imbalance};
use super::state::State;

/// The CPU to pull from.
pub(super) struct Busiest {
    pub(super) cpu: CpuId,
    pub(super) amount: Amount,
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
