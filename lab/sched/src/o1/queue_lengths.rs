//! Balancing of Linux 2.6.4, by the lengths of run queues (`find_busiest_queue()`,
//! `load_balance()`).
//!
//! A CPU looks at the queues of all others, and pulls from the longest that has at least two tasks:
//!
//! ```text
//! own       := tasks here; a busy CPU takes the greater of now and its previous look
//! busiest   := tasks there; a busy CPU takes the lesser
//! imbalance := busiest - own         a busy CPU goes on if 4 * imbalance >= busiest
//! pulled    := imbalance / 2         an idle CPU: one
//! ```
//!
//! An imbalance of one gives none, and counting down from none never ends: a busy CPU then pulls
//! whatever may move.

use warmq_kernel::{Balance, Context};
use warmq_machine::Access;
use warmq_units::CpuId;

use super::O1;
use super::balance::Movable;
use super::rules::Rules;

/// `BUSY_REBALANCE_TICK`, in ms: how often a busy CPU balances; an idle one does at each tick.
const BUSY_MS: u64 = 200;

/// Of whose tasks an imbalance must be a quarter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuarterOf {
    /// Those of the longest queue, as 2.6.4 has it.
    Busiest,
    /// The CPU's own, as the affinity paper says.
    Own,
}

/// What a busy CPU does where half of an imbalance is no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OddTask {
    /// It pulls all that may move, as 2.6.4 does.
    All,
    /// It pulls one.
    One,
}

/// What a CPU makes of lengths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    pub(super) quarter_of: QuarterOf,
    pub(super) odd_task: OddTask,
}

impl Lengths {
    /// How many tasks a CPU with `own` tasks pulls from one with `busiest`, at most; `None` if
    /// none.
    fn pulls(self, idle: bool, own: usize, busiest: usize) -> Option<usize> {
        let imbalance = busiest.checked_sub(own).filter(|_| busiest >= 2)?;
        let reference = match self.quarter_of {
            QuarterOf::Busiest => busiest,
            QuarterOf::Own => own,
        };
        match (idle, imbalance, self.odd_task) {
            (_, 0, _) => None,
            (true, ..) => Some(1),
            (false, ..) if 4 * imbalance < reference => None,
            (false, 1, OddTask::All) => Some(usize::MAX),
            (false, 1, OddTask::One) => Some(1),
            (false, ..) => Some(imbalance / 2),
        }
    }
}

/// Whether it is time for a CPU to look, in jiffies since the start.
fn is_due(rules: &Rules, jiffies: u64, idle: bool) -> bool {
    idle || jiffies.is_multiple_of(rules.interval(BUSY_MS))
}

impl O1 {
    /// Balances in a softirq if it is time (`rebalance_tick()`).
    pub(super) fn look_at_tick(&mut self, context: &mut Context<'_>, idle: bool) {
        let jiffies = self.clock.jiffies(context.now());
        if self.queues.len() > 1 && is_due(&self.rules, jiffies, idle) {
            context.raise_balance(context.cpu());
        }
    }

    /// The CPU with the longest queue, if this one should pull from there. How many tasks is kept
    /// for [`O1::pull_by_length`].
    pub(super) fn longest_queue(
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
        let idle = when != Balance::Tick;
        let mut own = self.queue(here).running();
        let mut longest: Option<(usize, CpuId)> = None;
        for cpu in (0..context.cpus()).map(CpuId) {
            let now = self.queue(cpu).running();
            let seen = std::mem::replace(&mut self.queue_mut(here).lengths_seen[cpu.index()], now);
            if cpu == here {
                own = if idle { now } else { now.max(seen) };
            } else if context.is_online(cpu) {
                let length = if idle { now } else { now.min(seen) };
                if longest.is_none_or(|(most, _)| length > most) {
                    longest = Some((length, cpu));
                }
            }
        }
        let (length, from) = longest?;
        let tasks = self.options.lengths.pulls(idle, own, length)?;
        self.queue_mut(here).pull.tasks = tasks;
        Some(from)
    }

    /// Pulls tasks from `from`, under the locks of both queues, unless that is no longer than this
    /// one by now. An idle CPU takes also what is cache-hot.
    pub(super) fn pull_by_length(&mut self, context: &mut Context<'_>, from: CpuId, when: Balance) {
        let here = context.cpu();
        if self.queue(from).running() <= self.queue(here).running() {
            return;
        }
        let movable = Movable {
            from,
            to: here,
            cache_hot: when != Balance::Tick,
        };
        let most = self.queue(here).pull.tasks;
        self.move_tasks(context, movable, most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: Lengths = Lengths {
        quarter_of: QuarterOf::Busiest,
        odd_task: OddTask::All,
    };

    /// Decision cases 7 and 8 of the specification.
    #[test]
    fn how_many_tasks_are_pulled() {
        let fixed = Lengths {
            odd_task: OddTask::One,
            ..SOURCE
        };
        let paper = Lengths {
            quarter_of: QuarterOf::Own,
            ..SOURCE
        };
        let all = Some(usize::MAX);
        let table = [
            ("7: a fifth", SOURCE, false, 5, 4, None),
            ("7: a third", SOURCE, false, 6, 4, Some(1)),
            ("7: most", SOURCE, false, 8, 2, Some(3)),
            ("7: one more", SOURCE, false, 4, 3, all),
            ("7: one more", SOURCE, false, 2, 1, all),
            ("7: one more, fixed", fixed, false, 4, 3, Some(1)),
            ("7: one more, fixed", fixed, false, 2, 1, Some(1)),
            ("the paper's 25 %", paper, false, 5, 4, all),
            ("less than the paper's", paper, false, 11, 9, None),
            ("equal", SOURCE, false, 4, 4, None),
            ("8: one waits nowhere", SOURCE, true, 1, 0, None),
            ("8: one of two", SOURCE, true, 2, 0, Some(1)),
            ("8: one of five", SOURCE, true, 5, 0, Some(1)),
        ];
        for (case, lengths, idle, busiest, own, pulled) in table {
            assert_eq!(lengths.pulls(idle, own, busiest), pulled, "{case}");
        }
    }

    #[test]
    fn a_busy_cpu_looks_every_200_ms() {
        let rules = Rules::new(
            super::super::release::Release::V2_6_4,
            warmq_units::Duration::from_ms(1),
        );
        let looks = |idle| {
            (1..=1_000)
                .filter(|jiffy| is_due(&rules, *jiffy, idle))
                .count()
        };
        assert_eq!((looks(false), looks(true)), (5, 1_000));
    }
}
