//! Groups: how long they run in succession, where they live, and who belongs to one.

#![allow(unsafe_code, reason = "as in vruntime.rs")]

use crate::Policy;

/// What is done about a place that is too busy (`enum warmq_relief`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relief {
    /// Nothing.
    Leave,
    /// A whole group moves.
    MoveGroup,
    /// A queued task without a group moves.
    MoveUnmanaged,
    /// A task of a group runs away from its home.
    SplitGroup,
}

/// What a wakeup between two tasks means for their groups, which each may have
/// (`enum warmq_kinship`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinship {
    /// Nothing changes.
    Strangers,
    /// A new group of both.
    Found,
    /// The wakee joins the waker's group.
    WakeeJoins,
    /// The waker joins the wakee's group.
    WakerJoins,
}

unsafe extern "C" {
    /// The highest firmness: how strongly a task belongs to its inferred group (`WARMQ_FIRM`).
    #[link_name = "decide_firm"]
    pub safe static FIRM: u32;

    /// How often a task without a group is woken before it gets one (`WARMQ_FAMILIAR`).
    #[link_name = "decide_familiar"]
    pub safe static FAMILIAR: u32;

    /// How often in a row two tasks wake each other until they are partners (`WARMQ_PARTNERS`).
    #[link_name = "decide_partners"]
    pub safe static PARTNERS: u32;
    /// For how long, in times of `patience`, an imbalance lasts that a task would only turn round,
    /// until one moves nevertheless (`WARMQ_TURNS`).
    #[link_name = "decide_turns"]
    pub safe static TURNS: u64;

    /// How often in a row a task was woken by one that it had woken itself, once more. `again`: by
    /// the same one as before; `woken`: which this task was the last to wake.
    #[link_name = "decide_in_turn"]
    pub safe fn in_turn(turns: u32, again: bool, woken: bool) -> u32;

    /// Whether the group that a CPU works on goes on there; `used` is what it ran in this
    /// succession, in ns.
    #[link_name = "decide_batch_goes_on"]
    pub safe fn batch_goes_on(policy: &Policy, used: u64, others_wait: bool) -> bool;

    /// Whether a place of `weight` on `cpus` CPUs is less loaded than the other.
    #[link_name = "decide_less_loaded"]
    pub safe fn less_loaded(weight: u64, cpus: u64, other_weight: u64, other_cpus: u64) -> bool;

    /// Whether a place is a better home than the other: less loaded, or else on a core whose other
    /// CPUs have less load (`core`).
    #[link_name = "decide_calmer"]
    pub safe fn calmer(
        weight: u64,
        cpus: u64,
        core: u64,
        other_weight: u64,
        other_cpus: u64,
        other_core: u64,
    ) -> bool;

    /// How many of the groups that were `founded` at a place, the first of them `age` ns ago, are
    /// newcomers.
    #[link_name = "decide_newcomers"]
    pub safe fn newcomers(policy: &Policy, founded: u64, age: u64) -> u64;

    /// The load that a new group must expect at a place of `weight`, where each of the newcomers
    /// counts as if it kept all CPUs busy.
    #[link_name = "decide_expected_load"]
    pub safe fn expected_load(weight: u64, newcomers: u64, cpus: u64) -> u64;

    /// Whether the busy place is busier than the calm one by more than the policy allows.
    #[link_name = "decide_imbalanced"]
    pub safe fn imbalanced(
        policy: &Policy,
        busy: u64,
        busy_cpus: u64,
        calm: u64,
        calm_cpus: u64,
    ) -> bool;

    /// The weight whose move makes two places equally loaded.
    #[link_name = "decide_excess"]
    pub safe fn excess(busy: u64, busy_cpus: u64, calm: u64, calm_cpus: u64) -> u64;

    /// Whether it is better to move a group of `weight` than the best so far (0: none yet).
    #[link_name = "decide_better_group"]
    pub safe fn better_group(weight: u64, best: u64, excess: u64) -> bool;

    /// The firmness of a task after a period without a wakeup from its group.
    #[link_name = "decide_fade"]
    pub safe fn fade(firmness: u32) -> u32;

    safe fn decide_relieve(
        policy: &Policy,
        excess: u64,
        managed: u64,
        unmanaged: u64,
        task: u64,
        movable: u64,
        lasted: u64,
    ) -> u32;
    safe fn decide_meet(wakee: u32, waker: u32, firmness: &mut u32) -> u32;
}

/// What is done about a place that is too busy by `excess`. `managed` is the weight of its groups,
/// `unmanaged` that of its queued tasks without one, `task` that of one of them, `movable` that of
/// the best group to move (0: none can move), and the imbalance has `lasted` for so many ns.
pub fn relieve(
    policy: &Policy,
    excess: u64,
    managed: u64,
    unmanaged: u64,
    task: u64,
    movable: u64,
    lasted: u64,
) -> Relief {
    match decide_relieve(policy, excess, managed, unmanaged, task, movable, lasted) {
        0 => Relief::Leave,
        1 => Relief::MoveGroup,
        2 => Relief::MoveUnmanaged,
        3 => Relief::SplitGroup,
        other => unreachable!("enum warmq_relief has no {other}"),
    }
}

/// `waker` woke `wakee`, by the numbers of their groups (0: none); changes the wakee's `firmness`.
pub fn meet(wakee: u32, waker: u32, firmness: &mut u32) -> Kinship {
    match decide_meet(wakee, waker, firmness) {
        0 => Kinship::Strangers,
        1 => Kinship::Found,
        2 => Kinship::WakeeJoins,
        3 => Kinship::WakerJoins,
        other => unreachable!("enum warmq_kinship has no {other}"),
    }
}
