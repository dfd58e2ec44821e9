//! Balancing: a CPU pulls tasks from the busiest CPU of the busiest group (`rebalance_tick()`,
//! `load_balance()`, `load_balance_newidle()`).

use warmq_kernel::{Balance, Context};
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use crate::fair::domains::{BUSY_FACTOR, MIN_INTERVAL};

use super::O1;
use super::domains::power;
use super::queue::{LOAD_SCALE, Pull};
use super::release::Release;
use super::rules::Rules;

/// Between which queues tasks may move, and which.
#[derive(Clone, Copy, Debug)]
pub(super) struct Movable {
    pub(super) from: CpuId,
    pub(super) to: CpuId,
    /// Also those that left their CPU a moment ago.
    pub(super) cache_hot: bool,
}

/// What came of an attempt to move tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) tasks: usize,
    /// No task may run on the CPU that pulls.
    pub(super) all_pinned: bool,
}

/// The jiffy in which `cpu` of `cpus` is said to have balanced last when time starts: CPUs balance
/// in turn (`CPU_OFFSET`), as they do on a machine that has been up for long.
pub(super) fn first_balance(rules: &Rules, cpu: CpuId, cpus: u16) -> u64 {
    let busy = rules.interval(MIN_INTERVAL * BUSY_FACTOR);
    offset(rules, cpu, cpus) / busy * busy
}

/// By how many jiffies `cpu` is ahead of others in balancing.
fn offset(rules: &Rules, cpu: CpuId, cpus: u16) -> u64 {
    rules.hz() * u64::from(cpu.0) / u64::from(cpus.max(1))
}

/// The load of a group of CPUs, for its power.
#[derive(Clone, Copy, Debug)]
struct Group {
    load: u64,
    power: u64,
}

/// How many tasks the group `own` should pull from the busiest, where `average` is the mean of all
/// loads; `None` if it is to pull none (`find_busiest_group()`).
fn imbalance(own: Group, max: Group, average: u64, imbalance_pct: u64) -> Option<usize> {
    let balanced = own.load >= max.load || max.load <= LOAD_SCALE || own.load >= average;
    if balanced || 100 * max.load <= imbalance_pct * own.load {
        return None;
    }
    let most = (max.load.saturating_sub(average)).min(max.load - LOAD_SCALE);
    let moved = (most * max.power).min((average - own.load) * own.power) / LOAD_SCALE;
    match moved / LOAD_SCALE {
        // Two tasks more than here: one moves though that is more than the average allows.
        0 if max.load - own.load >= 2 * LOAD_SCALE => Some(1),
        0 => more_gets_done(own, max).then_some(1),
        tasks => Some(tasks as usize),
    }
}

/// Whether the groups do more after one task has moved: a group does as much as it has load for, up
/// to its power. Where all groups have the power of one CPU, moving one would only turn the
/// imbalance round.
fn more_gets_done(own: Group, max: Group) -> bool {
    let done = |group: Group, load: u64| group.power * load.min(LOAD_SCALE);
    let now = done(max, max.load) + done(own, own.load);
    let leaves = LOAD_SCALE * LOAD_SCALE / max.power;
    let comes = LOAD_SCALE.min(max.load * max.power / LOAD_SCALE) * LOAD_SCALE / own.power;
    let then = done(max, max.load.saturating_sub(leaves)) + done(own, own.load + comes);
    then / LOAD_SCALE > now / LOAD_SCALE
}

/// What a look at a domain says.
struct Survey {
    /// The busiest CPU of the busiest group, and how many tasks to pull from it.
    busiest: Option<(CpuId, usize)>,
    /// All CPUs of the domain are idle.
    all_idle: bool,
}

impl O1 {
    /// Averages the load, and balances in a softirq if it is time.
    pub(super) fn rebalance_tick(&mut self, context: &mut Context<'_>, idle: bool) {
        if self.queues.len() == 1 {
            return;
        }
        let here = context.cpu();
        let (cpus, rules) = (context.cpus(), self.rules);
        let jiffies = self.clock.jiffies(context.now()) + offset(&rules, here, cpus);
        let queue = self.queue_mut(here);
        queue.average_load();
        let factor = if idle { 1 } else { BUSY_FACTOR };
        let mut any = false;
        for domain in &mut queue.domains {
            let interval = rules.interval(domain.interval * factor);
            if jiffies.saturating_sub(domain.last_balance) >= interval {
                domain.last_balance += interval;
                domain.due = true;
            }
            any |= domain.due;
        }
        if any {
            context.raise_balance(here);
        }
        context.touch(self.queue(here).line, Access::Write);
    }

