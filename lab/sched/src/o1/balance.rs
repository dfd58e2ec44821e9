//! Balancing: a CPU pulls tasks from the busiest one (`rebalance_tick()`, `load_balance()`,
//! `load_balance_newidle()`).
//!
//! The parameters are those of `SD_CPU_INIT` in 2.6.16.

use warmq_kernel::{Balance, Context};
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use super::O1;
use super::queue::{Balancing, LOAD_SCALE};
use super::release::Release;
use super::rules::Rules;

/// The intervals at which an idle CPU balances, in ms (`min_interval`, `max_interval`).
const MIN_INTERVAL_MS: u64 = 1;
const MAX_INTERVAL_MS: u64 = 4;
/// The longest interval while all tasks elsewhere are bound (`MAX_PINNED_INTERVAL`).
const MAX_PINNED_INTERVAL_MS: u64 = 512;
/// A busy CPU balances so many times less often (`busy_factor`).
const BUSY_FACTOR: u64 = 64;
/// By how much another CPU must be busier, in percent (`imbalance_pct`).
const IMBALANCE: u64 = 125;
/// Attempts that must have failed until tasks with warm caches move too (`cache_nice_tries`).
const CACHE_NICE_TRIES: u32 = 1;

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
    let busy = rules.interval(MIN_INTERVAL_MS * BUSY_FACTOR);
    offset(rules, cpu, cpus) / busy * busy
}

/// By how many jiffies `cpu` is ahead of others in balancing.
fn offset(rules: &Rules, cpu: CpuId, cpus: u16) -> u64 {
    rules.hz() * u64::from(cpu.0) / u64::from(cpus.max(1))
}

/// How many tasks a CPU of load `own` should pull from the busiest, of load `max`, where `average`
/// is the mean of all loads; `None` if it is to pull none (`find_busiest_group()`, groups of one
/// CPU).
fn imbalance(own: u64, max: u64, average: u64) -> Option<usize> {
    let balanced = own >= max || max <= LOAD_SCALE || own >= average;
    if balanced || 100 * max <= IMBALANCE * own {
        return None;
    }
    let most = (max.saturating_sub(average)).min(max - LOAD_SCALE);
    match most.min(average - own) / LOAD_SCALE {
        // Two tasks more than here: one moves though that is more than the average allows.
        0 if max - own >= 2 * LOAD_SCALE => Some(1),
        // Moving one would only turn the imbalance round.
        0 => None,
        tasks => Some(tasks as usize),
    }
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
        let interval = rules.interval(queue.balancing.interval_ms * factor);
        if jiffies.saturating_sub(queue.balancing.last) >= interval {
            queue.balancing.last += interval;
            context.raise_balance(here);
        }
        context.touch(self.queue(here).line, Access::Write);
    }

    /// The CPU from which this one should pull, if any. How many tasks is kept for
    /// [`O1::pull_tasks`].
    pub(super) fn find_busiest(
        &mut self,
        context: &mut Context<'_>,
        when: Balance,
    ) -> Option<CpuId> {
        let here = context.cpu();
        if self.queues.len() == 1 || !context.is_online(here) {
            return None;
        }
        let lines: Vec<_> = self.queues.iter().map(|queue| queue.line).collect();
        context.touch_all(lines, Access::Read);
        let found = self.busiest(context, here, when);
        match found {
            Some((from, tasks)) => {
                self.queue_mut(here).balancing.imbalance = tasks;
                Some(from)
            }
            None => {
                self.balanced(here, when, false);
                None
            }
        }
    }

    /// The busiest other CPU, and how many tasks to pull from it.
    fn busiest(&self, context: &Context<'_>, here: CpuId, when: Balance) -> Option<(CpuId, usize)> {
        // `busy_idx`, `idle_idx` and `newidle_idx`.
        let average_of = match when {
            Balance::Tick | Balance::NewlyIdle => 2,
            Balance::Idle => 1,
        };
        let own = self.queue(here).target_load(average_of);
        let (mut total, mut online) = (own, 1);
        let mut busiest: Option<(u64, CpuId)> = None;
        let others = (0..context.cpus()).map(CpuId).filter(|cpu| *cpu != here);
        for cpu in others.filter(|cpu| context.is_online(*cpu)) {
            let load = self.queue(cpu).source_load(average_of);
            total += load;
            online += 1;
            if busiest.is_none_or(|(max, _)| load > max) {
                busiest = Some((load, cpu));
            }
        }
        let (max, from) = busiest?;
        let tasks = imbalance(own, max, total / online)?;
        Some((from, tasks))
    }

    /// The attempt of `here` found nothing to do, or only tasks that are bound.
    fn balanced(&mut self, here: CpuId, when: Balance, all_pinned: bool) {
        let balancing = &mut self.queue_mut(here).balancing;
        balancing.failed = 0;
        if when != Balance::NewlyIdle {
            self.back_off(here, all_pinned);
        }
    }

    /// Doubles the interval at which `here` balances, up to the longest.
    fn back_off(&mut self, here: CpuId, all_pinned: bool) {
        let balancing = &mut self.queue_mut(here).balancing;
        let most = match all_pinned {
            true => MAX_PINNED_INTERVAL_MS,
            false => MAX_INTERVAL_MS,
        };
        if balancing.interval_ms < most {
            balancing.interval_ms *= 2;
        }
    }

    /// Pulls tasks from `from`, under the locks of both queues.
    pub(super) fn pull_tasks(&mut self, context: &mut Context<'_>, from: CpuId, when: Balance) {
        let here = context.cpu();
        let Balancing {
            imbalance, failed, ..
        } = self.queue(here).balancing;
        let movable = Movable {
            from,
            to: here,
            cache_hot: failed > CACHE_NICE_TRIES,
        };
        let moved = match self.queue(from).running() {
            0 | 1 => Moved::NOTHING,
            _ => self.move_tasks(context, movable, imbalance),
        };
        if moved.tasks > 0 {
            self.queue_mut(here).balancing.failed = 0;
        }
        if when == Balance::NewlyIdle {
            return;
        }
        if moved.all_pinned {
            self.balanced(here, when, true);
        } else if moved.tasks == 0 {
            self.attempt_failed(context, from);
        } else {
            self.queue_mut(here).balancing.interval_ms = MIN_INTERVAL_MS;
        }
    }

    /// Nothing could be moved though `from` is busier. After some attempts its running task is
    /// pushed here.
    fn attempt_failed(&mut self, context: &mut Context<'_>, from: CpuId) {
        let here = context.cpu();
        let balancing = &mut self.queue_mut(here).balancing;
        balancing.failed += 1;
        balancing.interval_ms = MIN_INTERVAL_MS;
        if balancing.failed <= CACHE_NICE_TRIES + 2 {
            return;
        }
        let running = context.running_on(from);
        let stays = |running: TaskId| {
            !context.task(running).may_run_on(here) || !self.steering.lets_move(running, from, here)
        };
        if running.is_some_and(stays) {
            return self.back_off(here, true);
        }
        self.queue_mut(here).balancing.failed = CACHE_NICE_TRIES + 1;
        if self.queue(from).push_to.is_none() {
            self.queue_mut(from).push_to = Some(here);
            self.back_off(here, false);
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
        let tasks = arrays
            .into_iter()
            .flat_map(|array| queue.arrays[array].iter_from_tails());
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
    /// one for long enough (`can_migrate_task()`); in 2.6.4, it was neither queued nor taken off a CPU
    /// lately.
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
            assert_eq!(imbalance(loads[0], *max, average), expected, "{case}");
        }
    }
}
