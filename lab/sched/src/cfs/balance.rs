//! Balancing: a CPU pulls load from the busiest CPU of the busiest group, in intervals, and when it
//! is about to idle (`load_balance()` and `load_balance_newidle()` of 2.6.24).
//!
//! What can be pulled is looked for before the locks are taken, where the kernel takes them first;
//! so an attempt that finds nothing is cheaper here. The locks are taken, and the tasks looked at
//! again, if there is something.

use warmq_kernel::{Balance, Context};
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use crate::fair::domains::{BUSY_FACTOR, MIN_INTERVAL};

use super::state::{IDLE_PRIORITY, Pull, QueueId, State, What};
use super::weights::NICE_0;

/// What came of looking at one domain.
struct Found {
    outcome: Outcome,
    all_idle: bool,
    others_turn: bool,
}

enum Outcome {
    /// There is something to pull from this CPU.
    From(CpuId, Pull),
    /// No imbalance, or affinity keeps everybody where they are.
    Balanced { pinned: bool },
    /// An imbalance, and nothing that can be pulled now.
    Failed(CpuId),
}

/// What a queue can give.
struct Offer {
    tasks: Vec<TaskId>,
    /// None of those that were looked at may run on the CPU that asks.
    all_pinned: bool,
}

impl State {
    /// Looks for a CPU to pull from. Domains above the one that is pulled in come at the next tick.
    pub(super) fn look(&mut self, context: &mut Context<'_>, when: Balance) -> Option<CpuId> {
        let from = match when {
            Balance::NewlyIdle => self.look_newly_idle(context),
            Balance::Idle => self.look_in_intervals(context, true),
            Balance::Tick => self.look_in_intervals(context, false),
        };
        from.map(|(from, pull)| {
            self.cpu_mut(context.cpu()).pull = Some(pull);
            from
        })
    }

    /// `idle_balance()`.
    fn look_newly_idle(&mut self, context: &mut Context<'_>) -> Option<(CpuId, Pull)> {
        let here = context.cpu();
        let (mut next, mut pulled, mut enough) = (u64::MAX, None, false);
        for domain in 0..self.cpu(here).domains.len() {
            let level = self.cpu(here).domains[domain].level;
            let found = self.search(context, (here, domain), level.newidle_idx, true);
            // A thread whose sibling is busy does not look further.
            enough = level.shares_core && !found.all_idle;
            match found.outcome {
                Outcome::From(from, pull) => pulled = Some((from, pull)),
                Outcome::Balanced { .. } if !enough => {
                    self.cpu_mut(here).domains[domain].failed = 0;
                }
                Outcome::Balanced { .. } | Outcome::Failed(_) => {}
            }
            next = next.min(self.due(here, domain, true));
            if enough || pulled.is_some() {
                break;
            }
        }
        // Where it finds nothing, an idle CPU so waits as long as a busy one to look again.
        let cpu = self.cpu_mut(here);
        if pulled.is_some() || enough || cpu.clock.ticks() > cpu.next_balance {
            cpu.next_balance = next;
        }
        pulled
    }

    /// `rebalance_domains()`.
    fn look_in_intervals(
        &mut self,
        context: &mut Context<'_>,
        mut idle: bool,
    ) -> Option<(CpuId, Pull)> {
        let here = context.cpu();
        let now = self.cpu(here).clock.ticks();
        let mut next = u64::MAX;
        for domain in 0..self.cpu(here).domains.len() {
            let mut others_turn = false;
            if now >= self.due(here, domain, idle) {
                let level = self.cpu(here).domains[domain].level;
                let index = if idle { level.idle_idx } else { level.busy_idx };
                let found = self.search(context, (here, domain), index, false);
                self.cpu_mut(here).domains[domain].last_balance = now;
                others_turn = found.others_turn;
                match found.outcome {
                    Outcome::From(from, pull) => {
                        self.cpu_mut(here).next_balance = now + 1;
                        return Some((from, pull));
                    }
                    Outcome::Balanced { pinned } => self.was_balanced(here, domain, pinned),
                    Outcome::Failed(busiest) => self.pulled_nothing(context, busiest, domain),
                }
                if level.shares_core && !found.all_idle {
                    idle = false;
                }
            }
            next = next.min(self.due(here, domain, idle));
            if others_turn {
                break;
            }
        }
        self.cpu_mut(here).next_balance = next;
        None
    }