    /// The CPU from which this one should pull, if any. How many tasks is kept for
    /// [`O1::pull_tasks`]. Domains above the one that is pulled in come at the next tick.
    pub(super) fn find_busiest(
        &mut self,
        context: &mut Context<'_>,
        when: Balance,
    ) -> Option<CpuId> {
        let here = context.cpu();
        if self.queues.len() == 1 || !context.is_online(here) {
            return None;
        }
        // A thread whose sibling is busy does not count as idle above its core.
        let mut when = when;
        for domain in 0..self.queue(here).domains.len() {
            let due = std::mem::take(&mut self.queue_mut(here).domains[domain].due);
            if !due && when != Balance::NewlyIdle {
                continue;
            }
            let survey = self.survey(context, (here, domain), when);
            if let Some((from, tasks)) = survey.busiest {
                self.queue_mut(here).pull = Pull { domain, tasks };
                return Some(from);
            }
            let shares_core = self.queue(here).domains[domain].level.shares_core;
            let core_is_busy = shares_core && !survey.all_idle;
            if core_is_busy && when == Balance::NewlyIdle {
                return None;
            }
            self.balanced((here, domain), when, false);
            if core_is_busy {
                when = Balance::Tick;
            }
        }
        None
    }

    fn survey(
        &self,
        context: &mut Context<'_>,
        (here, domain): (CpuId, usize),
        when: Balance,
    ) -> Survey {
        let domain = &self.queue(here).domains[domain];
        let lines = domain.span.iter().map(|cpu| self.queue(*cpu).line);
        context.touch_all(lines, Access::Read);
        let index = match when {
            Balance::Tick => domain.level.busy_idx,
            Balance::Idle => domain.level.idle_idx,
            Balance::NewlyIdle => domain.level.newidle_idx,
        };
        let online = |cpu: &CpuId| context.is_online(*cpu);
        let (mut total, mut powers) = (0, 0);
        let mut groups = domain.groups.iter().filter_map(|cpus| {
            let cpus: Vec<CpuId> = cpus.iter().copied().filter(online).collect();
            if cpus.is_empty() {
                return None;
            }
            let own = cpus.contains(&here);
            let load = |cpu: &CpuId| match own {
                true => self.queue(*cpu).target_load(index),
                false => self.queue(*cpu).source_load(index),
            };
            let sum: u64 = cpus.iter().map(load).sum();
            let power = power(cpus.len());
            (total, powers) = (total + sum, powers + power);
            let load = sum * LOAD_SCALE / power;
            Some((Group { load, power }, cpus))
        });
        let own = groups.next();
        let mut busiest: Option<(Group, Vec<CpuId>)> = None;
        for (group, cpus) in groups.filter(|(group, _)| group.load > 0) {
            if busiest
                .as_ref()
                .is_none_or(|(max, _)| group.load > max.load)
            {
                busiest = Some((group, cpus));
            }
        }
        let pct = domain.level.imbalance_pct;
        let average = total * LOAD_SCALE / powers.max(1);
        let from = own.zip(busiest).and_then(|((own, _), (max, cpus))| {
            let tasks = imbalance(own, max, average, pct)?;
            Some((self.busiest_of(&cpus)?, tasks))
        });
        let mut all = domain.span.iter().filter(|cpu| online(cpu));
        Survey {
            busiest: from,
            all_idle: all.all(|cpu| self.queue(*cpu).running() == 0),
        }
    }

    /// The first of `cpus` with most load (`find_busiest_queue()`).
    fn busiest_of(&self, cpus: &[CpuId]) -> Option<CpuId> {
        let load = |cpu: CpuId| self.queue(cpu).source_load(0);
        let cpus = cpus.iter().copied().filter(|cpu| load(*cpu) > 0);
        cpus.rev().max_by_key(|cpu| load(*cpu))
    }

    /// The attempt of `here` found nothing to do, or only tasks that are bound.
    fn balanced(&mut self, (here, domain): (CpuId, usize), when: Balance, all_pinned: bool) {
        self.queue_mut(here).domains[domain].failed = 0;
        if when != Balance::NewlyIdle {
            self.queue_mut(here).domains[domain].back_off(all_pinned);
        }
    }

    /// Pulls tasks from `from`, under the locks of both queues.
    pub(super) fn pull_tasks(&mut self, context: &mut Context<'_>, from: CpuId, when: Balance) {
        let here = context.cpu();
        let Pull { domain, tasks } = self.queue(here).pull;
        let state = &self.queue(here).domains[domain];
        let movable = Movable {
            from,
            to: here,
            cache_hot: state.failed > state.level.cache_nice_tries,
        };
        let moved = match self.queue(from).running() {
            0 | 1 => Moved::NOTHING,
            _ => self.move_tasks(context, movable, tasks),
        };
        if moved.tasks > 0 {
            self.queue_mut(here).domains[domain].failed = 0;
        }
        if when == Balance::NewlyIdle {
            return;
        }
        if moved.all_pinned {
            self.balanced((here, domain), when, true);
        } else if moved.tasks == 0 {
            self.attempt_failed(context, domain, from);
        } else {
            self.queue_mut(here).domains[domain].interval = MIN_INTERVAL;
        }
    }

