//! What a task is given before it begins, as the kernel has it.

use warmq_scenario::program::Spec;
use warmq_trace::Policy;
use warmq_units::Duration;

use crate::sys::sched::{Attributes, DeadlineNs};

/// Policy, nice value and slice of a task that is given `spec`.
pub fn attributes(spec: &Spec) -> Attributes {
    Attributes {
        nice: spec.nice,
        slice_ns: spec.slice.map_or(0, Duration::as_ns),
        ..attributes_of(&spec.policy)
    }
}

/// The policy as the kernel has it; nice value and slice are the usual.
pub fn attributes_of(asked: &warmq_scenario::Policy) -> Attributes {
    use warmq_scenario::Policy as Asked;
    let none = DeadlineNs::default();
    let (policy, priority, deadline) = match asked {
        Asked::Normal => (Policy::Other, 0, none),
        Asked::Batch => (Policy::Batch, 0, none),
        Asked::Idle => (Policy::Idle, 0, none),
        Asked::Fifo(priority) => (Policy::Fifo, *priority, none),
        Asked::RoundRobin(priority) => (Policy::RoundRobin, *priority, none),
        Asked::Deadline(times) => (Policy::Deadline, 0, deadline_of(times)),
    };
    Attributes {
        policy,
        priority,
        deadline,
        ..Attributes::default()
    }
}

fn deadline_of(times: &warmq_scenario::Deadline) -> DeadlineNs {
    DeadlineNs {
        runtime: times.runtime.as_ns(),
        deadline: times.deadline.as_ns(),
        period: times.period.as_ns(),
    }
}

/// The highest real-time priority that a task may have: the next one, the kernel's highest, is the
/// player's own.
pub const HIGHEST_OF_TASKS: u8 = 98;

/// By which the player's own processes come before all tasks of a scenario, whatever their policies
/// become. Whoever ends a run must get a CPU when real-time tasks compute on all of them.
pub const ABOVE_TASKS: Attributes = Attributes {
    policy: Policy::Fifo,
    priority: HIGHEST_OF_TASKS + 1,
    ..Attributes::USUAL
};

/// What helps where utilization cannot be clamped.
pub const UCLAMP: &str = "play it on a kernel with CONFIG_UCLAMP_TASK, with uclamp_min no more than \
                          uclamp_max, or leave the keys out";

/// The number of the group at `place` among all groups of the scenario, from 1: 0 is the root.
pub fn group_number(place: usize) -> u32 {
    1 + place as u32
}
