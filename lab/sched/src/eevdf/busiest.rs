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

    /// Whether a task of `load` and `util` fits; if so, it is taken off. After failures, larger ones
    /// fit.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fullness {
    HasSpare,
    FullyBusy,
    /// It has tasks that prefer the cache of the CPU that balances, and may go there.
    Drawn,
    Overloaded,
}

/// A group as balancing sees it (`struct sg_lb_stats`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    cpus: u64,
    pub(super) capacity: u64,
    load: u64,
    pub(super) util: u64,
    /// Tasks that were runnable on average, in 1024ths; real-time tasks are not among them.
    runnable: u64,
    running: u64,
    idle: u64,
    /// How many tasks prefer the cache of the CPU that balances, and whether one of them is to go there.
    pub(super) preferring: u64,
    pub(super) is_drawn: bool,
    fullness: Fullness,
}

impl Standing {
    fn average_load(&self) -> u64 {
        self.load * CAPACITY / self.capacity
    }

    /// Whether fair tasks use less than what there is, with a margin.
    fn has_room(&self, imbalance_pct: u64) -> bool {
        self.capacity * 100 > self.util * imbalance_pct
    }

    /// `group_classify()`.
    fn classify(mut self, imbalance_pct: u64) -> Standing {
        let used_up = self.capacity * 100 < self.util * imbalance_pct;
        let crowded = self.capacity * imbalance_pct < self.runnable * 100;
        self.fullness = if self.running > self.cpus && (used_up || crowded) {
            Fullness::Overloaded
        } else if self.is_drawn {
            Fullness::Drawn
        } else if self.running < self.cpus || !crowded && self.has_room(imbalance_pct) {
            Fullness::HasSpare
        } else {
            Fullness::FullyBusy
        };
        self
    }

    /// Whether it is busier than `other` (`update_sd_pick_busiest()`).
    fn is_busier_than(&self, other: &Standing) -> bool {
        if self.fullness != other.fullness {
            return self.fullness > other.fullness;
        }
        match self.fullness {
            Fullness::Overloaded | Fullness::FullyBusy => {
                self.average_load() > other.average_load()
            }
            Fullness::Drawn => self.preferring > other.preferring,
            Fullness::HasSpare => (other.idle, self.running) > (self.idle, other.running),
        }
    }
}

/// What is to be pulled from `busiest` to `local`, of all in a domain; `None` if nothing.
fn imbalance(
    local: &Standing,
    busiest: &Standing,
    all: &[Standing],
    (idleness, imbalance_pct, shares_cache, prefers_siblings): (Idleness, u64, bool, bool),
) -> Option<Amount> {
    use Fullness::{Drawn, FullyBusy, HasSpare, Overloaded};
    if local.fullness > busiest.fullness {
        return None;
    }
    let total: u64 = all.iter().map(|standing| standing.load).sum();
    let capacity: u64 = all.iter().map(|standing| standing.capacity).sum();
    let mean = total * CAPACITY / capacity;
    if local.fullness == Overloaded {
        let balanced = local.average_load() >= busiest.average_load()
            || local.average_load() >= mean
            || 100 * busiest.average_load() <= imbalance_pct * local.average_load();
        if balanced {
            return None;
        }
    }
    let more = busiest.running.saturating_sub(local.running);
    let is_drawn = busiest.fullness == Drawn;
    let spreads = prefers_siblings && local.fullness == HasSpare && (is_drawn || more > 1);
    if !spreads && busiest.fullness != Overloaded {
        let balanced = idleness == Idleness::Busy
            || busiest.cpus > 1 && local.idle <= busiest.idle + 1
            || busiest.running == 1;
        if balanced {
            return None;
        }
    }
    if is_drawn {
        return Some(Amount::Drawn(1));
    }
    let amount = match local.fullness {
        HasSpare if busiest.fullness > FullyBusy && !shares_cache => {
            let spare = local.capacity.max(local.util) - local.util;
            match spare {
                0 if idleness != Idleness::Busy => Amount::Tasks(1),
                spare => Amount::Util(spare),
            }
        }
        HasSpare if busiest.cpus == 1 || prefers_siblings => Amount::Tasks(more / 2),
        HasSpare => Amount::Tasks(local.idle.saturating_sub(busiest.idle) / 2),
        FullyBusy | Drawn | Overloaded => {
            let over = busiest.average_load().saturating_sub(mean) * busiest.capacity;
            let under = mean.saturating_sub(local.average_load()) * local.capacity;
            Amount::Load(over.min(under) / CAPACITY)
        }
    };
    (!amount.is_nothing()).then_some(amount)
}

