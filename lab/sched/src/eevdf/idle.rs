//! Balancing for CPUs that idle without a tick: a busy CPU wakes one of them, and that balances for
//! all (`nohz_balancer_kick()`, `_nohz_idle_balance()`). It also lets their averages decay, which
//! nothing else does.

use warmq_kernel::Context;
use warmq_units::CpuId;

use super::balance::{Idleness, Pass};
use super::state::State;

/// How often averages of idle CPUs are made to decay, in ms (`LOAD_AVG_PERIOD`).
const DECAY_MS: i64 = 32;

/// What an idle CPU was woken for (`nohz_flags()`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kick {
    /// To balance (`NOHZ_BALANCE_KICK`).
    balances: bool,
    /// To let averages decay (`NOHZ_STATS_KICK`).
    decays: bool,
    /// To find out when the next idle CPU is due (`NOHZ_NEXT_KICK`).
    finds_next: bool,
}

impl Kick {
    const BALANCE: Kick = Kick {
        balances: true,
        decays: true,
        finds_next: false,
    };

    pub(super) fn is_any(self) -> bool {
        self != Kick::default()
    }

    fn and(self, other: Kick) -> Kick {
        Kick {
            balances: self.balances || other.balances,
            decays: self.decays || other.decays,
            finds_next: self.finds_next || other.finds_next,
        }
    }
}

/// What all CPUs know of those that idle (`nohz`). Times are in jiffies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Nohz {
    /// When one of them is due, as of when that was found out last.
    next_balance: i64,
    /// One began to idle since then (`needs_update`).
    has_new: bool,
    /// Averages of some still have to decay, and when they are to (`has_blocked_load`,
    /// `next_blocked`).
    has_blocked: bool,
    next_decay: i64,
}

/// What decides at a tick of a busy CPU whether an idle one is woken to balance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Busy {
    /// Tasks that are queued here.
    queued: u64,
    /// Others take a part of the time of the fair task that runs here.
    lacks_capacity: bool,
    /// An idle CPU has a higher priority.
    could_be_packed: bool,
    /// CPUs under its cache that run tasks: its threads may be crowded on fewer cores than there
    /// are, and other caches may be idle. From here it is not known where, so whoever is woken
    /// finds out.
    /// Where CPUs are of unlike capacity, this is of no account.
    busy_under_cache: usize,
    /// Its task needs a larger CPU.
    misfits: bool,
}

impl Busy {
    fn is_to_be_relieved(self) -> bool {
        let crowded = self.queued >= 2 || self.lacks_capacity || self.busy_under_cache > 1;
        crowded || self.could_be_packed || self.misfits
    }
}

impl State {
    /// `cpu` idles from now on, its tick stopped (`nohz_balance_enter_idle()`).
    pub(super) fn begin_resting(&mut self, cpu: CpuId) {
        self.resting.insert(cpu);
        self.cpu_mut(cpu).has_blocked = true;
        (self.nohz.has_new, self.nohz.has_blocked) = (true, true);
    }

    /// `cpu` runs a task. The kernel says so at the first tick after that
    /// (`nohz_balance_exit_idle()`); but there a CPU that idles for less than a tick has not rested
    /// at all, as its tick went on.
    pub(super) fn end_resting(&mut self, cpu: CpuId) {
        self.resting.remove(&cpu);
    }

    /// At its tick a busy CPU wakes an idle one, if it could be relieved of a task and an idle CPU
    /// is due, if averages are to decay, or if it is to be found out who is due. All who do so wake
    /// the same one, so that it is woken once.
    pub(super) fn kick_idle(&mut self, context: &mut Context<'_>) {
        let here = context.cpu();
        if self.is_idle(here) {
            return;
        }
        let now = self.jiffies(here);
        let mut kick = Kick {
            decays: self.nohz.has_blocked && now > self.nohz.next_decay,
            ..Kick::default()
        };
        if now >= self.nohz.next_balance {
            if self.resting.is_empty() {
                return;
            }
            if self.how_busy(here).is_to_be_relieved() {
                kick = kick.and(Kick::BALANCE);
            }
        }
        kick.finds_next = self.nohz.has_new;
        if kick.is_any() {
            self.kick(context, kick);
        }
    }

    fn how_busy(&self, cpu: CpuId) -> Busy {
        let there = self.cpu(cpu);
        let pct = there.domains.first().map(|least| least.level.imbalance_pct);
        let lacks = pct.is_some_and(|pct| self.lacks_capacity(cpu, pct));
        let unlike = self.unlike_domain(cpu).is_some();
        Busy {
            queued: self.nr_running(cpu),
            lacks_capacity: lacks && self.fair_tasks(cpu) >= 1,
            could_be_packed: self.could_be_packed(cpu),
            busy_under_cache: match unlike {
                true => 0,
                false => self.busy_under_cache(cpu),
            },
            misfits: unlike && there.misfit > 0,
        }
    }

    /// CPUs under the cache of `cpu` that run tasks (`nr_busy_cpus`).
    fn busy_under_cache(&self, cpu: CpuId) -> usize {
        let under = self.under_cache(cpu).iter();
        under.filter(|cpu| !self.resting.contains(cpu)).count()
    }

