//! A CPU that is about to idle looks for work first, unless that seldom pays or takes longer than
//! it will idle (`sched_balance_newidle()`).

use warmq_kernel::Context;
use warmq_units::{CpuId, Instant};

use super::balance::{Idleness, Pull};
use super::state::State;

/// How well looking for work pays for a CPU that is about to idle (`newidle_call`,
/// `newidle_success`, `newidle_ratio`, `newidle_stamp`).
#[derive(Clone, Copy, Debug)]
pub(super) struct NewIdle {
    /// How often it was about to idle, whether it looked or not, and what it found: each success
    /// counts for the tries that were left out.
    calls: u32,
    successes: u32,
    /// Of 1024 times that it is about to idle, it looks this often.
    ratio: u32,
    /// When that was last decided, in ns.
    decided_at: i64,
    /// The most that a look took lately, in ns, and when that was found, or made less, in jiffies
    /// (`max_newidle_lb_cost`, `last_decay_max_lb_cost`).
    pub(super) cost: i64,
    cost_at: i64,
}

impl Default for NewIdle {
    fn default() -> NewIdle {
        NewIdle {
            calls: 512,
            successes: 256,
            ratio: 512,
            decided_at: 0,
            cost: 0,
            cost_at: 0,
        }
    }
}

impl NewIdle {
    /// Throws dice (`drawn`, of 1024) whether to look: the tries for which finding something would
    /// count, if so.
    pub(super) fn throw(&self, drawn: u32) -> Option<u32> {
        let weight = 1 + self.ratio;
        (drawn <= weight).then_some((1_024 + weight / 2) / weight)
    }

    /// A look took `cost` ns. What is the most is forgotten by about 1 % a second
    /// (`update_newidle_cost()`).
    fn took(&mut self, cost: i64, jiffies: i64, hz: i64) {
        if cost > self.cost {
            (self.cost, self.cost_at) = (cost, jiffies);
        } else {
            self.forget(jiffies, hz);
        }
    }

    /// The same without a look. Whether something was forgotten.
    pub(super) fn forget(&mut self, jiffies: i64, hz: i64) -> bool {
        let is_old = jiffies > self.cost_at + hz;
        if is_old {
            self.cost = self.cost * 253 / 256;
            self.cost_at = jiffies;
        }
        is_old
    }

    /// Counts a time that it was about to idle, with what it found; after 1024 of them its
    /// successes are the new ratio, and half of them are forgotten (`update_newidle_stats()`).
    /// `rate`: the more rarely it idles, the less it costs to look: the 512 of them that are new
    /// each time, in 4 s, are rare enough to look always (`NI_RATE`, 7.1).
    pub(super) fn count(&mut self, found: u32, now: i64, rate: bool) {
        self.calls += 1;
        self.successes += found;
        if self.calls >= 1_024 {
            let passed = now.saturating_sub(self.decided_at).max(0);
            let rarity = if rate { passed >> 22 } else { 0 };
            self.ratio = (rarity + i64::from(self.successes)).min(1_024) as u32;
            self.decided_at = now;
            self.calls /= 2;
            self.successes /= 2;
        }
    }
}

impl State {
    /// A CPU that is about to idle pulls one task, unless a wakeup was left to it, no task waits
    /// anywhere, it will idle for less than looking takes, or looking rarely paid.
    pub(super) fn look_newly_idle(&mut self, context: &mut Context<'_>) -> Option<(CpuId, Pull)> {
        let here = context.cpu();
        let there = self.cpu_mut(here);
        there.misfit = 0;
        there.idle_since = Some(there.clock);
        if there.wakeups_left > 0 || there.domains.is_empty() {
            return None;
        }
        let found = match self.overloaded && self.has_time_for(here, 0, 0) {
            true => self.look_while_it_pays(context),
            false => {
                self.hasten(here, 0);
                None
            }
        };
        if found.is_none() {
            self.update_idle_loads(context);
        }
        found
    }

    /// Whether `cpu` will idle for longer than it takes to look in `domain`, after `spent` ns.
    fn has_time_for(&self, cpu: CpuId, domain: usize, spent: i64) -> bool {
        let there = self.cpu(cpu);
        there.average_idle >= spent + there.domains[domain].newidle.cost
    }

    fn look_while_it_pays(&mut self, context: &mut Context<'_>) -> Option<(CpuId, Pull)> {
        let here = context.cpu();
        let (begun, mut since) = (context.now(), context.now());
        self.decay_blocked(here);
        let mut found = None;
        for domain in 0..self.cpu(here).domains.len() {
            self.hasten(here, domain);
            if !self.has_time_for(here, domain, ns_since(begun, since)) {
                break;
            }
            let Some(weight) = self.newidle_pays(here, domain) else {
                self.count_newidle(here, domain, 0);
                continue;
            };
            found = self
                .balance_in(context, (here, domain), Idleness::NewlyIdle)
                .0;
            let took = ns_since(since, context.now());
            since = context.now();
            let (jiffies, hz) = (self.jiffies(here), self.rules.hz());
            let newidle = &mut self.cpu_mut(here).domains[domain].newidle;
            newidle.took(took, jiffies, hz);
            self.count_newidle(here, domain, if found.is_some() { weight } else { 0 });
            if found.is_some() {
                break;
            }
        }
        let most = &mut self.cpu_mut(here).most_idle_cost;
        *most = ns_since(begun, since).max(*most);
        found
    }