impl State {
    /// The CPU of a domain to pull from, leaving out `without`.
    pub(super) fn busiest(
        &mut self,
        context: &mut Context<'_>,
        domain: usize,
        idleness: Idleness,
        without: &[CpuId],
    ) -> Option<Busiest> {
        let here = context.cpu();
        let (prefers_siblings, number) = (domain > 0, domain);
        let domain = &self.cpu(here).domains[number];
        let lines = domain.span.iter().map(|cpu| self.cpu(*cpu).line);
        context.touch_all(lines, Access::Read);
        let pct = domain.level.imbalance_pct;
        let groups = domain.groups.iter();
        let mut standings: Vec<Standing> = groups
            .map(|group| self.standing(context, group, without))
            .collect();
        self.see_caches(here, number, idleness, &mut standings);
        let standings: Vec<Standing> = standings
            .into_iter()
            .map(|standing| standing.classify(pct))
            .collect();
        let domain = &self.cpu(here).domains[number];
        let (local, others) = standings.split_first()?;
        let mut best: Option<usize> = None;
        for (at, standing) in others
            .iter()
            .enumerate()
            .filter(|(_, standing)| standing.running > 0)
        {
            if best.is_none_or(|best| standing.is_busier_than(&others[best])) {
                best = Some(at);
            }
        }
        let best = best?;
        let rules = (idleness, pct, domain.level.shares_cache, prefers_siblings);
        let amount = imbalance(local, &others[best], &standings, rules)?;
        let group = &domain.groups[best + 1];
        let cpus = group.iter().copied().filter(|cpu| !without.contains(cpu));
        let cpu = self.busiest_of(here, cpus, amount)?;
        Some(Busiest { cpu, amount })
    }

    fn standing(&self, context: &Context<'_>, group: &[CpuId], without: &[CpuId]) -> Standing {
        let mut standing = Standing {
            cpus: 0,
            capacity: 0,
            load: 0,
            util: 0,
            runnable: 0,
            running: 0,
            idle: 0,
            preferring: 0,
            is_drawn: false,
            fullness: Fullness::HasSpare,
        };
        for cpu in group.iter().filter(|cpu| context.is_online(**cpu)) {
            standing.cpus += 1;
            standing.capacity += self.capacity(*cpu);
            if without.contains(cpu) {
                continue;
            }
            standing.load += self.load(*cpu);
            standing.runnable += self.queues[self.cpu(*cpu).root].load.runnable;
            standing.util += self.util(*cpu);
            standing.running += self.running(*cpu);
            standing.idle += u64::from(self.is_idle(*cpu));
            standing.preferring += self.preferring(*cpu, context.cpu());
        }
        (standing.cpus, standing.capacity) = (standing.cpus.max(1), standing.capacity.max(1));
        standing
    }

    fn busiest_of(
        &self,
        here: CpuId,
        cpus: impl Iterator<Item = CpuId>,
        amount: Amount,
    ) -> Option<CpuId> {
        let key = |cpu: &CpuId| match amount {
            Amount::Tasks(_) => self.running(*cpu),
            Amount::Load(_) => self.load(*cpu),
            Amount::Util(_) => self.util(*cpu),
            Amount::Drawn(_) => self.preferring(*cpu, here),
        };
        let least = match amount {
            Amount::Tasks(_) | Amount::Drawn(_) => 1,
            Amount::Load(_) | Amount::Util(_) => 2,
        };
        let mut best: Option<CpuId> = None;
        for cpu in cpus.filter(|cpu| self.running(*cpu) >= least) {
            if best.is_none_or(|best| key(&cpu) > key(&best)) {
                best = Some(cpu);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(running: u64, load: u64) -> Standing {
        let standing = Standing {
            cpus: 1,
            capacity: CAPACITY,
            load,
            util: running.min(1) * CAPACITY,
            runnable: running * CAPACITY,
            running,
            idle: u64::from(running == 0),
            preferring: 0,
            is_drawn: false,
            fullness: Fullness::HasSpare,
        };
        standing.classify(117)
    }

    fn amount(local: Standing, busiest: Standing, idleness: Idleness) -> Option<Amount> {
        imbalance(
            &local,
            &busiest,
            &[local, busiest],
            (idleness, 117, true, false),
        )
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

    /// A CPU that a real-time task keeps has next to no capacity. Nobody gives it a second task, as it
    /// has room for what runs there, which is nothing; and what waits there is taken away.
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