    /// Wakes an idle CPU, unless it is awake for the same (`kick_ilb()`).
    fn kick(&mut self, context: &mut Context<'_>, kick: Kick) {
        let here = context.cpu();
        if kick.balances {
            self.nohz.next_balance = self.jiffies(here) + 1;
        }
        let Some(idle) = self.idle_balancer(context, here) else {
            return;
        };
        let now = self.jiffies(here);
        let there = self.cpu_mut(idle);
        let is_awake = there.kick.is_any() && there.kicked_at == now;
        (there.kick, there.kicked_at) = (there.kick.and(kick), now);
        if !is_awake {
            context.raise_balance(idle);
        }
    }

    /// The idle CPU that balances for all: the first, or from 7.3 on the first on an idle core, if
    /// there is one (`find_new_ilb()`).
    fn idle_balancer(&self, context: &Context<'_>, here: CpuId) -> Option<CpuId> {
        let mut idle = self.idle_without_tick(context, here);
        let first = idle.next()?;
        if !self.rules.kicks_idle_core || self.has_idle_core(first) {
            return Some(first);
        }
        Some(idle.find(|cpu| self.has_idle_core(*cpu)).unwrap_or(first))
    }

    /// The CPUs that idle without a tick, in number order (`nohz.idle_cpus_mask`), and balance with
    /// `here` at all.
    fn idle_without_tick<'a>(
        &'a self,
        context: &'a Context<'_>,
        here: CpuId,
    ) -> impl Iterator<Item = CpuId> + 'a {
        let balances = !self.cpu(here).domains.is_empty();
        let resting = self.resting.iter().copied().filter(move |_| balances);
        resting.filter(move |cpu| self.is_idle(*cpu) && context.is_online(*cpu))
    }

    /// This CPU was woken for all that idle: their averages decay, and it balances for each that is
    /// due, from the next one round to itself (`_nohz_idle_balance()`).
    pub(super) fn begin_for_all_idle(
        &mut self,
        context: &mut Context<'_>,
        kick: Kick,
    ) -> Option<Pass> {
        let here = context.cpu();
        self.nohz.has_new &= !kick.finds_next;
        if kick.decays {
            self.decay_all_idle(context);
        }
        let (before, after): (Vec<CpuId>, Vec<CpuId>) = self
            .idle_without_tick(context, here)
            .partition(|cpu| *cpu <= here);
        let all: Vec<CpuId> = after.into_iter().chain(before).collect();
        let others = all.into_iter().rev().filter(|_| kick.balances);
        let mut pass = Pass::new(here, Idleness::Idle);
        pass.others = others.collect();
        pass.for_all = true;
        pass.leave_out_own();
        Some(pass)
    }

    /// When the first of the idle CPUs is due.
    pub(super) fn find_next_idle(&mut self, context: &Context<'_>) {
        let here = context.cpu();
        let idle = self.idle_without_tick(context, here);
        if let Some(next) = idle.map(|cpu| self.cpu(cpu).next_balance).min() {
            self.nohz.next_balance = next;
        }
    }

    /// Averages of idle CPUs decay, where that was not done in this jiffy; whether some have to
    /// further is known then (`update_nohz_stats()`).
    fn decay_all_idle(&mut self, context: &Context<'_>) {
        let here = context.cpu();
        let now = self.jiffies(here);
        self.nohz.has_blocked = false;
        let idle: Vec<CpuId> = self.idle_without_tick(context, here).collect();
        for cpu in idle {
            if self.cpu(cpu).has_blocked && now > self.cpu(cpu).decayed_at {
                self.sync(context, cpu);
                self.decay_blocked(cpu);
                let has_blocked = self.has_blocked(cpu);
                self.cpu_mut(cpu).has_blocked = has_blocked;
            }
            self.nohz.has_blocked |= self.cpu(cpu).has_blocked;
        }
        let period = (DECAY_MS * self.rules.hz() + 999) / 1_000;
        self.nohz.next_decay = now + period;
    }

    /// A CPU that idles for long enough does so for all before it idles, if it is time
    /// (`nohz_newidle_balance()`, `nohz_run_idle_balance()`).
    pub(super) fn update_idle_loads(&mut self, context: &Context<'_>) {
        let here = context.cpu();
        let is_due = self.nohz.has_blocked && self.jiffies(here) >= self.nohz.next_decay;
        if is_due && self.cpu(here).average_idle >= self.rules.migration_cost {
            self.decay_all_idle(context);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The conditions of `nohz_balancer_kick()`, one at a time.
    #[test]
    fn when_a_busy_cpu_wakes_an_idle_one() {
        let alone = Busy {
            queued: 1,
            busy_under_cache: 1,
            ..Busy::default()
        };
        for (case, busy, kicks) in [
            ("alone under its cache", alone, false),
            ("with one that waits", Busy { queued: 2, ..alone }, true),
            (
                "beside a real-time task",
                Busy {
                    lacks_capacity: true,
                    ..alone
                },
                true,
            ),
            (
                "with a better CPU idle",
                Busy {
                    could_be_packed: true,
                    ..alone
                },
                true,
            ),
            (
                "with another under its cache",
                Busy {
                    busy_under_cache: 2,
                    ..alone
                },
                true,
            ),
            (
                "with a task that needs a larger CPU",
                Busy {
                    misfits: true,
                    ..alone
                },
                true,
            ),
        ] {
            assert_eq!(busy.is_to_be_relieved(), kicks, "{case}");
        }
    }

    #[test]
    fn what_a_cpu_is_woken_for_adds_up() {
        let decays = Kick {
            decays: true,
            ..Kick::default()
        };
        assert!(decays.is_any() && !Kick::default().is_any());
        assert_eq!(decays.and(Kick::BALANCE), Kick::BALANCE);
    }
}
