//! The numbers and paths of `warmq_abi.h`, for programs that speak to the kernel or read the
//! scheduler's tables themselves: the loader and the drills.
//!
//! They are symbols of `calls.c`, so that each stands once: in the header, which says what they
//! mean.

#![allow(
    unsafe_code,
    reason = "reads constants of C; nothing for a caller to uphold"
)]

use core::ffi::{CStr, c_char};

unsafe extern "C" {
    safe fn warmq_hint_pins() -> *const c_char;
    safe fn warmq_hint_slots() -> *const c_char;

    /// The option of `prctl` that takes a hint.
    #[link_name = "warmq_hint_prctl_hint"]
    pub safe static PRCTL_HINT: i32;
    /// The answer of `prctl` to a thread that should yield, because its fragment's home is
    /// elsewhere.
    #[link_name = "warmq_hint_answer_move"]
    pub safe static ANSWER_MOVE: i32;
    /// How many CPUs the scheduler has room for.
    #[link_name = "warmq_hint_max_cpus"]
    pub safe static MAX_CPUS: u32;
    /// How many cache domains it has room for; also the "domain" of a CPU that is offline.
    #[link_name = "warmq_hint_max_domains"]
    pub safe static MAX_DOMAINS: u32;
    /// How many groups it has room for, group 0 included, which is never used.
    #[link_name = "warmq_hint_max_groups"]
    pub safe static MAX_GROUPS: u32;
    /// The entity of the tasks that may run on CPU 0 only; those of other CPUs follow.
    #[link_name = "warmq_hint_pinned_base"]
    pub safe static PINNED_BASE: u32;
    /// The entity of group 0; those of other groups follow.
    #[link_name = "warmq_hint_group_base"]
    pub safe static GROUP_BASE: u32;
}

/// The folder in which a running scheduler leaves its maps.
pub fn pins() -> &'static str {
    text(warmq_hint_pins())
}

/// The map that takes slots, in that folder.
pub fn slots() -> &'static str {
    text(warmq_hint_slots())
}

/// A string literal of `calls.c`.
fn text(literal: *const c_char) -> &'static str {
    // SAFETY: a literal ends with a zero, and is never changed or freed.
    let text = unsafe { CStr::from_ptr(literal) };
    text.to_str().expect("a path in ASCII")
}
