//! Groups: how long they run in succession, where they live, and who belongs to one.

use crate::Policy;
use crate::header;

/// How firmly a task belongs to its group at most (`WARMQ_FIRM`).
pub const FIRM: u32 = 32;

/// What relieves a place that is too busy (`enum warmq_relief`).
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

/// What comes of a wakeup between two tasks, of which each may have a group (`enum warmq_kinship`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinship {
    /// Nothing changes.
    Strangers,
    /// A new group of both.
    Found,
    /// The one that is woken joins the group of the one that wakes it.
    WakeeJoins,
    /// The one that wakes joins the group of the one that it wakes.
    WakerJoins,
}

/// Whether the group that ran last runs on; `used` is what it had in this succession, in ns.
pub fn batch_goes_on(policy: &Policy, used: u64, others_wait: bool) -> bool {
    header::decide_batch_goes_on(policy, used, others_wait)
}

/// Whether a place of `weight` on `cpus` CPUs is less loaded than the other.
pub fn less_loaded(weight: u64, cpus: u64, other_weight: u64, other_cpus: u64) -> bool {
    header::decide_less_loaded(weight, cpus, other_weight, other_cpus)
}

/// Whether the busy place is busier than the calm one by more than the policy allows.
pub fn imbalanced(policy: &Policy, busy: u64, busy_cpus: u64, calm: u64, calm_cpus: u64) -> bool {
    header::decide_imbalanced(policy, busy, busy_cpus, calm, calm_cpus)
}

/// The weight whose move makes two places equally loaded.
pub fn excess(busy: u64, busy_cpus: u64, calm: u64, calm_cpus: u64) -> u64 {
    header::decide_excess(busy, busy_cpus, calm, calm_cpus)
}

/// Whether it is better to move a group of `weight` than the best so far (0: none yet).
pub fn better_group(weight: u64, best: u64, excess: u64) -> bool {
    header::decide_better_group(weight, best, excess)
}

/// What relieves a place that is too busy by `excess`. `managed` is the weight of its groups,
/// `unmanaged` that of its queued tasks without one, `movable` that of the best group to move (0: none
/// can be moved), and the imbalance has `lasted` for so many ns.
pub fn relieve(
    policy: &Policy,
    excess: u64,
    managed: u64,
    unmanaged: u64,
    movable: u64,
    lasted: u64,
) -> Relief {
    match header::decide_relieve(policy, excess, managed, unmanaged, movable, lasted) {
        0 => Relief::Leave,
        1 => Relief::MoveGroup,
        2 => Relief::MoveUnmanaged,
        3 => Relief::SplitGroup,
        other => unreachable!("enum warmq_relief has no {other}"),
    }
}

/// `waker` woke `wakee`, by the numbers of their groups (0: none); changes the wakee's `firmness`.
pub fn meet(wakee: u32, waker: u32, firmness: &mut u32) -> Kinship {
    match header::decide_meet(wakee, waker, firmness) {
        0 => Kinship::Strangers,
        1 => Kinship::Found,
        2 => Kinship::WakeeJoins,
        3 => Kinship::WakerJoins,
        other => unreachable!("enum warmq_kinship has no {other}"),
    }
}

/// What a period without its group makes of a task's firmness.
pub fn fade(firmness: u32) -> u32 {
    header::decide_fade(firmness)
}
