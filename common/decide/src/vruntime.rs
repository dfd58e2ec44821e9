//! vruntime, V and lag; slices and waits. The derivations are in the headers of include/decide.

#![allow(
    unsafe_code,
    reason = "the policy is C, so that a BPF program can include it. Each function is safe: it reads and \
              writes nothing but its arguments, and takes any values of them"
)]

use crate::{Domain, Entity, Policy};

unsafe extern "C" {
    /// The weight of a task at nice 0 (`WARMQ_WEIGHT_NICE_0`).
    #[link_name = "decide_weight_nice_0"]
    pub safe static WEIGHT_NICE_0: u64;
    /// The least weight that counts (`WARMQ_WEIGHT_MIN`).
    #[link_name = "decide_weight_min"]
    pub safe static WEIGHT_MIN: u64;

    /// Whether `a` is earlier than `b`.
    #[link_name = "decide_before"]
    pub safe fn before(a: u64, b: u64) -> bool;

    /// `value`, kept between `low` and `high`.
    #[link_name = "decide_clamp"]
    pub safe fn clamp(value: u64, low: u64, high: u64) -> u64;

    /// By how much vruntime grows when something of `weight` runs for `ran` ns.
    #[link_name = "decide_delta_vruntime"]
    pub safe fn delta_vruntime(ran: u64, weight: u64) -> u64;

    /// The vruntime of an entity in its domain.
    #[link_name = "decide_entity_vruntime"]
    pub safe fn entity_vruntime(entity: &Entity) -> u64;

    /// The vruntime in the domain of a member whose vruntime in the entity is `vtime`.
    #[link_name = "decide_vruntime"]
    pub safe fn vruntime(entity: &Entity, vtime: u64) -> u64;

    /// The vruntime in another domain of something that moves there and keeps its lag.
    #[link_name = "decide_migrate_vruntime"]
    pub safe fn migrate_vruntime(vruntime: u64, from_avg: u64, to_avg: u64) -> u64;

    /// The lag that the domain works off in `ns`; never less than what its mean task gains in the
    /// shortest slice.
    #[link_name = "decide_scale_lag"]
    pub safe fn scale_lag(policy: &Policy, domain: &Domain, ns: u64) -> u64;

    /// The lower bound, without its sign, of the lag of something of `weight` that may just have
    /// run for `ran` ns.
    #[link_name = "decide_lag_min"]
    pub safe fn lag_min(policy: &Policy, domain: &Domain, weight: u64, ran: u64) -> u64;

    /// The vruntime of a task of `weight` that wakes; `keeps_lag`: its sleep was long enough to
    /// keep positive lag.
    #[link_name = "decide_place_wakeup"]
    pub safe fn place_wakeup(
        policy: &Policy,
        domain: &Domain,
        vruntime: u64,
        weight: u64,
        keeps_lag: bool,
    ) -> u64;

    /// The same, in the time of `entity`, for a task that comes back to it while it has runnable
    /// members, on `cpus` at most.
    #[link_name = "decide_place_among"]
    pub safe fn place_among(
        policy: &Policy,
        entity: &Entity,
        cpus: u64,
        vtime: u64,
        weight: u64,
        keeps_lag: bool,
    ) -> u64;

    /// The vruntime of a task that ran and is queued again: clamped to a lag that can be worked off
    /// in four seconds.
    #[link_name = "decide_clamp_queued"]
    pub safe fn clamp_queued(domain: &Domain, vruntime: u64) -> u64;

    /// The vruntime of a task of `weight` that runs while nobody waits for its CPU.
    #[link_name = "decide_forgive"]
    pub safe fn forgive(policy: &Policy, domain: &Domain, vruntime: u64, weight: u64) -> u64;

    /// The vruntime of a task of `weight` that goes from one entity to another without having
    /// slept.
    #[link_name = "decide_place_awake"]
    pub safe fn place_awake(policy: &Policy, domain: &Domain, vruntime: u64, weight: u64) -> u64;

    /// Admits a task with `vruntime` to `entity`, before its weight is added; returns its vtime
    /// there.
    #[link_name = "decide_join"]
    pub safe fn join(entity: &mut Entity, vruntime: u64) -> u64;

    /// By how much V, the mean of `weight`, changes when `joining` more comes with `vruntime`. May
    /// be negative, so add it wrapping.
    #[link_name = "decide_avg_add"]
    pub safe fn avg_add(policy: &Policy, avg: u64, weight: u64, vruntime: u64, joining: u64)
    -> u64;

    /// By how much V, the mean of `weight`, changes when `leaving` of it goes with `vruntime`. May
    /// be negative, so add it wrapping.
    #[link_name = "decide_avg_sub"]
    pub safe fn avg_sub(policy: &Policy, avg: u64, weight: u64, vruntime: u64, leaving: u64)
    -> u64;

    /// What a task of `weight` that exits leaves to its parent, in ns of run time: its debt.
    #[link_name = "decide_debt"]
    pub safe fn debt(avg: u64, vruntime: u64, weight: u64) -> u64;

    /// How long the tasks of an entity may run in succession before another is chosen, in ns.
    #[link_name = "decide_succession"]
    pub safe fn succession(policy: &Policy, group: bool) -> u64;

    /// Clamps the lag of `entity` while it is queued, on both sides: to lag_max, and what it may
    /// just have run or waited for in `succession` ns.
    #[link_name = "decide_clamp_entity"]
    pub safe fn clamp_entity(
        policy: &Policy,
        entity: &mut Entity,
        domain: &Domain,
        succession: u64,
    );

    /// The key by which a CPU compares entities, of which the least is picked: the later of the
    /// vruntime of `entity`, clamped as by [`clamp_entity`], and its task's `deadline`.
    #[link_name = "decide_pick_key"]
    pub safe fn pick_key(
        policy: &Policy,
        entity: &mut Entity,
        domain: &Domain,
        succession: u64,
        deadline: u64,
    ) -> u64;

    /// The weight of a task or cgroup within the share of its parent; `active` is the sum of all
    /// weights that are active in that parent.
    #[link_name = "decide_share"]
    pub safe fn share(weight: u64, parent_weight: u64, active: u64) -> u64;

    /// The part of its `weight` that a task can use, which has one CPU at most. `own` is what the
    /// domain has of it; it is one of `runnable` tasks that compete for `cpus`.
    #[link_name = "decide_usable_weight"]
    pub safe fn usable_weight(
        domain: &Domain,
        runnable: u64,
        cpus: u64,
        weight: u64,
        own: u64,
    ) -> u64;

    /// How long a task runs before the next is chosen, in ns.
    #[link_name = "decide_slice"]
    pub safe fn slice(policy: &Policy, runnable: u64, cpus: u64) -> u64;

    /// The length of a tick, in ns, from the time since a CPU's last one.
    #[link_name = "decide_tick_length"]
    pub safe fn tick_length(tick: u64, since: u64) -> u64;

    /// Whether a slice of which `left` ns are left ends at this tick.
    #[link_name = "decide_slice_ends"]
    pub safe fn slice_ends(left: u64, tick: u64) -> bool;

    /// What a task is expected to run between two sleeps, in ns, after it `ran` so long; 0: nothing
    /// is known.
    #[link_name = "decide_expect"]
    pub safe fn expect(expected: u64, ran: u64) -> u64;

    /// For how long a task is expected to run when it is picked next, in ns, after it `ran` since
    /// it woke.
    #[link_name = "decide_request"]
    pub safe fn request(expected: u64, ran: u64, slice: u64) -> u64;

    /// The deadline, in virtual ns, of something of `weight` with `vruntime` that requests
    /// `request` ns.
    #[link_name = "decide_deadline"]
    pub safe fn deadline(domain: &Domain, vruntime: u64, weight: u64, request: u64) -> u64;

    /// The longest that a runnable task of `weight` waits, in ns.
    #[link_name = "decide_wait_bound"]
    pub safe fn wait_bound(policy: &Policy, domain: &Domain, weight: u64) -> u64;

    /// How long a task of `weight` waits until it comes before all others of its domain, in ns.
    #[link_name = "decide_late_after"]
    pub safe fn late_after(policy: &Policy, domain: &Domain, weight: u64) -> u64;
}
