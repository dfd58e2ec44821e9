//! What a decision does to the machine: accesses to memory, and CPUs that are to pick again. They
//! are collected, and made when the decision is taken, so that decisions need no machine.

use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_trace::Record;
use warmq_units::{Address, CpuId};

/// How urgently a CPU is to pick again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// When it returns to user mode, or at its next tick, under lazy preemption.
    Lazy,
    /// As soon as the preemption model allows.
    Now,
}

/// What has been decided and not yet been done.
#[derive(Default)]
pub(super) struct Effects {
    accesses: Vec<(Address, Access)>,
    requests: Vec<(CpuId, Urgency)>,
    /// What is recorded in detail; `None` where nobody wants to know.
    details: Option<Vec<Record>>,
}

impl Effects {
    /// None yet.
    pub(super) fn new(wants_details: bool) -> Effects {
        Effects {
            details: wants_details.then(Vec::new),
            ..Effects::default()
        }
    }

    /// Where details are collected, if somebody wants them.
    pub(super) fn details(&mut self) -> Option<&mut Vec<Record>> {
        self.details.as_mut()
    }

    pub(super) fn read(&mut self, at: Address) {
        self.accesses.push((at, Access::Read));
    }

    pub(super) fn write(&mut self, at: Address) {
        self.accesses.push((at, Access::Write));
    }

    pub(super) fn access(&mut self, at: Address, access: Access) {
        self.accesses.push((at, access));
    }

    /// `cpu` is to pick again (`resched_curr()`, `resched_curr_lazy()`).
    pub(super) fn request(&mut self, cpu: CpuId, urgency: Urgency) {
        self.requests.push((cpu, urgency));
    }

    /// Whether `cpu` is about to be asked at once to pick again.
    pub(super) fn asks_now(&self, cpu: CpuId) -> bool {
        self.requests.contains(&(cpu, Urgency::Now))
    }

    /// `cpu` has just picked: what asked it to is done with (`clear_tsk_need_resched()`).
    pub(super) fn has_picked(&mut self, cpu: CpuId) {
        self.requests.retain(|(asked, _)| *asked != cpu);
    }

    /// Does what has been decided.
    pub(super) fn apply(&mut self, context: &mut Context<'_>) {
        for (at, access) in self.accesses.drain(..) {
            context.touch(at, access);
        }
        for detail in self
            .details
            .iter_mut()
            .flat_map(|details| details.drain(..))
        {
            context.record_detail(detail);
        }
        for (cpu, urgency) in self.requests.drain(..) {
            match urgency {
                Urgency::Lazy => context.reschedule_lazy(cpu),
                Urgency::Now => context.reschedule(cpu),
            }
        }
    }

    /// The CPUs that are to pick again, for tests of decisions.
    #[cfg(test)]
    pub(super) fn take_requests(&mut self) -> Vec<(CpuId, Urgency)> {
        self.accesses.clear();
        std::mem::take(&mut self.requests)
    }
}
