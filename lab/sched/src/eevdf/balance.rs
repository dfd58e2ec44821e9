//! Balancing: a CPU pulls tasks from the busiest CPU of the busiest group, in intervals, and when it
//! is about to idle (`sched_balance_rq()`, `sched_balance_newidle()`).

use warmq_kernel::{Balance, Context};
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use super::busiest::{Amount, Busiest};
use super::domains::BUSY_FACTOR;
use super::queueing::Leaving;
use super::rules::MS;
use super::state::{Class, State};

/// What `look` has found, for `pull_from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pull {
    pub(super) domain: usize,
    pub(super) amount: Amount,
    pub(super) idleness: Idleness,
}

/// How idle a CPU is that balances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Idleness {
    Busy,
    Idle,
    /// It is about to be.
    NewlyIdle,
}

impl State {
    /// Looks for a CPU to pull from. Domains above the one that is pulled in come at the next time.
    pub(super) fn look(&mut self, context: &mut Context<'_>, when: Balance) -> Option<CpuId> {
        let here = context.cpu();
        self.decay_blocked(here);
        let found = match when {
            Balance::NewlyIdle => self.look_newly_idle(context),
            Balance::Idle => self.look_in_intervals(context, Idleness::Idle),
            Balance::Tick => self.look_in_intervals(context, Idleness::Busy),
        };
        found.map(|(from, pull)| {
            self.cpu_mut(here).pull = Some(pull);
            from
        })
    }

    /// A CPU that is about to idle pulls one task, unless a wakeup was left to it, idling has been short
    /// or looking rarely paid.
    fn look_newly_idle(&mut self, context: &mut Context<'_>) -> Option<(CpuId, Pull)> {
        let here = context.cpu();
        let clock = self.cpu(here).clock;
        self.cpu_mut(here).idle_since = Some(clock);
        let soon_busy = self.cpu(here).wakeups_left > 0;
        if soon_busy || self.cpu(here).average_idle < self.rules.migration_cost {
            return None;
        }
        let mut found = None;
        for domain in 0..self.cpu(here).domains.len() {
            let Some(weight) = self.newidle_pays(here, domain) else {
                self.count_newidle(here, domain, 0);
                continue;
            };
            found = match self.search(context, domain, Idleness::NewlyIdle) {
                Ok(pull) => Some(pull),
                Err(failed) => {
                    self.draw_newly_idle(context, domain, failed);
                    None
                }
            };
            self.count_newidle(here, domain, if found.is_some() { weight } else { 0 });
            if found.is_some() {
                break;
            }
        }
        found
    }

    /// Whether `cpu` should look in a domain, by a throw of dice weighted by how often that found something
    /// (`NI_RANDOM`); and for how many tries it counts if it finds something.
    fn newidle_pays(&self, cpu: CpuId, domain: usize) -> Option<u32> {
        if !self.rules.newidle_random {
            return Some(1);
        }
        // The low bits of the clock: what the kernel draws is as unpredictable, and this can be replayed.
        let drawn = (self.cpu(cpu).clock / 7) % 1_024;
        self.cpu(cpu).domains[domain].newidle.throw(drawn as u32)
    }

    fn count_newidle(&mut self, cpu: CpuId, domain: usize, found: u32) {
        let (now, rate) = (self.cpu(cpu).clock, self.rules.newidle_rate);
        self.cpu_mut(cpu).domains[domain]
            .newidle
            .count(found, now, rate);
    }

    fn look_in_intervals(
        &mut self,
        context: &mut Context<'_>,
        idleness: Idleness,
    ) -> Option<(CpuId, Pull)> {
        let here = context.cpu();
        let now = self.cpu(here).clock;
        let mut next = i64::MAX;
        let mut found = None;
        for domain in 0..self.cpu(here).domains.len() {
            let due =
                self.cpu(here).domains[domain].last_balance + self.interval(here, domain, idleness);
            if now < due {
                next = next.min(due);
                continue;
            }
            self.cpu_mut(here).domains[domain].last_balance = now;
            if self.is_our_turn(context, domain, idleness) {
                match self.search(context, domain, idleness) {
                    Ok(pull) => found = Some(pull),
                    Err(failed) => self.pulled_nothing(context, domain, failed),
                }
            }
            next = next.min(now + self.interval(here, domain, idleness));
            if found.is_some() {
                break;
            }
        }
        self.cpu_mut(here).next_balance = if found.is_some() { now } else { next };
        found
    }

