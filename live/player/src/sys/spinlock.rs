//! Spin locks of user space that several processes share.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::futex;
use super::memory::Shared;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and whoever releases it wakes one that sleeps.
const MARKED: u32 = 2;

/// A spin lock: one word in a line of its own. Zero bytes are one that is free.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Spinlock(AtomicU32);

// SAFETY: an atomic.
unsafe impl Shared for Spinlock {}

impl Spinlock {
    /// Looks at it at once, and up to `looks` times more with `pause` before each; takes it if it
    /// is free. Returns whether it did, and how many looks that took besides the first.
    #[inline]
    pub fn look(&self, looks: u64, pause: impl Fn()) -> (bool, u64) {
        if self.take_if_free() {
            return (true, 0);
        }
        for look in 1..=looks {
            pause();
            if self.take_if_free() {
                return (true, look);
            }
        }
        (false, looks)
    }

    /// Reads before it writes, so that those who look share the line.
    #[inline]
    fn take_if_free(&self) -> bool {
        let taken = || self.0.compare_exchange(FREE, HELD, Acquire, Relaxed);
        self.0.load(Relaxed) == FREE && taken().is_ok()
    }

    /// Takes it; sleeps in its futex while it is held.
    pub fn sleep(&self) {
        while self.0.swap(MARKED, Acquire) != FREE {
            futex::wait(&self.0, MARKED, None);
        }
    }

    /// Releases it, and wakes one that sleeps if any may.
    #[inline]
    pub fn release(&self) {
        if self.0.swap(FREE, Release) == MARKED {
            futex::wake(&self.0, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// Threads that add to a number by a load and a store, under a lock that is taken by `take`.
    fn sum(take: impl Fn(&Spinlock) + Sync) -> u64 {
        let (lock, number) = (Spinlock::default(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        take(&lock);
                        let before = number.load(Relaxed);
                        number.store(before + 1, Relaxed);
                        lock.release();
                    }
                });
            }
        });
        assert_eq!(lock.0.load(Relaxed), FREE);
        number.into_inner()
    }

    #[test]
    fn one_task_at_a_time_holds_it() {
        assert_eq!(sum(Spinlock::sleep), 6_000);
        let yields = |lock: &Spinlock| {
            while !lock.look(10, std::hint::spin_loop).0 {
                std::thread::yield_now();
            }
        };
        assert_eq!(sum(yields), 6_000);
        // Tasks that wait by different rules wait for one another.
        let number = AtomicU64::new(0);
        let either = |lock: &Spinlock| match number.fetch_add(1, Relaxed) % 2 {
            0 => lock.sleep(),
            _ => yields(lock),
        };
        assert_eq!(sum(either), 6_000);
    }

    #[test]
    fn looks_are_counted_and_end() {
        let (lock, pauses) = (Spinlock::default(), AtomicU64::new(0));
        let pause = || _ = pauses.fetch_add(1, Relaxed);
        assert_eq!(lock.look(5, pause), (true, 0));
        assert_eq!(lock.look(5, pause), (false, 5));
        assert_eq!(lock.look(0, pause), (false, 0));
        let frees = || {
            if pauses.fetch_add(1, Relaxed) == 7 {
                lock.release();
            }
        };
        assert_eq!(lock.look(5, frees), (true, 3));
        assert_eq!(pauses.into_inner(), 8);
    }
}
