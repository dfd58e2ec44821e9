//! The functions of decide.h as decide.c offers them.
//!
//! They are `safe`: each reads and writes nothing but its arguments, and takes any values of them.

use crate::{Domain, Entity, Policy};

#[allow(
    unsafe_code,
    reason = "the policy is C, so that a BPF program can include it; decide.c has these very functions"
)]
unsafe extern "C" {
    pub(crate) safe fn decide_before(a: u64, b: u64) -> bool;
    pub(crate) safe fn decide_clamp(value: u64, low: u64, high: u64) -> u64;
    pub(crate) safe fn decide_virtual(ran: u64, weight: u64) -> u64;
    pub(crate) safe fn decide_entity_position(entity: &Entity) -> u64;
    pub(crate) safe fn decide_position(entity: &Entity, vtime: u64) -> u64;
    pub(crate) safe fn decide_emigrate(position: u64, from_clock: u64, to_clock: u64) -> u64;
    pub(crate) safe fn decide_shrink(policy: &Policy, domain: &Domain, apart: u64) -> u64;
    pub(crate) safe fn decide_place(
        policy: &Policy,
        domain: &Domain,
        position: u64,
        counts: bool,
    ) -> u64;
    pub(crate) safe fn decide_most_debt(
        policy: &Policy,
        domain: &Domain,
        weight: u64,
        ran: u64,
    ) -> u64;
    pub(crate) safe fn decide_forgive(domain: &Domain, position: u64) -> u64;
    pub(crate) safe fn decide_keep_place(
        policy: &Policy,
        domain: &Domain,
        position: u64,
        weight: u64,
    ) -> u64;
    pub(crate) safe fn decide_first_position(policy: &Policy, domain: &Domain) -> u64;
    pub(crate) safe fn decide_join(entity: &mut Entity, position: u64) -> u64;
    pub(crate) safe fn decide_mean_with(
        policy: &Policy,
        clock: u64,
        weight: u64,
        at: u64,
        joining: u64,
    ) -> u64;
    pub(crate) safe fn decide_mean_without(
        policy: &Policy,
        clock: u64,
        weight: u64,
        at: u64,
        leaving: u64,
    ) -> u64;
    pub(crate) safe fn decide_turn(
        policy: &Policy,
        entity: &mut Entity,
        domain: &Domain,
        succession: u64,
        vtime: u64,
    ) -> u64;
    pub(crate) safe fn decide_succession(policy: &Policy, group: bool) -> u64;
    pub(crate) safe fn decide_bound_entity(
        policy: &Policy,
        entity: &mut Entity,
        domain: &Domain,
        succession: u64,
    );
    pub(crate) safe fn decide_share(weight: u64, parent_weight: u64, active: u64) -> u64;
    pub(crate) safe fn decide_slice(policy: &Policy, waiting: u64, cpus: u64) -> u64;
    pub(crate) safe fn decide_wait_bound(policy: &Policy, domain: &Domain, weight: u64) -> u64;
    pub(crate) safe fn decide_granularity(policy: &Policy, sleeps: u64, weight: u64) -> u64;
    pub(crate) safe fn decide_preempts(
        policy: &Policy,
        waking: u64,
        running: u64,
        sleeps: u64,
        weight: u64,
        slept: u64,
        since: u64,
    ) -> u32;
    pub(crate) safe fn decide_batch_goes_on(policy: &Policy, used: u64, others_wait: bool) -> bool;
    pub(crate) safe fn decide_less_loaded(
        weight: u64,
        cpus: u64,
        other_weight: u64,
        other_cpus: u64,
    ) -> bool;
    pub(crate) safe fn decide_imbalanced(
        policy: &Policy,
        busy: u64,
        busy_cpus: u64,
        calm: u64,
        calm_cpus: u64,
    ) -> bool;
    pub(crate) safe fn decide_excess(busy: u64, busy_cpus: u64, calm: u64, calm_cpus: u64) -> u64;
    pub(crate) safe fn decide_better_group(weight: u64, best: u64, excess: u64) -> bool;
    pub(crate) safe fn decide_relieve(
        policy: &Policy,
        excess: u64,
        managed: u64,
        unmanaged: u64,
        movable: u64,
        lasted: u64,
    ) -> u32;
    pub(crate) safe fn decide_meet(wakee: u32, waker: u32, firmness: &mut u32) -> u32;
    pub(crate) safe fn decide_fade(firmness: u32) -> u32;
    pub(crate) safe fn decide_default_policy(policy: &mut Policy);
}
