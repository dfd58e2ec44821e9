//! The kinds of spin locks that Linux has had.

mod traffic;

use std::collections::VecDeque;

use warmq_units::{Address, CpuId, Duration, Instant};

use crate::core::memory::Memory;

pub(crate) use traffic::Spinning;

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

    /// `cpu` requests the lock. Returns how long taking it takes, or `None` if it is held: then
    /// `cpu` spins until [`SpinLock::release`] hands it over.
    pub(crate) fn request(
        &mut self,
        spinning: &Spinning,
        memory: &mut Memory,
        cpu: CpuId,
        now: Instant,
    ) -> Option<Duration> {
        if self.holder.is_some() {
            spinning.arrives(memory, self, cpu, now);
            self.waiters.push_back((cpu, now));
            return None;
        }
        let granted = now + spinning.takes(memory, self.address, cpu, now);
        self.grant(cpu, granted, Duration::ZERO);
        Some(granted + spinning.stamp(memory, self, cpu, granted) - now)
    }

    /// `cpu` takes the lock if it is free. Returns whether it did, and how long that took.
    pub(crate) fn try_request(
        &mut self,
        spinning: &Spinning,
        memory: &mut Memory,
        cpu: CpuId,
        now: Instant,
    ) -> (bool, Duration) {
        let takes = spinning.takes(memory, self.address, cpu, now);
        let free = self.holder.is_none();
        if free {
            self.grant(cpu, now + takes, Duration::ZERO);
        } else {
            spinning.read_again(memory, self, now + takes);
        }
        (free, takes)
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

    /// The holder `cpu` releases the lock, and one of the spinning CPUs gets it. `None` if `cpu` is
    /// not the holder.
    pub(crate) fn release(
        &mut self,
        spinning: &Spinning,
        memory: &mut Memory,
        cpu: CpuId,
        now: Instant,
    ) -> Option<Released> {
        if self.holder != Some(cpu) {
            return None;
        }
        let (waited, held) = (self.waited, now.since(self.granted_at));
        self.holder = None;
        let store = spinning.takes(memory, self.address, cpu, now);
        let next_owner = self.hand_over(spinning, memory, cpu, now + store);
        Some(Released {
            waited,
            held,
            store,
            next_owner,
        })
    }

    /// Hands the lock over to one of the waiters, after `from` released it at `at`.
    fn hand_over(
        &mut self,
        spinning: &Spinning,
        memory: &mut Memory,
        from: CpuId,
        at: Instant,
    ) -> Option<(CpuId, Instant)> {
        let index = spinning.next_owner(&self.waiters, from)?;
        let (next, since) = self.waiters.remove(index)?;
        let granted = spinning.hands_over(memory, self, next, at);
        self.grant(next, granted, granted - since);
        Some((next, granted + spinning.stamp(memory, self, next, granted)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::memory::Memory;
    use crate::words::LockKind;

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
                lock.request(&spinning, &mut memory, CpuId(cpu), Instant(now))
            };
            assert!(ask(&mut lock, 0, 10).is_some());
            for (cpu, now) in [(5, 11), (2, 12), (1, 13)] {
                assert!(ask(&mut lock, cpu, now).is_none());
            }
            let mut holder = CpuId(0);
            for next in order {
                let released = lock
                    .release(&spinning, &mut memory, holder, Instant(20))
                    .unwrap();
                holder = released.next_owner.expect("a CPU waits").0;
                assert_eq!(holder, CpuId(next), "{kind:?}");
            }
        }
    }

    #[test]
    fn only_the_holder_releases() {
        let (mut lock, spinning, mut memory) = lock(LockKind::Queued);
        lock.request(&spinning, &mut memory, CpuId(0), Instant(10));
        lock.request(&spinning, &mut memory, CpuId(1), Instant(11));
        let release = lock.release(&spinning, &mut memory, CpuId(1), Instant(12));
        assert!(release.is_none(), "cpu1 still waits");
    }
}
