//! Which CPU of a domain is pulled from, and how much (`sched_balance_find_src_group()`,
//! `calculate_imbalance()`, `sched_balance_find_src_rq()`).

use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_units::CpuId;

use super::balance::Idleness;
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
}

impl Amount {
    pub(super) fn is_nothing(self) -> bool {
        matches!(
            self,
            Amount::Tasks(0) | Amount::Load(0) | Amount::Util(0) | Amount::Drawn(0)
        )
    }

    /// Whether a task of `load` and `util` fits; if so, it is taken off. After failures, larger
    /// ones fit.
    pub(super) fn takes(&mut self, load: u64, util: u64, failed: u32) -> bool {
        let shrunk = |value: u64| value >> failed.min(63);
        match self {
            Amount::Tasks(left) | Amount::Drawn(left) => {
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
    /// It has a CPU whose only fair task has too little of it, as others take a part.
    Misfit,
    /// It is a core on which several threads are busy, and the CPU that balances idles.
    SmtBusy,
    /// It has tasks that prefer the cache of the CPU that balances, and may go there.
    Drawn,
    Overloaded,
}

/// A group as balancing sees it (`struct sg_lb_stats`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    cpus: u64,
    cores: u64,
    /// It is one core of several threads (`SD_SHARE_CPUCAPACITY`).
    is_smt: bool,
    /// It is that of the CPU that balances.
    is_own: bool,
    /// That CPU idles, or is about to.
    idles: bool,
    pub(super) capacity: u64,
    load: u64,
    pub(super) util: u64,
    /// Tasks that were runnable on average, in 1024ths; real-time tasks are not among them.
    runnable: u64,
    running: u64,
    /// Those that are fair.
    fair: u64,
    idle: u64,
    /// The most load of a fair task that is alone on its CPU and has too little of that.
    misfit: u64,
    /// How many tasks prefer the cache of the CPU that balances, and whether one of them is to go
    /// there.
    pub(super) preferring: u64,
    pub(super) is_drawn: bool,
    /// One of its CPUs has a task that waits.
    overloads: bool,
    fullness: Fullness,
}

impl Standing {
    /// A group without CPUs.
    fn new(is_own: bool, idles: bool, is_smt: bool) -> Standing {
        Standing {
            is_smt,
            is_own,
            idles,
            ..Standing::default()
        }
    }

    fn average_load(&self) -> u64 {
        self.load * CAPACITY / self.capacity
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
    fn classify(mut self, imbalance_pct: u64) -> Standing {
        let used_up = self.capacity * 100 < self.util * imbalance_pct;
        let crowded = self.capacity * imbalance_pct < self.runnable * 100;
        self.fullness = if self.running > self.cpus && (used_up || crowded) {
            Fullness::Overloaded
        } else if self.is_drawn {
            Fullness::Drawn
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
            Fullness::SmtBusy if self.idle > 0 || other.idle > 0 => fuller,
            Fullness::SmtBusy | Fullness::FullyBusy => !other.is_smt,
            Fullness::Misfit => self.misfit > other.misfit,
            // The last task of a core of several threads is not taken off it where others can be.
            Fullness::HasSpare if self.is_smt != other.is_smt => !self.is_smt || self.fair > 1,
            Fullness::HasSpare => fuller,
        }
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

/// How much less busy `local` has to be for something to move, in a domain.
#[derive(Clone, Copy, Debug)]
struct Terms {
    imbalance_pct: u64,
    shares_cache: bool,
    /// Tasks spread evenly over its groups (`SD_PREFER_SIBLING`).
    prefers_siblings: bool,
}

/// What is to be pulled from `busiest` to `local`, of all in a domain; `None` if nothing
/// (`sched_balance_find_src_group()`).
fn imbalance(
    local: &Standing,
    busiest: &Standing,
    all: &[Standing],
    terms: Terms,
) -> Option<Amount> {
    use Fullness::{Drawn, HasSpare, Misfit, Overloaded, SmtBusy};
    let mean = mean_load(all);
    if busiest.fullness != Misfit {
        if local.fullness > busiest.fullness {
            return None;
        }
        let spreads = terms.prefers_siblings
            && local.fullness == HasSpare
            && (busiest.fullness == Drawn || busiest.more_than(local) > 1);
        let balanced = match busiest.fullness {
            Overloaded => local.is_loaded_like(busiest, mean, terms.imbalance_pct),
            _ if spreads => false,
            _ if !busiest.idles => true,
            // A core of one thread relieves one of several.
            SmtBusy if !local.is_smt => false,
            _ => busiest.cpus > 1 && local.idle <= busiest.idle + 1 || busiest.fair == 1,
        };
        if balanced {
            return None;
        }
    }
    let amount = amount(local, busiest, mean, terms);
    (!amount.is_nothing()).then_some(amount)
}

/// The average load of all groups, as that of a CPU.
fn mean_load(all: &[Standing]) -> u64 {
    let total: u64 = all.iter().map(|standing| standing.load).sum();
    let capacity: u64 = all.iter().map(|standing| standing.capacity).sum();
    total * CAPACITY / capacity
}

/// `calculate_imbalance()`.
fn amount(local: &Standing, busiest: &Standing, mean: u64, terms: Terms) -> Amount {
    use Fullness::{Drawn, FullyBusy, HasSpare, Misfit, Overloaded, SmtBusy};
    match (local.fullness, busiest.fullness) {
        (_, Misfit) => Amount::Load(busiest.misfit),
        (_, Drawn) => Amount::Drawn(1),
        (_, SmtBusy) => Amount::Tasks(1),
        (HasSpare, Overloaded) if !terms.shares_cache => {
            match local.capacity.saturating_sub(local.util) {
                0 if busiest.idles => Amount::Tasks(1),
                spare => Amount::Util(spare),
            }
        }
        (HasSpare, _) if busiest.cpus == 1 || terms.prefers_siblings => {
            Amount::Tasks(busiest.more_than(local) / 2)
        }
        (HasSpare, _) => Amount::Tasks(local.idle.saturating_sub(busiest.idle) / 2),
        (FullyBusy | Misfit | SmtBusy | Drawn | Overloaded, _) => {
            let over = busiest.average_load().saturating_sub(mean) * busiest.capacity;
            let under = mean.saturating_sub(local.average_load()) * local.capacity;
            Amount::Load(over.min(under) / CAPACITY)
        }
    }
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
        let pct = domain.level.imbalance_pct;
        let idles = idleness != Idleness::Busy;
        let groups = domain.groups.iter().enumerate();
        let mut standings: Vec<Standing> = groups
            .map(|(at, group)| {
                let standing = Standing::new(at == 0, idles, self.is_one_core(group));
                self.standing(context, standing, (here, pct), (group, without))
            })
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
        let mut best: Option<usize> = None;
        for (at, standing) in others
            .iter()
            .enumerate()
            .filter(|(_, standing)| standing.fair > 0)
        {
            if best.is_none_or(|best| standing.is_busier_than(&others[best])) {
                best = Some(at);
            }
        }
        let best = best?;
        let terms = Terms {
            imbalance_pct: pct,
            shares_cache: domain.level.shares_cache,
            prefers_siblings: number > 0,
        };
        let amount = imbalance(local, &others[best], &standings, terms)?;
        let group = &domain.groups[best + 1];
        let cpus = group.iter().copied().filter(|cpu| !without.contains(cpu));
        let cpu = self.busiest_of((here, pct), cpus, amount)?;
        Some(Busiest { cpu, amount })
    }

    /// Whether the CPUs are the threads of one core, and several.
    fn is_one_core(&self, group: &[CpuId]) -> bool {
        group.len() > 1 && self.threads(group[0]).len() == group.len()
    }

    /// `update_sg_lb_stats()`.
    fn standing(
        &self,
        context: &Context<'_>,
        mut standing: Standing,
        (here, pct): (CpuId, u64),
        (group, without): (&[CpuId], &[CpuId]),
    ) -> Standing {
        for cpu in group.iter().filter(|cpu| context.is_online(**cpu)) {
            standing.cpus += 1;
            standing.cores +=
                u64::from(self.threads(*cpu).first().is_none_or(|first| first == cpu));
            standing.capacity += self.capacity(*cpu);
            if without.contains(cpu) {
                continue;
            }
            let (load, running) = (self.load(*cpu), self.running(*cpu));
            standing.load += load;
            standing.runnable += self.queues[self.cpu(*cpu).root].load.runnable;
            standing.util += self.util(*cpu);
            standing.running += running;
            standing.fair += self.queues[self.cpu(*cpu).root].runnable;
            standing.idle += u64::from(self.is_idle(*cpu));
            standing.overloads |= running > 1;
            standing.preferring += self.preferring(*cpu, here);
            if standing.idles && !standing.is_own && self.has_reduced_capacity(*cpu, pct) {
                standing.misfit = standing.misfit.max(load);
            }
        }
        standing.cpus = standing.cpus.max(1);
        standing.cores = standing.cores.max(1);
        standing.capacity = standing.capacity.max(1);
        standing
    }

    /// Which of `cpus` has most of what is to be pulled (`sched_balance_find_src_rq()`).
    fn busiest_of(
        &self,
        (here, pct): (CpuId, u64),
        cpus: impl Iterator<Item = CpuId>,
        amount: Amount,
    ) -> Option<CpuId> {
        let fair = |cpu: CpuId| self.queues[self.cpu(cpu).root].runnable;
        let key = |cpu: CpuId| match amount {
            Amount::Tasks(_) => fair(cpu),
            Amount::Load(_) => self.load(cpu) * CAPACITY / self.capacity(cpu),
            Amount::Util(_) => self.util(cpu),
            Amount::Drawn(_) => self.preferring(cpu, here),
        };
        let has_enough = |cpu: CpuId| match amount {
            Amount::Tasks(_) | Amount::Drawn(_) => fair(cpu) >= 1,
            Amount::Load(most) => {
                let fits = self.load(cpu) <= most || self.lacks_capacity(cpu, pct);
                fair(cpu) > 1 || fair(cpu) == 1 && fits
            }
            Amount::Util(_) => fair(cpu) > 1,
        };
        let mut best: Option<CpuId> = None;
        for cpu in cpus.filter(|cpu| has_enough(*cpu)) {
            if best.is_none_or(|best| key(cpu) > key(best)) {
                best = Some(cpu);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Terms = Terms {
        imbalance_pct: 117,
        shares_cache: true,
        prefers_siblings: false,
    };
    const CORES: Terms = Terms {
        prefers_siblings: true,
        ..ALONE
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
            ..Standing::new(false, true, false)
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
            ..Standing::new(false, true, threads > 1)
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
        assert_eq!(moved(core(2, 0), core(2, 2), Idleness::Idle, CORES), one);
        assert_eq!(moved(core(4, 0), core(4, 2), Idleness::Idle, CORES), one);
        assert_eq!(moved(core(4, 1), core(4, 3), Idleness::Idle, CORES), one);
        assert_eq!(moved(core(2, 1), core(2, 2), Idleness::Idle, CORES), None);
        assert_eq!(moved(core(2, 0), core(2, 1), Idleness::Idle, CORES), None);
        assert_eq!(moved(core(2, 0), core(2, 2), Idleness::Busy, CORES), None);
        assert_eq!(moved(core(1, 0), core(2, 2), Idleness::Idle, CORES), one);
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
}