    /// `cpu` is about to idle, and so balances `domain` again sooner than it did while it was busy,
    /// in a second at the latest (`update_next_balance()`).
    fn hasten(&mut self, cpu: CpuId, domain: usize) {
        let of = &self.cpu(cpu).domains[domain];
        let due = of.last_balance + self.interval(cpu, domain, false);
        let latest = self.jiffies(cpu) + self.rules.hz();
        let next = &mut self.cpu_mut(cpu).next_balance;
        *next = due.min(latest).min(*next);
    }

    /// Whether `cpu` should look in a domain, by a throw of dice weighted by how often that found
    /// something (`NI_RANDOM`); and for how many tries it counts if it finds something.
    fn newidle_pays(&self, cpu: CpuId, domain: usize) -> Option<u32> {
        let newidle = &self.cpu(cpu).domains[domain].newidle;
        if !self.rules.newidle_random || newidle.ratio >= 1_024 {
            return Some(1);
        }
        // The low bits of the clock: what the kernel draws is as unpredictable, and this can be
        // replayed.
        let drawn = (self.cpu(cpu).clock / 7) % 1_024;
        newidle.throw(drawn as u32)
    }

    fn count_newidle(&mut self, cpu: CpuId, domain: usize, found: u32) {
        let (now, rate) = (self.cpu(cpu).clock, self.rules.newidle_rate);
        let domain = &mut self.cpu_mut(cpu).domains[domain];
        domain.newidle.count(found, now, rate);
    }

    /// At a regular visit to all domains of `cpu`, what looking takes is forgotten slowly; at least
    /// the cost of a migration stays (`sched_balance_domains()`).
    pub(super) fn forget_costs(&mut self, cpu: CpuId, visited: usize) {
        let (jiffies, hz, least) = (
            self.jiffies(cpu),
            self.rules.hz(),
            self.rules.migration_cost,
        );
        let there = self.cpu_mut(cpu);
        let (mut sum, mut forgot) = (0, false);
        for (at, domain) in there.domains.iter_mut().enumerate() {
            if at >= visited && !forgot {
                break;
            }
            forgot = domain.newidle.forget(jiffies, hz);
            sum += domain.newidle.cost;
        }
        if forgot {
            there.most_idle_cost = sum.max(least);
        }
    }

    /// `cpu` is about to have a task: it idled until now (`ttwu_do_wakeup()`). It counts for twice
    /// the time that looking for work takes at most.
    pub(super) fn end_idling(&mut self, cpu: CpuId) {
        let there = self.cpu_mut(cpu);
        let most = 2 * there.most_idle_cost;
        if let Some(since) = there.idle_since.take() {
            let idled = there.clock - since;
            there.average_idle += (idled - there.average_idle) / 8;
            there.average_idle = there.average_idle.min(most);
        }
    }
}

fn ns_since(since: Instant, now: Instant) -> i64 {
    (now - since).as_ns() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    /// What of 1024 times a CPU looks after it was about to idle 512 times, within `time` ns, each
    /// time with `found`.
    fn ratio_after(time: i64, found: u32, rate: bool) -> u32 {
        let mut newidle = NewIdle::default();
        (0..512).for_each(|_| newidle.count(found, time, rate));
        newidle.ratio
    }

    #[test]
    fn a_cpu_looks_as_often_as_it_found_something() {
        // The ratio that it begins with is half forgotten.
        assert_eq!(ratio_after(S, 0, false), 256);
        assert_eq!(ratio_after(S, 1, false), 768);
        let newidle = NewIdle::default();
        assert_eq!(
            newidle.throw(513),
            Some(2),
            "a success counts for a try left out"
        );
        assert_eq!(newidle.throw(514), None);
    }

    #[test]
    fn a_cpu_that_rarely_idles_looks_always() {
        // The kernel's table: 4 s give 1024 (953 here, as 2^22 ns are 4.2 ms), 1 s 256, 0.25 s 64.
        for (time, rarity) in [(S / 4, 59), (S, 238), (2 * S, 476)] {
            assert_eq!(ratio_after(time, 0, true), 256 + rarity);
        }
        assert_eq!(ratio_after(4 * S, 0, true), 1_024);
    }

    /// What a look took at most counts, and is forgotten by a hundredth a second.
    #[test]
    fn the_cost_of_looking_is_forgotten_slowly() {
        let mut newidle = NewIdle::default();
        for (case, cost, jiffies, expected) in [
            ("the first", 10_000, 0, 10_000),
            ("less", 5_000, 100, 10_000),
            ("less, within a second of the most", 5_000, 250, 10_000),
            ("less, after that", 5_000, 251, 9_882),
            ("less, just after it was forgotten", 5_000, 300, 9_882),
            ("more", 20_000, 301, 20_000),
        ] {
            newidle.took(cost, jiffies, 250);
            assert_eq!(newidle.cost, expected, "{case}");
        }
    }
}
