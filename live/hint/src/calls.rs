//! The functions of `calls.c`. None takes a pointer, and each may be called from any thread.

#![allow(
    unsafe_code,
    reason = "declares C functions; numbers in, numbers out, nothing for a caller to uphold"
)]

unsafe extern "C" {
    pub safe fn warmq_hint_return_to(hint: u64) -> i32;
    pub safe fn warmq_hint_listening() -> i32;
    pub safe fn warmq_hint_current() -> u64;
    pub safe fn warmq_hint_pack(app: u32, fragment: u32) -> u64;
    pub safe fn warmq_hint_app(hint: u64) -> u32;
    pub safe fn warmq_hint_fragment(hint: u64) -> u32;
}
