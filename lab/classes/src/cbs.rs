//! A task of SCHED_DEADLINE and its reservation (`update_curr_dl()`, `enqueue_dl_entity()`,
//! `dl_task_timer()`).
//!
//! ```text
//!     it wakes            charge.. charge            timer
//!     |-- runs before later deadlines --|-- throttled --|-- runs ...
//!     period begins                     left <= 0       next period begins
//! ```
//!
//! This is arithmetic only: who calls it queues the task by [`Cbs::rank`] while it is not
//! [throttled](Cbs::is_throttled), and arms a timer for [`Cbs::due`]. Times are those of the CPU's
//! clock, in ns.
//!
//! Different from the kernel: a runtime does not scale with frequency; unused bandwidth is not
//! reclaimed (`SCHED_FLAG_RECLAIM`); arming the timer takes no time.

use crate::Rank;
use crate::entity::{Entity, Times};

/// What a charge did to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charged {
    /// It has runtime left, or was throttled before.
    GoesOn,
    /// It must leave its queue until the timer expires.
    Throttled,
    /// Its next period has begun: it must be queued anew, by its new deadline.
    Postponed,
}

/// How a task comes onto the queue of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Joining {
    /// It slept (`ENQUEUE_WAKEUP`).
    Woken,
    /// It is new, or has become one of this class or of other times (`ENQUEUE_MOVE`).
    #[default]
    Changed,
    /// It waited on another CPU.
    Moved,
}

/// The reservation of a task.
///
/// Invariant: `due` is set while it is throttled, and only then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cbs {
    entity: Entity,
    due: Option<i64>,
    /// It gave up the rest of its runtime (`dl_yielded`).
    yielded: bool,
}

impl Cbs {
    /// One that has not begun; no time is 0.
    pub fn new(times: Times) -> Cbs {
        Cbs {
            entity: Entity::new(times),
            due: None,
            yielded: false,
        }
    }

    /// Another reservation, which counts from the next period on (`__setparam_dl()`).
    pub fn set_times(&mut self, times: Times) {
        self.entity.times = times;
    }

    /// What it is compared by.
    pub fn rank(&self) -> Rank {
        Rank::Deadline(self.entity.deadline)
    }

    /// Whether it has to wait for its next period.
    pub fn is_throttled(&self) -> bool {
        self.due.is_some()
    }

    /// When its timer is to expire, if one is to be armed.
    pub fn due(&self) -> Option<i64> {
        self.due
    }

    /// What is left of its runtime, in ns.
    pub fn left(&self) -> i64 {
        self.entity.left
    }

    /// The task becomes runnable (`enqueue_dl_entity()`). It may be throttled after that.
    pub fn joins(&mut self, now: i64, how: Joining) {
        if self.due.is_some_and(|due| due <= now) {
            return self.replenish(now);
        }
        self.hold_if_constrained(now);
        if self.is_throttled() {
            return;
        }
        match (how, self.entity.has_passed(now)) {
            (Joining::Woken | Joining::Changed, true) => self.entity.begin_period(now),
            (Joining::Woken, false) => self.update(now),
            (Joining::Changed, false) | (Joining::Moved, _) => {}
        }
    }

    /// `update_dl_entity()` before the deadline.
    fn update(&mut self, now: i64) {
        let Times {
            deadline, period, ..
        } = self.entity.times;
        match self.entity.overflows(now) {
            true if deadline < period => self.entity.revise(now),
            true => self.entity.begin_period(now),
            false => {}
        }
    }

    /// A task whose deadline is before the end of its period has nothing in between
    /// (`dl_check_constrained_dl()`).
    fn hold_if_constrained(&mut self, now: i64) {
        let next = self.entity.next_period();
        if !self.is_throttled() && self.entity.has_passed(now) && now < next {
            self.due = Some(next);
            self.entity.left = self.entity.left.min(0);
        }
    }

    /// The task ran for `ran` until `now` (`update_curr_dl_se()`).
    pub fn charge(&mut self, now: i64, ran: i64) -> Charged {
        if self.is_throttled() {
            return Charged::GoesOn;
        }
        self.entity.left -= ran;
        if self.entity.left > 0 && !self.yielded {
            return Charged::GoesOn;
        }
        if self.entity.can_wait(now) {
            self.due = Some(self.entity.next_period());
            return Charged::Throttled;
        }
        self.replenish(now);
        Charged::Postponed
    }

    /// The task gives up the rest of its runtime (`yield_task_dl()`); it is to be charged next.
    pub fn yields(&mut self) {
        self.yielded = true;
    }

    /// Its timer has expired (`dl_task_timer()`). False if it was not throttled any more.
    pub fn timer(&mut self, now: i64) -> bool {
        let was_throttled = self.is_throttled();
        if was_throttled {
            self.replenish(now);
        }
        was_throttled
    }

