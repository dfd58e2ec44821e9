//! What scx_warmq decides, as arithmetic: virtual time, slices, sleepers, groups, inference.
//!
//! Purpose: one truth about the policy. It is in the C header `include/decide.h`, which the BPF
//! program of scx_warmq includes; this crate compiles the same header natively and offers its
//! functions, so that the simulated scheduler runs the very code of the real one. Nothing is
//! computed here. What each function means, and why, stands in the header.
//!
//! Times are nanoseconds; positions and clocks are virtual nanoseconds and wrap; weights are in parts
//! of [`WHOLE`].
//!
//! ```
//! use warmq_decide::{Policy, WHOLE, granularity, virtual_time};
//! // Two milliseconds of a task of half the weight weigh as much as four of a whole one.
//! assert_eq!(virtual_time(2_000_000, WHOLE / 2), 4_000_000);
//! // Ten sleeps in a period of 20 ms are 500 a second, of 1 us each: formula 5-1.
//! assert_eq!(granularity(&Policy::default(), 10, WHOLE), 500_000);
//! ```

// Integers decide; floats only describe.
#![deny(clippy::float_arithmetic)]

mod groups;
mod header;
mod sleepers;
mod time;

pub use groups::{
    FIRM, Kinship, Relief, batch_goes_on, better_group, excess, fade, imbalanced, less_loaded,
    meet, relieve,
};
pub use sleepers::{Verdict, Wakeup, granularity, preempts};
pub use time::{
    LEAST_WEIGHT, WHOLE, before, bound_entity, clamp, emigrate, entity_position, first_position,
    forgive, join, keep_place, mean_with, mean_without, most_debt, place, position, share, shrink,
    slice, succession, turn, virtual_time, wait_bound,
};

/// CPUs that share a last-level cache (`struct warmq_domain`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Domain {
    /// The virtual time of a perfectly shared domain, in virtual ns.
    pub clock: u64,
    /// The weight of everything runnable in it.
    pub weight: u64,
    /// Its CPUs that are online.
    pub cpus: u64,
}

/// What a CPU chooses between: a group, the unmanaged tasks of a domain, or the tasks that may run
/// on one CPU only (`struct warmq_entity`).
///
/// Invariant: its position in the domain is `clock + shift`, wrapping.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entity {
    /// Its members' time, in virtual ns.
    pub clock: u64,
    /// From its members' time to the domain's, in virtual ns.
    pub shift: u64,
    /// The weight of its runnable members.
    pub weight: u64,
}

/// What an administrator may set (`struct warmq_policy`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Everybody runs once in it while few are runnable, and sleeps are counted within it; in ns.
    pub period: u64,
    /// The longest slice, in ns.
    pub slice_max: u64,
    /// The shortest slice, in ns.
    pub slice_min: u64,
    /// How far a sleeper may stand behind its domain's clock, in virtual ns.
    pub credit: u64,
    /// How far anything may stand apart from its domain's clock, in virtual ns.
    pub limit: u64,
    /// Granularity in ns for one sleep a second; 0: no granularity of a task's own.
    pub alpha: u64,
    /// From one wakeup preemption of a CPU to the next, in ns; 0: off.
    pub preempt_interval: u64,
    /// Shorter sleeps earn neither credit nor preemption, in ns; 0: off.
    pub min_sleep: u64,
    /// For how long a group runs in succession on one CPU while others wait, in ns.
    pub batch_budget: u64,
    /// By how many percent a place may be busier than another.
    pub imbalance: u64,
    /// How long an imbalance lasts before a group is split, in ns.
    pub patience: u64,
}

impl Default for Policy {
    fn default() -> Policy {
        let mut policy = Policy {
            period: 0,
            slice_max: 0,
            slice_min: 0,
            credit: 0,
            limit: 0,
            alpha: 0,
            preempt_interval: 0,
            min_sleep: 0,
            batch_budget: 0,
            imbalance: 0,
            patience: 0,
        };
        header::decide_default_policy(&mut policy);
        policy
    }
}

// As decide.c asserts of the other side.
const _: () = assert!(size_of::<Domain>() == 3 * size_of::<u64>());
const _: () = assert!(size_of::<Entity>() == 3 * size_of::<u64>());
const _: () = assert!(size_of::<Policy>() == 11 * size_of::<u64>());