    /// How often a domain is balanced, in ns (`get_sd_balance_interval()`).
    fn interval(&self, cpu: CpuId, domain: usize, idleness: Idleness) -> i64 {
        let interval = self.cpu(cpu).domains[domain].interval;
        let tick = self.rules.tick;
        let jiffies = match idleness {
            Idleness::Busy => interval * BUSY_FACTOR / tick - 1,
            Idleness::Idle | Idleness::NewlyIdle => interval / tick,
        };
        let second = 1_000 * MS / tick;
        let most = second * self.cpus.len() as i64 / 10;
        jiffies.clamp(1, most.max(1)) * tick
    }

    /// One CPU of each group balances for it: the first that is idle, or the first
    /// (`should_we_balance()`).
    fn is_our_turn(&self, context: &Context<'_>, domain: usize, idleness: Idleness) -> bool {
        let here = context.cpu();
        if idleness == Idleness::NewlyIdle {
            return true;
        }
        let own = &self.cpu(here).domains[domain].groups[0];
        let mut online = own.iter().copied().filter(|cpu| context.is_online(*cpu));
        let first = online.clone().min();
        let idle = online.find(|cpu| self.is_idle(*cpu));
        idle.or(first) == Some(here)
    }

    /// Whether this CPU may balance again by its own clock (`rq->next_balance`).
    pub(super) fn is_due(&self, cpu: CpuId) -> bool {
        self.cpu(cpu).clock >= self.cpu(cpu).next_balance
    }

    /// What can be pulled in a domain; if nothing, from whom it was tried. CPUs whose tasks may all not
    /// run here are left out, and it looks again.
    fn search(
        &mut self,
        context: &mut Context<'_>,
        domain: usize,
        idleness: Idleness,
    ) -> Result<(CpuId, Pull), Option<Failed>> {
        if idleness != Idleness::NewlyIdle {
            self.update_scanned(context, domain);
        }
        let mut without = Vec::new();
        while let Some(busiest) = self.busiest(context, domain, idleness, &without) {
            let Busiest { cpu: from, amount } = busiest;
            let pull = Pull {
                domain,
                amount,
                idleness,
            };
            if self.running(from) <= 1 {
                return Err(Some(Failed::new(from, amount, false)));
            }
            let offer = self.offer(context, from, pull);
            if !offer.tasks.is_empty() {
                return Ok((from, pull));
            }
            // A running task that may come is one that is not pinned (can_migrate_task()).
            let drawn = matches!(amount, Amount::Drawn(_)) && self.wants_to(from, context.cpu());
            if drawn || !offer.all_pinned {
                return Err(Some(Failed::new(from, amount, offer.held)));
            }
            without.push(from);
        }
        Err(None)
    }

    /// What this CPU can pull from the queue of `from` (`detach_tasks()`).
    fn offer(&mut self, context: &mut Context<'_>, from: CpuId, pull: Pull) -> Offer {
        let here = context.cpu();
        let mut left = pull.amount;
        let mut offer = Offer {
            tasks: Vec::new(),
            all_pinned: true,
            held: false,
        };
        let failed = self.cpu(here).domains[pull.domain].failed;
        if let Some(running) = self.cpu(from).current.filter(|task| self.is_fair(*task)) {
            // It stays where it is, but it may be asked to leave later.
            self.can_move(context, running, from, pull, &mut offer);
        }
        let mut remaining = self.running(from);
        for task in self.waiting(from).into_iter().take(self.rules.nr_migrate) {
            if left.is_nothing() || remaining <= 1 && pull.idleness != Idleness::Busy {
                break;
            }
            context.touch(self.entities[self.entity_of(task)].node, Access::Read);
            if !self.can_move(context, task, from, pull, &mut offer) {
                continue;
            }
            let (load, util) = (
                self.load_of(task),
                self.entities[self.entity_of(task)].load.util,
            );
            if !left.takes(load, util, failed) {
                continue;
            }
            offer.tasks.push(task);
            remaining -= 1;
            if pull.idleness == Idleness::NewlyIdle {
                break;
            }
        }
        offer
    }

