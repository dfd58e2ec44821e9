//! Timers that can be armed and cancelled.

use warmq_units::{CpuId, TaskId};

use crate::words::{Condition, GroupId, Timer};

/// What happens when a timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerOwner {
    /// The sleep of a task ends.
    Sleep(TaskId),
    /// The wait of a task ends, if it waits any more.
    Wait(TaskId, Condition),
    /// The scheduler is called with this token.
    Scheduler(u64),
    /// The period of a group with a quota ends.
    Refill(GroupId),
    /// Queues of a group returned time that others wait for.
    Slack(GroupId),
}

/// Every timer of the system.
///
/// Invariant: a handle refers to an armed timer if and only if its generation is that of its slot
/// and the slot has an owner.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    armed: Option<(TimerOwner, CpuId)>,
}

impl Timers {
    /// Arms a timer of `owner` that will interrupt `cpu`.
    pub(crate) fn arm(&mut self, owner: TimerOwner, cpu: CpuId) -> Timer {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                armed: None,
            });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.armed = Some((owner, cpu));
        let generation = slot.generation;
        Timer { index, generation }
    }

    /// Disarms `timer` when it expires or is cancelled; `None` if it was disarmed before.
    pub(crate) fn disarm(&mut self, timer: Timer) -> Option<(TimerOwner, CpuId)> {
        let slot = self.slots.get_mut(timer.index as usize)?;
        let armed = slot
            .armed
            .take_if(|_| slot.generation == timer.generation)?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(timer.index);
        Some(armed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_timer_stays_cancelled_when_its_slot_is_used_again() {
        let mut timers = Timers::default();
        let (owner, cpu) = (TimerOwner::Scheduler(7), CpuId(1));
        let first = timers.arm(owner, cpu);
        assert_eq!(timers.disarm(first), Some((owner, cpu)));
        assert_eq!(timers.disarm(first), None);
        let second = timers.arm(TimerOwner::Sleep(TaskId(3)), cpu);
        assert_eq!(second.index, first.index);
        assert_eq!(timers.disarm(first), None, "its generation is over");
        assert!(timers.disarm(second).is_some());
    }
}
