//! The kinds of spin locks that Linux has had.

mod traffic;

use std::collections::VecDeque;

use warmq_units::{Address, CpuId, Duration, Instant};

pub(crate) use traffic::{Spinning, Word};

/// A spin lock. CPUs that spin for it are busy, with interrupts off.
///
/// Invariant: CPUs wait only while another holds the lock.
#[derive(Debug, Default)]
pub struct SpinLock {
    /// The lock's name.
    pub(crate) name: &'static str,
    /// The address of the lock's word; taking the lock writes to it.
    pub(crate) address: Address,
    holder: Option<CpuId>,
    granted_at: Instant,
    waited: Duration,
    waiters: VecDeque<(CpuId, Instant)>,
}

/// The effects of a release.
pub(crate) struct Released {
    pub(crate) waited: Duration,
    pub(crate) held: Duration,
    /// How long the releasing store takes.
    pub(crate) store: Duration,
    /// The next owner, and when it continues with the lock.
    pub(crate) next_owner: Option<(CpuId, Instant)>,
}

impl SpinLock {
    pub(crate) fn new(name: &'static str, address: Address) -> SpinLock {
        SpinLock {
            address,
            name,
            ..SpinLock::default()
        }
    }

    /// Whether `cpu` holds it.
    pub(crate) fn is_held_by(&self, cpu: CpuId) -> bool {
        self.holder == Some(cpu)
    }

    fn grant(&mut self, cpu: CpuId, at: Instant, waited: Duration) {
        self.holder = Some(cpu);
        self.granted_at = at;
        self.waited = waited;
    }
}

impl Word<'_> {
    /// `cpu` requests the lock. Returns how long taking it takes, or `None` if it is held: then
    /// `cpu` spins until [`Word::release`] hands it over.
    pub(crate) fn request(&mut self, cpu: CpuId, now: Instant) -> Option<Duration> {
        if self.lock.holder.is_some() {
            self.arrives(cpu, now);
            self.lock.waiters.push_back((cpu, now));
            return None;
        }
        let granted = now + self.takes(cpu, now);
        self.lock.grant(cpu, granted, Duration::ZERO);
        Some(granted + self.stamp(cpu, granted) - now)
    }

    /// `cpu` takes the lock if it is free. Returns whether it did, and how long that took.
    pub(crate) fn try_request(&mut self, cpu: CpuId, now: Instant) -> (bool, Duration) {
        let takes = self.takes(cpu, now);
        let free = self.lock.holder.is_none();
        if free {
            self.lock.grant(cpu, now + takes, Duration::ZERO);
        } else {
            self.read_again(now + takes);
        }
        (free, takes)
    }

    /// The holder `cpu` releases the lock, and one of the spinning CPUs gets it. `None` if `cpu` is
    /// not the holder.
    pub(crate) fn release(&mut self, cpu: CpuId, now: Instant) -> Option<Released> {
        if self.lock.holder != Some(cpu) {
            return None;
        }
        let (waited, held) = (self.lock.waited, now.since(self.lock.granted_at));
        self.lock.holder = None;
        let store = self.takes(cpu, now);
        let next_owner = self.hand_over(cpu, now + store);
        Some(Released {
            waited,
            held,
            store,
            next_owner,
        })
    }

    /// Hands the lock over to one of the waiters, after `from` released it at `at`.
    fn hand_over(&mut self, from: CpuId, at: Instant) -> Option<(CpuId, Instant)> {
        let index = self.next_owner(from)?;
        let (next, since) = self.lock.waiters.remove(index)?;
        let granted = self.hands_over(next, at);
        self.lock.grant(next, granted, granted - since);
        Some((next, granted + self.stamp(next, granted)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::memory::Memory;
    use crate::words::LockKind;
    use traffic::tests::word;

    fn lock(kind: LockKind) -> (SpinLock, Spinning, Memory) {
        let nodes = (0..8).map(|cpu| Address(0x1000 + cpu * 0x40)).collect();
        let spinning = Spinning::new(kind, nodes);
        (
            SpinLock::new("queue", Address(0)),
            spinning,
            traffic::tests::memory(false),
        )
    }

    #[test]
    fn queues_serve_in_the_order_of_asking_and_test_and_set_in_that_of_the_bus() {
        let table = [
            (LockKind::TestAndSet, [1, 2, 5]),
            (LockKind::Queued, [5, 2, 1]),
        ];
        for (kind, order) in table {
            let (mut lock, spinning, mut memory) = lock(kind);
            let mut ask = |lock: &mut SpinLock, cpu, now| {
                word(lock, &spinning, &mut memory).request(CpuId(cpu), Instant(now))
            };
            assert!(ask(&mut lock, 0, 10).is_some());
            for (cpu, now) in [(5, 11), (2, 12), (1, 13)] {
                assert!(ask(&mut lock, cpu, now).is_none());
            }
            let mut holder = CpuId(0);
            for next in order {
                let released = word(&mut lock, &spinning, &mut memory)
                    .release(holder, Instant(20))
                    .unwrap();
                holder = released.next_owner.expect("a CPU waits").0;
                assert_eq!(holder, CpuId(next), "{kind:?}");
            }
        }
    }

    #[test]
    fn only_the_holder_releases() {
        let (mut lock, spinning, mut memory) = lock(LockKind::Queued);
        word(&mut lock, &spinning, &mut memory).request(CpuId(0), Instant(10));
        word(&mut lock, &spinning, &mut memory).request(CpuId(1), Instant(11));
        let release = word(&mut lock, &spinning, &mut memory).release(CpuId(1), Instant(12));
        assert!(release.is_none(), "cpu1 still waits");
    }
}