    /// The tasks that wait on `cpu`, that which had it longest ago first. Delayed ones are not among
    /// them.
    pub(super) fn waiting(&self, cpu: CpuId) -> Vec<TaskId> {
        let there = self.cpu(cpu);
        let all = there.recency.iter().copied();
        all.filter(|task| there.current != Some(*task)).collect()
    }

    /// `can_migrate_task()`.
    fn can_move(
        &mut self,
        context: &Context<'_>,
        task: TaskId,
        from: CpuId,
        pull: Pull,
        offer: &mut Offer,
    ) -> bool {
        let (here, view) = (context.cpu(), context.task(task));
        let failed = self.cpu(here).domains[pull.domain].failed;
        if self.rules.ineligible_stay && failed == 0 && self.owes_at(task, here) {
            return false;
        }
        // throttled_lb_pair(), lb_throttled_hierarchy()
        if context.is_throttled(task, here) {
            return false;
        }
        if !view.may_run_on(here) || !self.steering.lets_move(task, from, here) {
            return false;
        }
        offer.all_pinned = false;
        if view.on_cpu().is_some() {
            return false;
        }
        let drawn = matches!(pull.amount, Amount::Drawn(_));
        if self.is_held(task, from, (here, pull.domain), drawn) {
            offer.held |= !drawn;
            return false;
        }
        let domain = &self.cpu(here).domains[pull.domain];
        // The kernel tries hot tasks last, in active balancing, which follows at once where one is drawn.
        drawn || !self.is_hot(task, from) || domain.failed > domain.level.cache_nice_tries
    }

    /// Whether `task` owes time, and would on `to`, where others of its group are
    /// (`task_is_ineligible_on_dst_cpu()`).
    fn owes_at(&self, task: TaskId, to: CpuId) -> bool {
        let entity = self.entity_of(task);
        let there = self.timeline_of(self.counterpart(self.entities[entity].queue, to));
        self.rules.place_lag && self.queues[there].entities > 0 && !self.is_eligible(entity)
    }

    fn is_fair(&self, task: TaskId) -> bool {
        self.task(task).class == Class::Fair
    }

    /// Whether a task ran so recently that its data are still in the cache (`task_hot()`).
    fn is_hot(&self, task: TaskId, from: CpuId) -> bool {
        let since = self.cpu(from).clock - self.entities[self.entity_of(task)].charged_at;
        since < self.rules.migration_cost
    }

    /// Counts a failed attempt, if there was an imbalance and no task was held for the sake of a cache.
    /// After enough of them, the running task of the busiest CPU is pushed here if a number of tasks was
    /// wanted (load is found among those that wait, the more of it the more attempts have failed:
    /// `imbalanced_active_balance()` since 5.12); one that prefers the cache here, at once
    /// (`need_active_balance()`).
    fn pulled_nothing(&mut self, context: &mut Context<'_>, domain: usize, from: Option<Failed>) {
        let here = context.cpu();
        let Some(attempt) = from else {
            let state = &mut self.cpu_mut(here).domains[domain];
            state.failed = 0;
            if state.interval < 2 * state.least_interval() {
                state.interval *= 2;
            }
            return;
        };
        let state = &mut self.cpu_mut(here).domains[domain];
        state.failed += u32::from(!attempt.held);
        let (failed, tries) = (state.failed, state.level.cache_nice_tries);
        state.interval = state.least_interval();
        let due = attempt.counted && failed > tries + 2;
        let due = due && !self.breaks_preference(attempt.from, here);
        if due || self.is_drawn(here, attempt) {
            self.push_running(context, domain, attempt);
        }
    }

