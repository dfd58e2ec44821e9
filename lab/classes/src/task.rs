//! What a task is to these classes: how it compares, and what it has left of its slice or its
//! reservation.

use warmq_kernel::{Alarm, Context, Policy};
use warmq_units::CpuId;

use crate::cbs::{Cbs, Charged};
use crate::entity::Times;
use crate::{Joining, Rank};

/// The class of a task, and its state there (`struct sched_rt_entity`, `struct sched_dl_entity`).
#[derive(Clone, Debug, Default)]
pub struct TaskClass {
    policy: Policy,
    /// Ticks that it has used of its slice of SCHED_RR.
    used: u64,
    /// Its reservation. It stays while it is of another class: a task gets no new runtime by coming
    /// back before its period is over.
    cbs: Option<Cbs>,
    /// The timer that ends its throttling.
    replenishment: Alarm,
}

impl TaskClass {
    /// It is of this policy from now on (`__setscheduler_params()`).
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
        if let Policy::Deadline(of) = policy {
            let times = Times::new(of.runtime, of.deadline, of.period);
            self.cbs
                .get_or_insert_with(|| Cbs::new(times))
                .set_times(times);
        }
    }

    /// Its policy.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// What it is compared by.
    pub fn rank(&self) -> Rank {
        match self.policy.real_time() {
            Some(priority) => Rank::of_priority(priority),
            None => self.reservation().map_or(Rank::Other, |cbs| cbs.rank()),
        }
    }

    /// Whether it is a real-time or deadline task.
    pub fn is_urgent(&self) -> bool {
        !self.policy.is_fair()
    }

    /// The reservation of a deadline task.
    fn reservation(&self) -> Option<Cbs> {
        self.cbs.filter(|_| self.is_deadline())
    }

    fn reservation_mut(&mut self) -> Option<&mut Cbs> {
        let is_deadline = self.is_deadline();
        self.cbs.as_mut().filter(|_| is_deadline)
    }

    fn is_deadline(&self) -> bool {
        matches!(self.policy, Policy::Deadline(_))
    }

    /// Whether it waits for its next period, in no queue.
    pub fn is_throttled(&self) -> bool {
        self.reservation().is_some_and(|cbs| cbs.is_throttled())
    }

    /// What is left of the runtime of a deadline task, in ns.
    pub fn left(&self) -> Option<i64> {
        self.reservation().map(|cbs| cbs.left())
    }

    /// It comes onto a queue, and may be throttled after that.
    pub fn joins(&mut self, now: i64, how: Joining) {
        if let Some(cbs) = self.reservation_mut() {
            cbs.joins(now, how);
        }
    }

    /// It ran for `ran` until `now`. True if it must leave its queue, and be queued anew unless it
    /// is throttled.
    pub fn charge(&mut self, now: i64, ran: i64) -> bool {
        let cbs = self.reservation_mut();
        cbs.is_some_and(|cbs| cbs.charge(now, ran) != Charged::GoesOn)
    }

    /// It gives up the rest of its runtime, if it has a reservation; it is to be charged next.
    pub fn yields(&mut self) -> bool {
        self.reservation_mut().map(Cbs::yields).is_some()
    }

    /// A tick of its time, of which a slice of SCHED_RR has `slice`. True if it has used up one
    /// (`task_tick_rt()`).
    pub fn tick(&mut self, slice: u64) -> bool {
        if !matches!(self.policy, Policy::RoundRobin(_)) {
            return false;
        }
        self.used = (self.used + 1) % slice;
        self.used == 0
    }

    /// Arms the timer that ends its throttling, or cancels it.
    pub fn arm(&mut self, context: &mut Context<'_>, cpu: CpuId, token: u64) {
        let due = self.reservation().and_then(|cbs| cbs.due());
        self.replenishment.set(context, due, (cpu, token));
    }

    /// That timer has expired. False if the task is not throttled any more.
    pub fn replenish(&mut self, now: i64) -> bool {
        self.replenishment.expired();
        self.reservation_mut().is_some_and(|cbs| cbs.timer(now))
    }
}

#[cfg(test)]
mod tests {
    use warmq_kernel::Reserved;
    use warmq_units::Duration;

    use super::*;

    const MS: i64 = 1_000_000;

    /// 4 ms in each 10 ms.
    fn deadline() -> Policy {
        let [runtime, period] = [4, 10].map(Duration::from_ms);
        Policy::Deadline(Reserved {
            runtime,
            deadline: period,
            period,
        })
    }

    #[test]
    fn a_slice_of_round_robin_is_whole_at_first_and_goes_on_over_changes() {
        let mut class = TaskClass::default();
        class.set_policy(Policy::RoundRobin(10));
        assert_eq!([0; 3].map(|_| class.tick(3)), [false, false, true]);
        assert!(!class.tick(3));
        class.set_policy(Policy::Fifo(10));
        assert_eq!([0; 3].map(|_| class.tick(3)), [false; 3]);
        class.set_policy(Policy::RoundRobin(20));
        assert_eq!([0; 2].map(|_| class.tick(3)), [false, true]);
    }

    #[test]
    fn who_comes_back_to_its_reservation_has_what_was_left() {
        let mut class = TaskClass::default();
        class.set_policy(deadline());
        class.joins(0, Joining::Changed);
        assert_eq!(class.rank(), Rank::Deadline(10 * MS));
        assert!(class.charge(5 * MS, 5 * MS) && class.is_throttled());
        class.set_policy(Policy::Other);
        assert!(!class.is_throttled() && !class.is_urgent());
        assert!(!class.charge(6 * MS, MS) && !class.yields() && !class.replenish(7 * MS));
        class.set_policy(deadline());
        assert_eq!((class.is_throttled(), class.left()), (true, Some(-MS)));
        assert!(class.replenish(10 * MS) && !class.replenish(11 * MS));
        assert_eq!(class.left(), Some(3 * MS));
    }
}
