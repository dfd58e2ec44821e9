//! Futexes that several processes share.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex;

use super::clock::{now_ns, timespec};
use super::memory::Shared;

/// A futex by itself: a word in a line of its own that never changes.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Futex(AtomicU32);

// SAFETY: an atomic.
unsafe impl Shared for Futex {}

impl Futex {
    /// Sleeps until it is woken, at most for `timeout_ns`. It may return early.
    pub fn wait(&self, timeout_ns: Option<u64>) {
        wait(&self.0, 0, timeout_ns.map(after));
    }

    /// Wakes one that sleeps in it, or all.
    pub fn wake(&self, all: bool) {
        wake(&self.0, if all { i32::MAX as u32 } else { 1 });
    }
}

/// The time of the monotonic clock so much from now.
pub fn after(ns: u64) -> u64 {
    now_ns().saturating_add(ns)
}

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