    /// Whether the running task is to be pushed here as it prefers the cache here.
    fn is_drawn(&self, here: CpuId, attempt: Failed) -> bool {
        attempt.drawn && self.wants_to(attempt.from, here)
    }

    /// A CPU that is about to idle has tasks pushed here only for the sake of a cache, and looks for any
    /// only while tasks wait somewhere (`rd->overloaded`).
    fn draw_newly_idle(
        &mut self,
        context: &mut Context<'_>,
        domain: usize,
        attempt: Option<Failed>,
    ) {
        let here = context.cpu();
        let Some(attempt) = attempt.filter(|attempt| self.is_drawn(here, *attempt)) else {
            return;
        };
        let mut cpus = (0..self.cpus.len() as u16).map(CpuId);
        if cpus.any(|cpu| self.running(cpu) > 1) {
            self.push_running(context, domain, attempt);
        }
    }

    /// The running task is to come here at the next pick of its CPU, if it may.
    fn push_running(&mut self, context: &Context<'_>, domain: usize, attempt: Failed) {
        let (here, from) = (context.cpu(), attempt.from);
        let running = self.cpu(from).current;
        let movable = running.is_some_and(|running| {
            context.task(running).may_run_on(here) && self.steering.lets_move(running, from, here)
        });
        if movable && self.cpu(from).push_to.is_none() {
            self.cpu_mut(from).push_to = Some(here);
            self.effects.request(from, super::effects::Urgency::Now);
            let state = &mut self.cpu_mut(here).domains[domain];
            state.failed = match attempt.drawn {
                true => 0,
                false => state.level.cache_nice_tries + 1,
            };
        }
    }

    /// Pulls what `look` has found, under the locks of both CPUs.
    pub(super) fn pull_from(&mut self, context: &mut Context<'_>, from: CpuId, when: Balance) {
        let here = context.cpu();
        let Some(pull) = self.cpu(here).pull else {
            return;
        };
        let offer = self.offer(context, from, pull);
        self.cpu_mut(here).pull = None;
        for task in &offer.tasks {
            self.deactivate(*task, Leaving::Moves);
            self.arrive(context, *task, here);
        }
        if !offer.tasks.is_empty() {
            let domain = &mut self.cpu_mut(here).domains[pull.domain];
            domain.failed = 0;
            domain.interval = domain.least_interval();
        } else if when != Balance::NewlyIdle {
            let failed = Failed::new(from, pull.amount, offer.held);
            self.pulled_nothing(context, pull.domain, Some(failed));
        }
    }

    /// A busy CPU with tasks that wait wakes an idle one, so that it balances
    /// (`nohz_balancer_kick()`).
    pub(super) fn kick_idle(&mut self, context: &mut Context<'_>) {
        let here = context.cpu();
        if self.running(here) < 2 {
            return;
        }
        let Some(widest) = self.cpu(here).domains.last() else {
            return;
        };
        let mut resting = self.resting.iter().copied();
        let idle = resting
            .find(|cpu| self.is_idle(*cpu) && context.is_online(*cpu) && widest.span.contains(cpu));
        if let Some(idle) = idle.filter(|idle| self.cpu(*idle).next_balance <= self.cpu(here).clock)
        {
            context.raise_balance(idle);
        }
    }
}

/// What a queue can give.
struct Offer {
    tasks: Vec<TaskId>,
    /// None of those that were looked at may run on the CPU that asks.
    all_pinned: bool,
    /// One of them stays for the sake of a cache (`LBF_LLC_PINNED`).
    held: bool,
}

/// An attempt that pulled nothing from a CPU.
#[derive(Clone, Copy, Debug)]
struct Failed {
    from: CpuId,
    /// It asked for a number of tasks, and not for load: then some CPU has too few.
    counted: bool,
    /// It asked for tasks that prefer the cache of the CPU that pulls.
    drawn: bool,
    held: bool,
}

impl Failed {
    fn new(from: CpuId, amount: Amount, held: bool) -> Failed {
        Failed {
            from,
            counted: matches!(amount, Amount::Tasks(_)),
            drawn: matches!(amount, Amount::Drawn(_)),
            held,
        }
    }
}