    /// When a domain is to be balanced next, in ticks.
    fn due(&self, cpu: CpuId, domain: usize, idle: bool) -> u64 {
        let (cpu, cpus) = (self.cpu(cpu), self.cpus.len() as u64);
        let domain = &cpu.domains[domain];
        let factor = if idle { 1 } else { BUSY_FACTOR };
        let most = cpu.clock.ticks_in(100 * cpus);
        domain.last_balance + cpu.clock.ticks_in(domain.interval * factor).min(most)
    }

    fn was_balanced(&mut self, cpu: CpuId, domain: usize, pinned: bool) {
        let domain = &mut self.cpu_mut(cpu).domains[domain];
        domain.failed = 0;
        domain.back_off(pinned);
    }

    /// Counts a failed attempt. After enough of them, the running task of the busiest CPU is pushed
    /// here (`active_load_balance()`). That CPU does it when it picks next: there is no migration
    /// thread to switch to and from.
    fn pulled_nothing(&mut self, context: &mut Context<'_>, busiest: CpuId, domain: usize) {
        let here = context.cpu();
        let state = &mut self.cpu_mut(here).domains[domain];
        state.failed += 1;
        let (failed, level) = (state.failed, state.level);
        let running = self.cpu(busiest).current;
        let Some(running) = running.filter(|_| failed > level.cache_nice_tries + 2) else {
            self.cpu_mut(here).domains[domain].interval = MIN_INTERVAL;
            return;
        };
        let movable = context.task(running).may_run_on(here)
            && self.steering.lets_move(running, busiest, here);
        let pushes = movable && self.cpu(busiest).push_to.is_none();
        if pushes {
            self.cpu_mut(busiest).push_to = Some(here);
            context.reschedule(busiest);
        }
        let state = &mut self.cpu_mut(here).domains[domain];
        if movable {
            state.failed = level.cache_nice_tries + 1;
        }
        match pushes || !movable {
            true => state.back_off(!movable),
            false => state.interval = MIN_INTERVAL,
        }
    }

    /// Looks at one domain. CPUs whose tasks may all not run here are left out, and it looks again.
    fn search(
        &mut self,
        context: &mut Context<'_>,
        (cpu, domain): (CpuId, usize),
        index: usize,
        newly_idle: bool,
    ) -> Found {
        let mut without = Vec::new();
        loop {
            let survey = self.survey(context, (cpu, domain), (index, newly_idle), &without);
            let found = |outcome| Found {
                outcome,
                all_idle: survey.all_idle,
                others_turn: survey.others_turn,
            };
            let pinned = !without.is_empty();
            let Some(busiest) = survey.busiest else {
                return found(Outcome::Balanced { pinned });
            };
            let (load, group) = (
                busiest.load,
                &self.cpu(cpu).domains[domain].groups[busiest.group],
            );
            let Some(from) = self.busiest_cpu(context, group, load, &without) else {
                return found(Outcome::Balanced { pinned });
            };
            if self.cpu(from).running <= 1 {
                return found(Outcome::Failed(from));
            }
            self.update_clock(context, from);
            let pull = Pull { domain, load };
            let offer = self.offer(context, from, pull);
            if !offer.tasks.is_empty() {
                return found(Outcome::From(from, pull));
            }
            if !offer.all_pinned {
                return found(Outcome::Failed(from));
            }
            without.push(from);
        }
    }

