//! Virtual time: who stands where, and how long a slice is.

use crate::header;
use crate::{Domain, Entity, Policy};

/// The weight of a task at nice 0 (`WARMQ_WHOLE`).
pub const WHOLE: u64 = 6_400;
/// How much of a weight is needed to be seen at all (`WARMQ_LEAST_WEIGHT`).
pub const LEAST_WEIGHT: u64 = 16;

/// Whether `a` stands before `b`.
pub fn before(a: u64, b: u64) -> bool {
    header::decide_before(a, b)
}

/// `value`, kept between `low` and `high`.
pub fn clamp(value: u64, low: u64, high: u64) -> u64 {
    header::decide_clamp(value, low, high)
}

/// Virtual ns that `ran` ns are for something of `weight`.
pub fn virtual_time(ran: u64, weight: u64) -> u64 {
    header::decide_virtual(ran, weight)
}

/// Where an entity stands in its domain.
pub fn entity_position(entity: &Entity) -> u64 {
    header::decide_entity_position(entity)
}

/// Where a member with `vtime` stands in its entity's domain.
pub fn position(entity: &Entity, vtime: u64) -> u64 {
    header::decide_position(entity, vtime)
}

/// A position in the domain with `from_clock`, in the one with `to_clock`.
pub fn emigrate(position: u64, from_clock: u64, to_clock: u64) -> u64 {
    header::decide_emigrate(position, from_clock, to_clock)
}

/// `apart` virtual ns, shrunk as the domain's load grows.
pub fn shrink(policy: &Policy, domain: &Domain, apart: u64) -> u64 {
    header::decide_shrink(policy, domain, apart)
}

/// Where a task that becomes runnable stands; `counts`: its sleep was long enough to earn credit.
pub fn place(policy: &Policy, domain: &Domain, position: u64, counts: bool) -> u64 {
    header::decide_place(policy, domain, position, counts)
}

/// How far ahead of its domain's clock something of `weight` may stand that may just have run for
/// `ran` ns.
pub fn most_debt(policy: &Policy, domain: &Domain, weight: u64, ran: u64) -> u64 {
    header::decide_most_debt(policy, domain, weight, ran)
}

/// Where a task stands that ran and is to wait: no further ahead than it can pay in four seconds.
pub fn forgive(domain: &Domain, position: u64) -> u64 {
    header::decide_forgive(domain, position)
}

/// Where a task of `weight` stands that goes from one entity to another without having slept.
pub fn keep_place(policy: &Policy, domain: &Domain, position: u64, weight: u64) -> u64 {
    header::decide_keep_place(policy, domain, position, weight)
}

/// Where a new task stands.
pub fn first_position(policy: &Policy, domain: &Domain) -> u64 {
    header::decide_first_position(policy, domain)
}

/// Admits a task that stands at `position` to `entity`, before its weight is added; returns its
/// virtual time there.
pub fn join(entity: &mut Entity, position: u64) -> u64 {
    header::decide_join(entity, position)
}

/// By how much the clock of `weight` moves when `joining` more comes that stands `at`; may be
/// negative, so add it wrapping.
pub fn mean_with(policy: &Policy, clock: u64, weight: u64, at: u64, joining: u64) -> u64 {
    header::decide_mean_with(policy, clock, weight, at, joining)
}

/// By how much the clock of `weight` moves when `leaving` of it goes that stands `at`; may be
/// negative, so add it wrapping.
pub fn mean_without(policy: &Policy, clock: u64, weight: u64, at: u64, leaving: u64) -> u64 {
    header::decide_mean_without(policy, clock, weight, at, leaving)
}

/// Where `entity`, bounded as by [`bound_entity`], stands for a CPU that would run its task with
/// `vtime`: that task's own turn must have come, too.
pub fn turn(
    policy: &Policy,
    entity: &mut Entity,
    domain: &Domain,
    succession: u64,
    vtime: u64,
) -> u64 {
    header::decide_turn(policy, entity, domain, succession, vtime)
}

/// How long the tasks of an entity may run in succession before another is chosen, in ns.
pub fn succession(policy: &Policy, group: bool) -> u64 {
    header::decide_succession(policy, group)
}

/// Keeps the position of `entity` near its domain's clock: a shrunk limit behind it, and ahead by as
/// much and what it may just have run in `succession`, in ns.
pub fn bound_entity(policy: &Policy, entity: &mut Entity, domain: &Domain, succession: u64) {
    header::decide_bound_entity(policy, entity, domain, succession);
}

/// The weight of a task or cgroup within the share of its parent; `active` is all that is active in
/// that parent.
pub fn share(weight: u64, parent_weight: u64, active: u64) -> u64 {
    header::decide_share(weight, parent_weight, active)
}

/// How long a task runs before the next is chosen, in ns.
pub fn slice(policy: &Policy, waiting: u64, cpus: u64) -> u64 {
    header::decide_slice(policy, waiting, cpus)
}

/// The longest that a runnable task of `weight` waits, in ns.
pub fn wait_bound(policy: &Policy, domain: &Domain, weight: u64) -> u64 {
    header::decide_wait_bound(policy, domain, weight)
}
