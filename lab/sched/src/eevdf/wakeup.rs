//! Whether a woken task preempts the running one (`wakeup_preempt()`,
//! `check_preempt_wakeup_fair()`).

use warmq_kernel::Policy;
use warmq_units::{CpuId, TaskId};

use crate::fair::tree::EntityId;

use super::effects::Urgency;
use super::queueing::Leaving;
use super::rules::WakeupTest;
use super::state::{State, What};

/// How long the running entity must have had the CPU for a synchronous wakeup to preempt it by its
/// deadline, in ns: less if a CPU was selected for the woken task.
const SYNC_RUN: i64 = 500_000;
const SYNC_RUN_SELECTED: i64 = SYNC_RUN / 4;

/// What is known of a wakeup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Woken {
    /// The task was just created (`WF_FORK`).
    pub(super) is_new: bool,
    /// The waker is about to sleep (`WF_SYNC`).
    pub(super) sync: bool,
    /// It had to be asked where the task should run (`WF_RQ_SELECTED`).
    pub(super) selected: bool,
}

/// A task that was moved or changed, and neither woken nor created.
pub(super) const MOVED: Woken = Woken {
    is_new: false,
    sync: false,
    selected: false,
};

impl State {
    /// `task` has been queued on `cpu`: asks the CPU to pick again if the task should run soon.
    /// `resched`: it is asked so already, and at once.
    pub(super) fn check_preempt(&mut self, cpu: CpuId, task: TaskId, woken: Woken, resched: bool) {
        self.effects.read(self.cpu(cpu).line);
        if !self.is_queued(task) {
            return;
        }
        let Some(current) = self.cpu(cpu).current else {
            return self.effects.request(cpu, Urgency::Now);
        };
        let [new, running] = [task, current].map(|task| self.task(task).class.rank());
        if new < running {
            self.effects.request(cpu, Urgency::Now);
        } else if !new.is_urgent()
            && !running.is_urgent()
            && current != task
            && !resched
            && !self.effects.asks_now(cpu)
        {
            self.check_fair(cpu, (current, task), woken);
        }
    }

    fn check_fair(&mut self, cpu: CpuId, (current, task): (TaskId, TaskId), woken: Woken) {
        if !self.rules.wakeup_preemption {
            return;
        }
        let (running, new) = (self.entity_of(current), self.entity_of(task));
        if !self.entities[running].queued {
            return;
        }
        let (running, new) = match self.rules.flat {
            true => (running, new),
            false => self.siblings(running, new),
        };
        let preempts = match (self.is_idle_entity(running), self.is_idle_entity(new)) {
            (true, false) => {
                if self.rules.wakeup_test != WakeupTest::V6_6 {
                    self.unprotect(running);
                }
                true
            }
            (false, true) => false,
            _ if self.task(task).class.policy() != Policy::Other => false,
            _ => {
                self.charge(self.entities[running].queue);
                self.wins(running, new, woken)
            }
        };
        if preempts {
            self.effects.request(cpu, Urgency::Lazy);
        }
    }

    /// Whether `new` would be picked instead of `running`, its sibling.
    fn wins(&mut self, running: EntityId, new: EntityId, woken: Woken) -> bool {
        let shorter = self.entities[new].slice < self.entities[running].slice;
        let short = self.rules.preempt_short && shorter;
        match self.rules.wakeup_test {
            WakeupTest::V6_6 => self.best(self.timeline(running), true) == Some(new),
            WakeupTest::V6_12 => self.wins_6_12(running, new, short),
            WakeupTest::V6_18 => self.wins_6_18(running, new, short),
            WakeupTest::V6_19 => self.wins_6_19(running, new, short, woken),
        }
    }

    fn wins_6_12(&mut self, running: EntityId, new: EntityId, short: bool) -> bool {
        let earlier = self.entities[new].deadline < self.entities[running].deadline;
        let before = earlier || !self.is_eligible(running);
        if short && self.is_eligible(new) && before {
            self.unprotect(running);
        }
        self.best(self.timeline(running), true) == Some(new)
    }

    fn wins_6_18(&mut self, running: EntityId, new: EntityId, short: bool) -> bool {
        let wins = self.best(self.timeline(running), !short) == Some(new);
        if wins && short {
            self.unprotect(running);
        }
        if !wins && short && self.rules.run_to_parity {
            self.shorten_protection(running);
        }
        wins
    }

    fn wins_6_19(&mut self, running: EntityId, new: EntityId, short: bool, woken: Woken) -> bool {
        let queue = self.timeline(running);
        if !short {
            if woken.is_new || self.entities[new].delayed {
                return false;
            }
            if self.rules.next_buddy && self.is_due_first_as_buddy(running, new, woken) {
                self.unprotect(running);
                return true;
            }
        }
        loop {
            // A buddy is picked only where protection counts.
            let best = match short {
                true => self.best(queue, false),
                false => self.choose(queue),
            };
            match best.filter(|best| self.entities[*best].delayed) {
                Some(delayed) => self.dequeue(delayed, Leaving::Paid),
                None if best == Some(new) => {
                    if short {
                        self.unprotect(running);
                        self.clear_buddies(running);
                    }
                    return true;
                }
                None => break,
            }
        }
        if self.rules.run_to_parity {
            self.shorten_protection(running);
        }
        false
    }

    /// `new` becomes the next buddy, unless the old one has an earlier deadline; then a synchronous
    /// wakeup preempts by its deadline (`NEXT_BUDDY`, `set_preempt_buddy()`).
    fn is_due_first_as_buddy(&mut self, running: EntityId, new: EntityId, woken: Woken) -> bool {
        let deadline = |entity: EntityId| self.entities[entity].deadline;
        let queue = self.timeline(running);
        if self.queues[queue]
            .buddy
            .is_some_and(|buddy| deadline(buddy) < deadline(new))
        {
            return false;
        }
        let earlier = deadline(new) < deadline(running);
        let state = &self.entities[running];
        let ran = state.ran - state.ran_when_picked;
        let least = if woken.selected {
            SYNC_RUN_SELECTED
        } else {
            SYNC_RUN
        };
        self.make_buddy(new);
        woken.sync && earlier && ran >= least
    }

    /// Whether `entity` runs only when nobody else wants to (`se_is_idle()`).
    pub(super) fn is_idle_entity(&self, entity: EntityId) -> bool {
        match self.entities[entity].what {
            What::Task(task) => self.task(task).class.policy() == Policy::Idle,
            What::Group(own) => {
                let group = self.queues[own].group;
                group.is_some_and(|group| self.groups[group].idle)
            }
        }
    }

    /// Whether `task`, or a group that it is in, is idle: it is counted in `h_nr_idle` of its CPU.
    pub(super) fn is_background(&self, task: TaskId) -> bool {
        let mut next = Some(self.entity_of(task));
        while let Some(entity) = next {
            if self.is_idle_entity(entity) {
                return true;
            }
            next = self.queues[self.entities[entity].queue].owner;
        }
        false
    }
}