    /// What this CPU can pull from the queue of `from` (`move_tasks()`): real-time tasks, then
    /// those of each tree from its left.
    fn offer(&self, context: &mut Context<'_>, from: CpuId, pull: Pull) -> Offer {
        let here = context.cpu();
        let current = self.cpu(here).current;
        let mut taking = Taking {
            left: pull.load as i64,
            best: current.map_or(IDLE_PRIORITY, |task| self.tasks[task.index()].priority),
            domain: pull.domain,
            offer: Offer {
                tasks: Vec::new(),
                all_pinned: pull.load > 0,
            },
        };
        let real_time = self.cpu(from).realtime.to_balance();
        taking.left -= self.take(context, from, taking.left, real_time, &mut taking);
        for queue in self.leaves(from) {
            if taking.left <= 0 {
                break;
            }
            let Some(most) = self.most_of_queue(queue, here, &mut taking) else {
                continue;
            };
            let tree = self.queues[queue].tree.iter();
            let tasks = tree.filter_map(|entity| match self.entities[entity].what {
                What::Task(task) => Some(task),
                What::Group(_) => None,
            });
            let tasks = tasks.collect();
            taking.left -= self.take(context, from, most, tasks, &mut taking);
        }
        taking.offer
    }

    /// How much load may be taken from a queue: half of what a group has there more than here.
    /// `None` if it has less (`load_balance_fair()`).
    fn most_of_queue(&self, queue: QueueId, here: CpuId, taking: &mut Taking) -> Option<i64> {
        if !self.tunables.groups {
            return Some(taking.left);
        }
        let own = self.counterpart(queue, here);
        let more = self.queues[queue].weight as i64 - self.queues[own].weight as i64;
        if more <= 0 {
            return None;
        }
        let own = &self.queues[own];
        let best = own.current.or(own.tree.first().map(|(_, entity)| entity));
        taking.best = best.map_or(IDLE_PRIORITY, |entity| match self.entities[entity].what {
            What::Task(task) => self.tasks[task.index()].priority,
            What::Group(_) => IDLE_PRIORITY,
        });
        Some(taking.left.min(more / 2))
    }

    /// Adds tasks of `tasks` to the offer, up to the load `most`; returns how much that is
    /// (`balance_tasks()`).
    fn take(
        &self,
        context: &mut Context<'_>,
        from: CpuId,
        most: i64,
        tasks: Vec<TaskId>,
        taking: &mut Taking,
    ) -> i64 {
        let mut left = most;
        for task in tasks.into_iter().take(self.tunables.nr_migrate) {
            if left <= 0 {
                break;
            }
            let entity = &self.entities[self.entity_of(task)];
            context.touch(entity.node, Access::Read);
            let weight = entity.weight as i64;
            let priority = self.tasks[task.index()].priority;
            let too_heavy = weight / 2 > left + NICE_0 as i64 && priority >= taking.best;
            if too_heavy || !self.can_move(context, from, task, taking) {
                continue;
            }
            taking.offer.tasks.push(task);
            taking.best = taking.best.min(priority);
            left -= weight;
        }
        most - left
    }

    /// `can_migrate_task()`.
    fn can_move(
        &self,
        context: &Context<'_>,
        from: CpuId,
        task: TaskId,
        taking: &mut Taking,
    ) -> bool {
        let (here, view) = (context.cpu(), context.task(task));
        if !view.may_run_on(here) || !self.steering.lets_move(task, from, here) {
            return false;
        }
        taking.offer.all_pinned = false;
        let domain = &self.cpu(here).domains[taking.domain];
        let waits = view.on_cpu().is_none() && self.cpu(from).current != Some(task);
        waits && (!self.is_hot(task, from) || domain.failed > domain.level.cache_nice_tries)
    }

    /// Pulls what `look` has found, under the locks of both CPUs.
    pub(super) fn pull_from(&mut self, context: &mut Context<'_>, from: CpuId, when: Balance) {
        let here = context.cpu();
        let Some(pull) = self.cpu_mut(here).pull.take() else {
            return;
        };
        self.update_clock(context, here);
        self.update_clock(context, from);
        let offer = self.offer(context, from, pull);
        for task in &offer.tasks {
            self.migrate(context, *task, here);
        }
        if !offer.tasks.is_empty() {
            let domain = &mut self.cpu_mut(here).domains[pull.domain];
            domain.failed = 0;
            domain.interval = MIN_INTERVAL;
        } else if when != Balance::NewlyIdle {
            self.pulled_nothing(context, from, pull.domain);
        }
    }
}

/// How much is still to be taken, and what was.
struct Taking {
    left: i64,
    /// The best priority on the CPU that asks; a better task is taken however heavy it is.
    best: i32,
    domain: usize,
    offer: Offer,
}
