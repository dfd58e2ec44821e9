//! Futexes that several processes share.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex;

use super::clock::timespec;

/// Sleeps while `word` is `expected`, at most until `deadline_ns` of the monotonic clock. It may
/// return early: look at the word again.
pub fn wait(word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) {
    let deadline = deadline_ns.map(timespec);
    let (shared, any) = (futex::Flags::empty(), NonZeroU32::MAX);
    let _ = futex::wait_bitset(word, shared, expected, deadline.as_ref(), any);
}

/// Wakes at most `count` of those that wait on `word`. May be called in a signal handler.
pub fn wake(word: &AtomicU32, count: u32) {
    let _ = futex::wake(word, futex::Flags::empty(), count);
}

/// Sets `word` to `value` and wakes all that wait on it.
pub fn set(word: &AtomicU32, value: u32) {
    word.store(value, Ordering::Release);
    wake(word, i32::MAX as u32);
}