    /// Nothing could be moved though `from` is busier. After some attempts its running task is
    /// pushed here.
    fn attempt_failed(&mut self, context: &mut Context<'_>, domain: usize, from: CpuId) {
        let here = context.cpu();
        let state = &mut self.queue_mut(here).domains[domain];
        state.failed += 1;
        state.interval = MIN_INTERVAL;
        let tries = state.level.cache_nice_tries;
        if state.failed <= tries + 2 {
            return;
        }
        let running = context.running_on(from);
        let stays = |running: TaskId| {
            !context.task(running).may_run_on(here) || !self.steering.lets_move(running, from, here)
        };
        if running.is_some_and(stays) {
            return self.queue_mut(here).domains[domain].back_off(true);
        }
        self.queue_mut(here).domains[domain].failed = tries + 1;
        if self.queue(from).push_to.is_none() {
            self.queue_mut(from).push_to = Some(here);
            self.queue_mut(here).domains[domain].back_off(false);
            context.reschedule(from);
        }
    }

    /// Moves up to `most` tasks: those of the expired array first, in each array the best list
    /// first, each list from its tail (`move_tasks()`).
    pub(super) fn move_tasks(
        &mut self,
        context: &mut Context<'_>,
        movable: Movable,
        most: usize,
    ) -> Moved {
        let queue = self.queue(movable.from);
        let arrays = [queue.expired(), queue.active];
        let arrays = arrays.into_iter();
        let tasks = arrays.flat_map(|array| queue.arrays[array].iter_from_tails());
        let tasks: Vec<TaskId> = tasks.collect();
        let mut moved = Moved {
            tasks: 0,
            all_pinned: true,
        };
        for task in tasks {
            if moved.tasks == most {
                break;
            }
            context.touch(self.task(task).list_line(), Access::Read);
            let stays = !self.steering.lets_move(task, movable.from, movable.to);
            if stays || !context.task(task).may_run_on(movable.to) {
                continue;
            }
            moved.all_pinned = false;
            if self.may_move(context, task, movable) {
                self.move_to(context, task, movable.to);
                moved.tasks += 1;
            }
        }
        moved
    }

    /// Whether `task`, whose affinity allows it, may move: it has no CPU, and has been off its last
    /// one for long enough (`can_migrate_task()`); in 2.6.4, it was neither queued nor taken off a
    /// CPU lately.
    fn may_move(&self, context: &Context<'_>, task: TaskId, movable: Movable) -> bool {
        let runs = context.task(task).on_cpu().is_some();
        let since_tick = self.queue(movable.from).ticked_at;
        let state = self.task(task);
        let warm_for = self.options.cache_hot_time;
        let is_cold = match self.rules.release {
            Release::V2_6_4 => since_tick.saturating_sub(state.timestamp) > warm_for,
            Release::V2_6_16 => since_tick.saturating_sub(state.last_ran) >= warm_for,
        };
        !runs && (movable.cache_hot || is_cold)
    }
}

impl Moved {
    /// No attempt was made.
    const NOTHING: Moved = Moved {
        tasks: 0,
        all_pinned: false,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_many_tasks_an_imbalance_is() {
        let table = [
            ("two against one", vec![1, 2], None),
            ("two against none", vec![0, 2], Some(1)),
            ("one against none", vec![0, 1], None),
            ("five against one", vec![1, 5], Some(2)),
            ("three against one", vec![1, 3], Some(1)),
            ("four against three: less than 25 % more", vec![3, 4], None),
            ("two on one of four", vec![0, 2, 0, 0], Some(1)),
            ("above the average", vec![3, 9, 0, 0], None),
        ];
        for (case, tasks, expected) in table {
            let loads: Vec<u64> = tasks.iter().map(|tasks| tasks * LOAD_SCALE).collect();
            let average = loads.iter().sum::<u64>() / loads.len() as u64;
            let max = loads.iter().max().expect("some loads");
            let alone = |load| Group {
                load,
                power: power(1),
            };
            let moved = imbalance(alone(loads[0]), alone(*max), average, 125);
            assert_eq!(moved, expected, "{case}");
        }
    }

    /// Two tasks on the two threads of a core, and an idle core: one is to move, as more gets done
    /// then.
    #[test]
    fn a_core_with_two_busy_threads_gives_one_away() {
        let core = |tasks: u64| Group {
            load: tasks * LOAD_SCALE * LOAD_SCALE / power(2),
            power: power(2),
        };
        let average =
            |one: u64, other: u64| (one + other) * LOAD_SCALE * LOAD_SCALE / (2 * power(2));
        for (own, max, expected) in [(0, 2, Some(1)), (0, 1, None), (1, 2, None), (2, 2, None)] {
            let moved = imbalance(core(own), core(max), average(own, max), 125);
            assert_eq!(moved, expected, "{own} and {max}");
        }
    }
}
