//! What a task is given before it begins: policy, nice value, slice, CPUs, group, fragment.

use warmq_scenario::{Bound, EvalError, Place, Reference, TaskKindId};
use warmq_trace::Policy;
use warmq_units::CpuSet;

use crate::places::Cpus;
use crate::sys::sched::{Attributes, DeadlineNs};

/// The number by which a scenario's tasks name their application to the scheduler.
pub const APP: u32 = 1;

const PS_PER_NS: u64 = 1_000;

/// What a task is given.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Policy, nice value and slice.
    pub attributes: Attributes,
    /// The CPUs that it is bound to.
    pub cpus: Option<CpuSet>,
    /// Its group: see [`group_number`].
    pub group: Option<u32>,
    /// The fragment that it names.
    pub fragment: Option<u32>,
}

impl Spec {
    /// That of the `number`th task of table `kind`.
    ///
    /// # Errors
    /// As [`Bound::eval`].
    pub fn of(
        bound: &Bound,
        cpus: &Cpus,
        kind: TaskKindId,
        number: u64,
    ) -> Result<Spec, EvalError> {
        let at = &bound.indexes_of_task(kind, number);
        let kind = bound.scenario().task(kind);
        let mut attributes = attributes_of(&kind.policy);
        if let Some(nice) = &kind.nice {
            attributes.nice = nice_of(bound.eval_signed(nice, at)?);
        }
        if let Some(slice) = &kind.slice {
            attributes.slice_ns = bound.eval(slice, at)? / PS_PER_NS;
        }
        let place = |place: &Place| cpus.at(bound, place, at);
        let group = |group: &Reference| group_number(bound, group, at);
        let fragment = kind.fragment.as_ref().map(|it| bound.eval(it, at));
        Ok(Spec {
            attributes,
            cpus: kind.cpus.as_ref().map(place).transpose()?,
            group: kind.group.as_ref().map(group).transpose()?,
            fragment: fragment.transpose()?.map(|number| number as u32),
        })
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

/// The highest real-time priority that a task may have: the next one, the kernel's highest, is the player's own.
pub const HIGHEST_OF_TASKS: u8 = 98;

/// By which the player's own processes come before all tasks of a scenario, whatever their policies become. Whoever
/// ends a run must get a CPU when real-time tasks compute on all of them.
pub const ABOVE_TASKS: Attributes = Attributes {
    policy: Policy::Fifo,
    priority: HIGHEST_OF_TASKS + 1,
    ..Attributes::USUAL
};

/// The kernel clamps nice values.
pub fn nice_of(nice: i64) -> i8 {
    nice.clamp(-20, 19) as i8
}

/// The number of a group among all groups of the scenario, from 1: 0 is the root.
///
/// # Errors
/// As [`Bound::object_place`].
pub fn group_number(bound: &Bound, group: &Reference, at: &[u64]) -> Result<u32, EvalError> {
    Ok(1 + bound.object_place(group, at)? as u32)
}

/// The number of the first group of a table.
pub fn first_group(bound: &Bound, table: warmq_scenario::ObjectId) -> u32 {
    1 + bound.object_of_class(table, 0) as u32
}
