//! Cores of several CPUs: when a task that runs beside busy siblings goes to another core.

#![allow(unsafe_code, reason = "as in vruntime.rs")]

use crate::{Policy, Reach};

unsafe extern "C" {
    /// The most CPUs of a core (`WARMQ_CORE_CPUS`).
    #[link_name = "decide_core_cpus"]
    pub safe static CORE_CPUS: u32;

    /// How much a task gains on an idle CPU whose core has `busy_there` busy CPUs, if its own has
    /// `busy` beside it; 0: nothing.
    #[link_name = "decide_core_gain"]
    pub safe fn core_gain(busy: u32, busy_there: u32, reach: Reach) -> u32;

    /// Whether a task goes to a better core: one was there for `lasted` ns, and a task left its own
    /// `since` ns ago.
    #[link_name = "decide_leaves_core"]
    pub safe fn leaves_core(policy: &Policy, reach: Reach, lasted: u64, since: u64) -> bool;

    /// Whether a group of `weight` may go with a task to a CPU of load `there`, from its home of
    /// load `here`.
    #[link_name = "decide_group_comes_along"]
    pub safe fn group_comes_along(weight: u64, here: u64, there: u64) -> bool;
}
