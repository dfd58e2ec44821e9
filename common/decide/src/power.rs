//! Clock frequency: what a CPU needs for the work that it has.

#![allow(unsafe_code, reason = "as in vruntime.rs")]

unsafe extern "C" {
    /// The part of a CPU's time that its tasks need, of 1024, after one more `window` of which they
    /// had `busy` ns.
    #[link_name = "decide_used"]
    pub safe fn used(before: u32, busy: u64, window: u64) -> u32;

    /// The speed that is asked for, of 1024.
    #[link_name = "decide_speed"]
    pub safe fn speed(used: u32) -> u32;
}