    fn replenish(&mut self, now: i64) {
        if std::mem::take(&mut self.yielded) {
            self.entity.left = self.entity.left.min(0);
        }
        self.due = None;
        self.entity.replenish(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// 4 ms in 10 ms, within `deadline` ms, with a period that begins at 0.
    fn begun(deadline: i64) -> Cbs {
        let mut cbs = Cbs::new(Times {
            runtime: 4 * MS,
            deadline: deadline * MS,
            period: 10 * MS,
        });
        cbs.joins(0, Joining::Changed);
        cbs
    }

    fn state(cbs: &Cbs) -> (i64, i64, Option<i64>) {
        let Entity { left, deadline, .. } = cbs.entity;
        (left / MS, deadline / MS, cbs.due.map(|due| due / MS))
    }

    /// A task that used `used` ms, and slept, wakes at `at` ms: left, deadline, until when it is
    /// throttled.
    #[test]
    fn what_a_wakeup_makes_of_a_reservation() {
        let table = [
            // 2 ms in 7 ms are less than 4 in 10: it goes on with what it has.
            ((10, 2, 3), (2, 10, None)),
            // 2 ms in 5 ms are just that, but in units of 2^10 ns, which are cut off, more.
            ((10, 2, 5), (4, 15, None)),
            // 2 ms in 4 ms are more: a new period.
            ((10, 2, 6), (4, 16, None)),
            ((10, 2, 10), (4, 20, None)),
            ((10, 2, 30), (4, 40, None)),
            // With a deadline of 8 ms a share of it: 4/8 of 2 ms.
            ((8, 2, 6), (1, 8, None)),
            ((8, 2, 4), (2, 8, None)),
            // Between deadline and period there is nothing.
            ((8, 2, 9), (0, 8, Some(10))),
            ((8, 2, 10), (4, 18, None)),
        ];
        for ((deadline, used, at), expected) in table {
            let mut cbs = begun(deadline);
            assert_eq!(cbs.charge(used * MS, used * MS), Charged::GoesOn);
            cbs.joins(at * MS, Joining::Woken);
            assert_eq!(state(&cbs), expected, "{deadline} {used} {at}");
        }
    }

    #[test]
    fn who_has_used_up_its_runtime_waits_for_its_next_period_and_pays_back() {
        let mut cbs = begun(10);
        assert_eq!(cbs.charge(5 * MS, 5 * MS), Charged::Throttled);
        assert_eq!(cbs.due(), Some(10 * MS));
        assert_eq!(cbs.charge(6 * MS, MS), Charged::GoesOn, "it is out");
        cbs.joins(7 * MS, Joining::Woken);
        assert!(cbs.is_throttled(), "a wakeup changes nothing");
        assert!(cbs.timer(10 * MS));
        assert_eq!(state(&cbs), (3, 20, None));
        assert!(!cbs.timer(11 * MS));
    }

    #[test]
    fn a_constrained_deadline_is_replenished_when_its_period_ends() {
        let mut cbs = begun(5);
        assert_eq!(cbs.charge(4 * MS, 4 * MS), Charged::Throttled);
        assert_eq!(cbs.due(), Some(10 * MS));
        assert!(cbs.timer(10 * MS));
        assert_eq!(state(&cbs), (4, 15, None));
    }

    #[test]
    fn who_yields_has_nothing_until_its_next_period() {
        let mut cbs = begun(10);
        cbs.yields();
        assert_eq!(cbs.charge(MS, MS), Charged::Throttled);
        assert_eq!(state(&cbs), (3, 10, Some(10)));
        assert!(cbs.timer(10 * MS));
        assert_eq!(state(&cbs), (4, 20, None), "3 ms are lost");
    }

    #[test]
    fn where_the_next_period_has_begun_only_the_deadline_moves() {
        let mut cbs = begun(10);
        assert_eq!(cbs.charge(12 * MS, 4 * MS), Charged::Postponed);
        assert_eq!(state(&cbs), (4, 20, None));
        let mut late = begun(10);
        assert_eq!(late.charge(35 * MS, 4 * MS), Charged::Postponed);
        assert_eq!(state(&late), (4, 45, None), "it lags too much");
    }

    #[test]
    fn in_no_span_of_periods_does_it_run_more_than_its_share() {
        // Computes whenever it may, and is charged at ticks of 3 ms, which overrun its runtime.
        let mut cbs = begun(10);
        let (mut now, mut ran) = (0, 0);
        while now < 1_000 * MS {
            let tick = now - now % (3 * MS) + 3 * MS;
            match cbs.due() {
                None => {
                    ran += tick - now;
                    cbs.charge(tick, tick - now);
                    now = tick;
                }
                Some(due) => {
                    now = due;
                    assert!(cbs.timer(now));
                }
            }
        }
        assert!((390 * MS..=406 * MS).contains(&ran), "{ran}");
    }
}
