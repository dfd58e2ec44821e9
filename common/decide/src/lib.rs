//! What scx_warmq decides, as arithmetic: vruntime and lag, slices, wakeup preemption, cores,
//! groups, memory nodes.
//!
//! Purpose: the policy exists once, in the C headers of `include/`, of which `decide.h` is the
//! first. The BPF program of scx_warmq includes them, and this crate compiles them natively for its
//! loader, for the groups that the lab infers, and for tests. Nothing is computed here. What each
//! function means, and why, is said in the headers.
//!
//! Times are nanoseconds. vruntime, V and lag are virtual nanoseconds and wrap. [`WEIGHT_NICE_0`]
//! is the weight of a task at nice 0.
//!
//! ```
//! use warmq_decide::{WEIGHT_NICE_0, delta_vruntime};
//! // At half the weight, vruntime grows twice as fast.
//! assert_eq!(delta_vruntime(2_000_000, WEIGHT_NICE_0 / 2), 4_000_000);
//! ```

// Integers decide; floats only describe.
#![deny(clippy::float_arithmetic)]

mod cores;
mod groups;
mod nodes;
mod power;
mod vruntime;

pub use cores::*;
pub use groups::*;
pub use nodes::*;
pub use power::*;
pub use vruntime::*;

/// CPUs that share a last-level cache (`struct warmq_domain`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Domain {
    /// V, the weighted mean of all vruntimes in it, in virtual ns.
    pub avg_vruntime: u64,
    /// The weight of everything runnable in it.
    pub weight: u64,
    /// Its runnable tasks.
    pub runnable: u32,
    /// Its CPUs that are online.
    pub cpus: u32,
}

/// What a CPU chooses between: a group, the unmanaged tasks of a domain, or the tasks that may run
/// on one CPU only (`struct warmq_entity`).
///
/// Invariant: its vruntime in the domain is `avg_vruntime + shift`, wrapping.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entity {
    /// V of its members, in virtual ns.
    pub avg_vruntime: u64,
    /// From its members' time to the domain's, in virtual ns.
    pub shift: u64,
    /// The weight of its runnable members.
    pub weight: u64,
    /// Its runnable members.
    pub runnable: u32,
}

/// What an administrator may set (`struct warmq_policy`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// While few are runnable, everybody runs once in it; sleeps are counted within it; in ns.
    pub period: u64,
    /// The longest slice, in ns.
    pub slice_max: u64,
    /// The shortest slice, in ns.
    pub slice_min: u64,
    /// How much lag a task keeps at most when it wakes, in virtual ns.
    pub wakeup_lag_max: u64,
    /// The bound of any lag, applied when queueing and picking, in virtual ns.
    pub lag_max: u64,
    /// Wakeup granularity in ns for one sleep per second; 0: none.
    pub alpha: u64,
    /// From one wakeup preemption of a CPU to the next, in ns; 0: off.
    pub preempt_interval: u64,
    /// A task that slept less keeps no lag and does not preempt, in ns; 0: off.
    pub min_sleep: u64,
    /// For how long a group runs in succession on one CPU while others wait, in ns.
    pub batch_budget: u64,
    /// By how many percent a place may be busier than another.
    pub imbalance: u64,
    /// How long an imbalance lasts before a group is split, in ns.
    pub patience: u64,
}

#[allow(unsafe_code, reason = "as in vruntime.rs")]
unsafe extern "C" {
    safe fn decide_default_policy() -> Policy;
}

impl Default for Policy {
    fn default() -> Policy {
        decide_default_policy()
    }
}

// decide.c asserts the same of the other side.
const _: () = assert!(size_of::<Domain>() == 3 * size_of::<u64>());
const _: () = assert!(size_of::<Entity>() == 4 * size_of::<u64>());
const _: () = assert!(size_of::<Policy>() == 11 * size_of::<u64>());
