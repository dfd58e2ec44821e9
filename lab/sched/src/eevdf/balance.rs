//! Balancing: a CPU pulls tasks from the busiest CPU of the busiest group, in intervals, and when
//! it is about to idle (`sched_balance_rq()`, `sched_balance_newidle()`). An idle CPU whose tick is
//! stopped does so when a busy one asks for it (`idle.rs`).

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
    /// The CPU that gets the tasks: it looked, or an idle one looked for it.
    pub(super) to: CpuId,
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
        let kicked = std::mem::take(&mut self.cpu_mut(here).kicked);
        let found = match when {
            Balance::NewlyIdle => self.look_newly_idle(context),
            Balance::Idle if kicked => self.look_for_all_idle(context),
            Balance::Idle => self.look_in_intervals(context, here, Idleness::Idle),
            Balance::Tick => self.look_in_intervals(context, here, Idleness::Busy),
        };
        found.map(|(from, pull)| {
            self.cpu_mut(here).pull = Some(pull);
            from
        })
    }

    /// A CPU that is about to idle pulls one task, unless a wakeup was left to it, no task waits
    /// anywhere, idling has been short or looking rarely paid.
    fn look_newly_idle(&mut self, context: &mut Context<'_>) -> Option<(CpuId, Pull)> {
        let here = context.cpu();
        let clock = self.cpu(here).clock;
        self.cpu_mut(here).idle_since = Some(clock);
        if self.cpu(here).wakeups_left > 0 {
            return None;
        }
        self.hasten(here, 0);
        if !self.overloaded || self.cpu(here).average_idle < self.rules.migration_cost {
            return None;
        }
        self.decay_blocked(here);
        let mut found = None;
        for domain in 0..self.cpu(here).domains.len() {
            self.hasten(here, domain);
            let Some(weight) = self.newidle_pays(here, domain) else {
                self.count_newidle(here, domain, 0);
                continue;
            };
            found = match self.search(context, here, domain, Idleness::NewlyIdle) {
                Ok(pull) => Some(pull),
                Err(failed) => {
                    self.failed_newly_idle(context, here, domain, failed);
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

    /// `cpu` is about to idle, and so balances `domain` again sooner than it did while it was busy
    /// (`update_next_balance()`).
    fn hasten(&mut self, cpu: CpuId, domain: usize) {
        let Some(of) = self.cpu(cpu).domains.get(domain) else {
            return;
        };
        let due = of.last_balance + self.interval(cpu, domain, Idleness::Idle);
        let next = &mut self.cpu_mut(cpu).next_balance;
        *next = due.min(*next);
    }

    /// Whether `cpu` should look in a domain, by a throw of dice weighted by how often that found
    /// something (`NI_RANDOM`); and for how many tries it counts if it finds something.
    fn newidle_pays(&self, cpu: CpuId, domain: usize) -> Option<u32> {
        if !self.rules.newidle_random {
            return Some(1);
        }
        // The low bits of the clock: what the kernel draws is as unpredictable, and this can be
        // replayed.
        let drawn = (self.cpu(cpu).clock / 7) % 1_024;
        self.cpu(cpu).domains[domain].newidle.throw(drawn as u32)
    }

    fn count_newidle(&mut self, cpu: CpuId, domain: usize, found: u32) {
        let (now, rate) = (self.cpu(cpu).clock, self.rules.newidle_rate);
        self.cpu_mut(cpu).domains[domain]
            .newidle
            .count(found, now, rate);
    }

    /// Balances each domain of `here` that is due, up to the first for which it is another CPU's
    /// turn (`sched_balance_domains()`).
    pub(super) fn look_in_intervals(
        &mut self,
        context: &mut Context<'_>,
        here: CpuId,
        idleness: Idleness,
    ) -> Option<(CpuId, Pull)> {
        self.decay_blocked(here);
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
            let is_our_turn = self.is_our_turn(context, here, domain);
            if is_our_turn {
                match self.search(context, here, domain, idleness) {
                    Ok(pull) => found = Some(pull),
                    Err(failed) => self.pulled_nothing(context, here, domain, failed),
                }
            }
            next = next.min(now + self.interval(here, domain, idleness));
            if found.is_some() || !is_our_turn {
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

    /// One CPU of each group balances for it (`should_we_balance()`): above cores, the first on an
    /// idle core; then the first that is idle, or the first.
    fn is_our_turn(&self, context: &Context<'_>, here: CpuId, domain: usize) -> bool {
        let domain = &self.cpu(here).domains[domain];
        let own = domain.groups[0].iter().copied();
        let own = || own.clone().filter(|cpu| context.is_online(*cpu));
        let mut idle = own().filter(|cpu| self.is_idle(*cpu));
        let first_idle = idle.clone().next();
        let on_idle_core = match domain.level.shares_core {
            true => None,
            false => idle.find(|cpu| self.has_idle_core(*cpu)),
        };
        on_idle_core.or(first_idle).or(own().min()) == Some(here)
    }

    /// Whether this CPU may balance again by its own clock (`rq->next_balance`).
    pub(super) fn is_due(&self, cpu: CpuId) -> bool {
        self.cpu(cpu).clock >= self.cpu(cpu).next_balance
    }

    /// What can be pulled in a domain; if nothing, from whom it was tried. CPUs whose tasks may all
    /// not run here are left out, and it looks again.
    fn search(
        &mut self,
        context: &mut Context<'_>,
        here: CpuId,
        domain: usize,
        idleness: Idleness,
    ) -> Result<(CpuId, Pull), Option<Failed>> {
        if idleness != Idleness::NewlyIdle {
            self.update_scanned(context, here, domain);
        }
        let mut without = Vec::new();
        while let Some(busiest) = self.busiest(context, (here, domain), idleness, &without) {
            let Busiest { cpu: from, amount } = busiest;
            let mut pull = Pull {
                to: here,
                domain,
                amount,
                idleness,
            };
            if self.running(from) <= 1 {
                return Err(Some(Failed::new(from, pull, false)));
            }
            let (mut offer, mut tried) = (self.offer(context, from, pull), vec![here]);
            // What may not run here goes to another CPU of the group for which this one balances.
            while offer.tasks.is_empty()
                && let Some(other) = offer.elsewhere.filter(|other| !tried.contains(other))
            {
                tried.push(other);
                pull.to = other;
                offer = self.offer(context, from, pull);
            }
            if !offer.tasks.is_empty() {
                return Ok((from, pull));
            }
            // A running task that may come is one that is not pinned (can_migrate_task()).
            let drawn = matches!(amount, Amount::Drawn(_)) && self.wants_to(from, here);
            if drawn || !offer.all_pinned {
                return Err(Some(Failed::new(from, pull, offer.held)));
            }
            without.push(from);
        }
        Err(None)
    }

    /// What can be pulled from the queue of `from` (`detach_tasks()`).
    fn offer(&mut self, context: &mut Context<'_>, from: CpuId, pull: Pull) -> Offer {
        let here = pull.to;
        let mut left = pull.amount;
        let mut offer = Offer {
            tasks: Vec::new(),
            all_pinned: true,
            elsewhere: None,
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

    /// The tasks that wait on `cpu`, that which had it longest ago first. Delayed ones are not
    /// among them.
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
        let (here, view) = (pull.to, context.task(task));
        let failed = self.cpu(here).domains[pull.domain].failed;
        if self.rules.ineligible_stay && failed == 0 && self.owes_at(task, here) {
            return false;
        }
        // throttled_lb_pair(), lb_throttled_hierarchy()
        if context.is_throttled(task, here) {
            return false;
        }
        if !view.may_run_on(here) {
            offer.elsewhere = offer
                .elsewhere
                .or_else(|| self.elsewhere(context, task, pull));
            return false;
        }
        if !self.steering.lets_move(task, from, here) {
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
        // The kernel tries hot tasks last, in active balancing, which follows at once where one is
        // drawn.
        drawn || !self.is_hot(task, from) || domain.failed > domain.level.cache_nice_tries
    }

    /// Another CPU of the group of `pull.to` where `task` may run, in number order
    /// (`LBF_DST_PINNED`). One that is about to idle does not look for others.
    fn elsewhere(&self, context: &Context<'_>, task: TaskId, pull: Pull) -> Option<CpuId> {
        if pull.idleness == Idleness::NewlyIdle {
            return None;
        }
        let own = self.cpu(pull.to).domains[pull.domain].groups[0].iter();
        let mut others = own.copied().filter(|cpu| *cpu != pull.to);
        others.find(|cpu| context.is_online(*cpu) && context.task(task).may_run_on(*cpu))
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

    /// Counts a failed attempt of `here`, if there was an imbalance and no task was held for the
    /// sake of a cache.
    fn pulled_nothing(
        &mut self,
        context: &mut Context<'_>,
        here: CpuId,
        domain: usize,
        failed: Option<Failed>,
    ) {
        let state = &mut self.cpu_mut(here).domains[domain];
        let Some(attempt) = failed else {
            state.failed = 0;
            if state.interval < 2 * state.least_interval() {
                state.interval *= 2;
            }
            return;
        };
        state.failed += u32::from(!attempt.held);
        state.interval = state.least_interval();
        self.push_if_needed(context, here, domain, attempt);
    }

    /// A failure of a CPU that is about to idle does not count, as it may idle very often.
    fn failed_newly_idle(
        &mut self,
        context: &mut Context<'_>,
        here: CpuId,
        domain: usize,
        failed: Option<Failed>,
    ) {
        if let Some(attempt) = failed {
            self.push_if_needed(context, here, domain, attempt);
        }
    }

    /// Has the running task of the busiest CPU pushed to `here`, if that is what is left to do
    /// (`need_active_balance()`).
    fn push_if_needed(
        &mut self,
        context: &mut Context<'_>,
        here: CpuId,
        domain: usize,
        attempt: Failed,
    ) {
        let state = &self.cpu(here).domains[domain];
        let keeps_failing = state.failed > state.level.cache_nice_tries + 2;
        let due = attempt.counted && keeps_failing || self.gains_capacity(here, domain, attempt);
        let due = due && !self.breaks_preference(attempt.from, here);
        if due || attempt.drawn && self.wants_to(attempt.from, here) {
            self.push_running(context, here, domain, attempt);
        }
    }

    /// Whether the only task of a CPU whose time others take would have more of it on `here`, which
    /// idles.
    fn gains_capacity(&self, here: CpuId, domain: usize, attempt: Failed) -> bool {
        let pct = self.cpu(here).domains[domain].level.imbalance_pct;
        let (there, own) = (self.capacity(attempt.from), self.capacity(here));
        attempt.idle && self.has_reduced_capacity(attempt.from, pct) && there * pct < own * 100
    }

    /// The running task is to go to `here` at the next pick of its CPU, if it may
    /// (`active_load_balance_cpu_stop()`, without the stopper's own time).
    fn push_running(&mut self, context: &Context<'_>, here: CpuId, domain: usize, attempt: Failed) {
        let from = attempt.from;
        let running = self.cpu(from).current;
        let movable = running.is_some_and(|running| {
            context.task(running).may_run_on(here) && self.steering.lets_move(running, from, here)
        });
        if movable && self.cpu(from).push_to.is_none() {
            self.cpu_mut(from).push_to = Some(here);
            self.effects.request(from, super::effects::Urgency::Now);
            self.cpu_mut(here).domains[domain].failed = 0;
        }
    }

    /// Pulls what `look` has found, under the locks of both CPUs.
    pub(super) fn pull_from(&mut self, context: &mut Context<'_>, from: CpuId, when: Balance) {
        let Some(pull) = self.cpu_mut(context.cpu()).pull.take() else {
            return;
        };
        let here = pull.to;
        self.sync(context, here);
        let offer = self.offer(context, from, pull);
        for task in &offer.tasks {
            self.deactivate(*task, Leaving::Moves);
            self.arrive(context, *task, here);
        }
        if !offer.tasks.is_empty() {
            let domain = &mut self.cpu_mut(here).domains[pull.domain];
            domain.failed = 0;
            domain.interval = domain.least_interval();
        } else if when != Balance::NewlyIdle {
            let failed = Failed::new(from, pull, offer.held);
            self.pulled_nothing(context, here, pull.domain, Some(failed));
        }
    }
}

/// What a queue can give.
struct Offer {
    tasks: Vec<TaskId>,
    /// None of those that were looked at may run on the CPU that asks.
    all_pinned: bool,
    /// A CPU of the own group where one of them may run that may not on the one that balances.
    elsewhere: Option<CpuId>,
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
    /// The CPU that pulls idles, or is about to.
    idle: bool,
}

impl Failed {
    fn new(from: CpuId, pull: Pull, held: bool) -> Failed {
        Failed {
            from,
            counted: matches!(pull.amount, Amount::Tasks(_)),
            drawn: matches!(pull.amount, Amount::Drawn(_)),
            held,
            idle: pull.idleness != Idleness::Busy,
        }
    }
}
