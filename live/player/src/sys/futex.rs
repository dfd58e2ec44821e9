//! Futexes that several processes share.

use std::sync::atomic::{AtomicU32, Ordering};

use super::clock::timespec;

/// Sleeps while `word` is `expected`, at most until `deadline_ns` of the monotonic clock. It may
/// return early: look at the word again.
pub fn wait(word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) {
    let deadline = deadline_ns.map(timespec);
    let deadline = deadline
        .as_ref()
        .map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `word` lives as long as the call, `deadline` is null or a valid timespec. The kernel
    // only reads both.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET,
            expected,
            deadline,
            std::ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        );
    }
}

/// Wakes at most `count` of those that wait on `word`. May be called in a signal handler.
pub fn wake(word: &AtomicU32, count: u32) {
    // SAFETY: `word` lives as long as the call; the kernel takes only its address.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, count);
    }
}

/// Sets `word` to `value` and wakes all that wait on it.
pub fn set(word: &AtomicU32, value: u32) {
    word.store(value, Ordering::Release);
    wake(word, i32::MAX as u32);
}
