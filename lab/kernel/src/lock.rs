//! Spin locks with FIFO waiting, and what Lockmeter would say of them.

use std::collections::VecDeque;

use warmq_units::{Address, CpuId, Duration, Instant};

/// A spin lock. Its spinners burn their CPU with interrupts off.
///
/// Invariant: whoever waits, waits behind a holder.
#[derive(Debug)]
pub struct SpinLock {
    /// Where the lock's word lies; taking it is a write there.
    pub(crate) address: Address,
    holder: Option<CpuId>,
    granted_at: Instant,
    waited: Duration,
    waiters: VecDeque<(CpuId, Instant)>,
    figures: LockFigures,
}

/// Lockmeter's figures of one lock.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LockFigures {
    /// The lock's name.
    pub name: &'static str,
    /// How often it was asked for.
    pub requests: u64,
    /// How many of these found it held.
    pub contended: u64,
    /// How long it was held, in all.
    pub held: Duration,
    /// The longest tenure since time started, warm-up included, so that it sees the first walks with
    /// cold caches. An assumption: see docs/fidelity.md.
    pub held_max: Duration,
    /// How long CPUs spun for it, in all.
    pub waited: Duration,
    /// The longest wait.
    pub waited_max: Duration,
    /// How many tenures ended: the divisor of mean holds.
    pub releases: u64,
}

impl SpinLock {
    pub(crate) fn new(name: &'static str, address: Address) -> SpinLock {
        SpinLock {
            address,
            holder: None,
            granted_at: Instant::START,
            waited: Duration::ZERO,
            waiters: VecDeque::new(),
            figures: LockFigures {
                name,
                ..LockFigures::default()
            },
        }
    }

    pub(crate) fn figures(&self) -> &LockFigures {
        &self.figures
    }

    pub(crate) fn reset_figures(&mut self) {
        let LockFigures { name, held_max, .. } = self.figures;
        self.figures = LockFigures {
            name,
            held_max,
            ..LockFigures::default()
        };
    }

    /// `cpu` asks for the lock. True when it has it; else it spins until [`SpinLock::release`]
    /// hands the lock over.
    pub(crate) fn request(&mut self, cpu: CpuId, now: Instant) -> bool {
        self.figures.requests += 1;
        if self.holder.is_some() {
            self.figures.contended += 1;
            self.waiters.push_back((cpu, now));
            return false;
        }
        self.grant(cpu, now, Duration::ZERO);
        true
    }

    /// `cpu` takes the lock if nobody holds it.
    pub(crate) fn try_request(&mut self, cpu: CpuId, now: Instant) -> bool {
        self.figures.requests += 1;
        if self.holder.is_some() {
            self.figures.contended += 1;
            return false;
        }
        self.grant(cpu, now, Duration::ZERO);
        true
    }

    fn grant(&mut self, cpu: CpuId, now: Instant, waited: Duration) {
        self.holder = Some(cpu);
        self.granted_at = now;
        self.waited = waited;
        self.figures.waited += waited;
        self.figures.waited_max = self.figures.waited_max.max(waited);
    }

    /// The holder lets go, and the one that waited longest gets the lock.
    ///
    /// Returns how long it had waited for and held the lock, and who holds it now; `None` when
    /// `cpu` is not the holder.
    pub(crate) fn release(&mut self, cpu: CpuId, now: Instant) -> Option<Released> {
        if self.holder != Some(cpu) {
            return None;
        }
        let (waited, held) = (self.waited, now - self.granted_at);
        self.figures.releases += 1;
        self.figures.held += held;
        self.figures.held_max = self.figures.held_max.max(held);
        self.holder = None;
        let next_owner = self.waiters.pop_front().map(|(next_owner, since)| {
            self.grant(next_owner, now, now - since);
            next_owner
        });
        Some(Released {
            waited,
            held,
            next_owner,
        })
    }
}

/// What a release tells.
pub(crate) struct Released {
    pub(crate) waited: Duration,
    pub(crate) held: Duration,
    pub(crate) next_owner: Option<CpuId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_are_served_in_the_order_of_asking() {
        let mut lock = SpinLock::new("queue", Address(0));
        assert!(lock.request(CpuId(0), Instant(10)));
        assert!(!lock.request(CpuId(2), Instant(12)));
        assert!(!lock.request(CpuId(1), Instant(13)));
        assert!(!lock.try_request(CpuId(3), Instant(14)));
        let first = lock.release(CpuId(0), Instant(20)).unwrap();
        assert_eq!(
            (first.held, first.next_owner),
            (Duration(10), Some(CpuId(2)))
        );
        assert!(
            lock.release(CpuId(1), Instant(21)).is_none(),
            "cpu1 still waits"
        );
        let second = lock.release(CpuId(2), Instant(25)).unwrap();
        assert_eq!(
            (second.waited, second.next_owner),
            (Duration(8), Some(CpuId(1)))
        );
        lock.release(CpuId(1), Instant(26)).unwrap();
        let figures = lock.figures();
        assert_eq!(
            (figures.requests, figures.contended, figures.releases),
            (4, 3, 3)
        );
        assert_eq!(
            (figures.held, figures.held_max),
            (Duration(16), Duration(10))
        );
        assert_eq!(
            (figures.waited, figures.waited_max),
            (Duration(20), Duration(12))
        );
    }
}
