//! By which rule of the scheduler somebody runs where another one waits, as far as records show.

use warmq_trace::Policy;
use warmq_units::{Duration, TaskId};

use crate::facts::Facts;
use crate::weight;

/// The shortest slice that a kernel gives by itself: 0.7 ms, on one CPU
/// (`sysctl_sched_base_slice`, kernel/sched/fair.c).
const LEAST_OWN_SLICE: Duration = Duration::from_us(700);

/// And the longest, on eight CPUs and more, in kernels before 6.15.
pub(crate) const MOST_OWN_SLICE: Duration = Duration::from_ms(3);

/// Why somebody goes before another one, the strongest reason first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Preference {
    /// Real-time and deadline tasks go before all fair ones.
    RealTime,
    /// The waiting one is a real-time task, and this one has what such tasks leave.
    LeftOver,
    /// Softirqs that are many run in a thread.
    Softirqs,
    /// The waiting one is of a policy whose wakeups preempt nobody.
    OwnPolicy,
    /// It is of another group, which is weighed and has deadlines as a whole.
    Group,
    /// It weighs more.
    Weight,
    /// It asks for a shorter slice, and has the earlier deadlines.
    Slice,
    /// They are alike: it is its turn.
    Turn,
}

/// What competes for a task where two of them meet in the tree of groups: it, or its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rival {
    /// Its group.
    pub group: Option<u32>,
    /// 1024 is that of a task of nice 0, and of a group of the usual `cpu.weight`. Of a group it is
    /// the weight on all CPUs together.
    pub weight: u64,
}

impl Facts<'_> {
    /// What competes for `id`, and what for `other`.
    pub fn rivals(&self, id: TaskId, other: TaskId) -> (Rival, Rival) {
        (self.rival(id, other), self.rival(other, id))
    }

    fn rival(&self, id: TaskId, other: TaskId) -> Rival {
        let (of, from) = (self.task(id).who.group, self.task(other).who.group);
        let group = self.outermost_own_group(of, from);
        let of_group = |group| weight::of_group(self.watcher.groups.get(group).weight);
        Rival {
            group,
            weight: group.map_or_else(|| self.weight(id), of_group),
        }
    }

    /// Why `id` goes before `waiter`.
    pub fn preference(&self, id: TaskId, waiter: TaskId) -> Preference {
        let (own, other) = (&self.task(waiter).who, &self.task(id).who);
        if self.is_realtime(id) && !self.is_realtime(waiter) {
            return Preference::RealTime;
        }
        if self.is_realtime(waiter) && !self.is_realtime(id) {
            return Preference::LeftOver;
        }
        if self.is_softirqd(id) {
            return Preference::Softirqs;
        }
        if own.policy() == Policy::Batch {
            return Preference::OwnPolicy;
        }
        let (rival, waits) = self.rivals(id, waiter);
        if rival.group.is_some() {
            return Preference::Group;
        }
        if rival.weight > waits.weight {
            return Preference::Weight;
        }
        let or_own = |asked: Duration, own: Duration| match asked {
            Duration::ZERO => own,
            asked => asked,
        };
        match or_own(other.slice, MOST_OWN_SLICE) < or_own(own.slice, LEAST_OWN_SLICE) {
            true => Preference::Slice,
            false => Preference::Turn,
        }
    }
}
