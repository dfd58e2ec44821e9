//! Spin locks as kernels have had them, and what Lockmeter would say of them.

mod traffic;

use std::collections::VecDeque;
use std::fmt;

use warmq_units::{Address, CpuId, Duration, Instant};

use crate::memory::Memory;
pub(crate) use traffic::Spinning;

/// How a kernel's spin locks work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LockKind {
    /// `lock decb` until it finds the lock free (Linux on x86 up to 2.6.24). No fairness: of the
    /// CPUs that spin, the one that the bus serves first wins.
    #[default]
    TestAndSet,
    /// Each takes a number and waits for its turn (2.6.25 to 4.1). First come, first served.
    Ticket,
    /// Each waits on a line of its own, only the first on the lock's word (since 4.2). First come,
    /// first served.
    Queued,
}

impl fmt::Display for LockKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            LockKind::TestAndSet => "test-and-set",
            LockKind::Ticket => "ticket",
            LockKind::Queued => "queued",
        })
    }
}

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
    /// Tenures that began before this are not counted.
    counts_from: Instant,
}

/// Lockmeter's figures of one lock.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LockFigures {
    /// The lock's name.
    pub name: &'static str,
    /// How often it was asked for.
    pub requests: u64,
    /// How many of these found it held; attempts that give up at once count too.
    pub contended: u64,
    /// How long it was held, in all: from after the acquisition to before the store that releases.
    pub held: Duration,
    /// The longest tenure.
    pub held_max: Duration,
    /// How long CPUs spun for it, in all.
    pub waited: Duration,
    /// The longest wait.
    pub waited_max: Duration,
    /// How many tenures ended: the divisor of mean holds.
    pub releases: u64,
}

/// What a release tells.
pub(crate) struct Released {
    pub(crate) waited: Duration,
    pub(crate) held: Duration,
    /// How long the store that releases takes.
    pub(crate) store: Duration,
    /// Who holds the lock now, and when it goes on with it.
    pub(crate) next_owner: Option<(CpuId, Instant)>,
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
            counts_from: Instant::START,
        }
    }

    pub(crate) fn figures(&self) -> &LockFigures {
        &self.figures
    }

    /// Forgets what was counted. A tenure that began before does not count when it ends, as
    /// Lockmeter 1.5 has it.
    pub(crate) fn reset_figures(&mut self, now: Instant) {
        self.figures = LockFigures {
            name: self.figures.name,
            ..LockFigures::default()
        };
        self.counts_from = now;
    }

    /// `cpu` asks for the lock. Returns how long taking it takes; `None` when it is held, and `cpu`
    /// spins until [`SpinLock::release`] hands it over.
    pub(crate) fn request(
        &mut self,
        spinning: &Spinning,
        memory: &mut Memory,
        cpu: CpuId,
        now: Instant,
    ) -> Option<Duration> {
        self.figures.requests += 1;
        if self.holder.is_some() {
            self.figures.contended += 1;
            spinning.arrives(memory, self, cpu, now);
            self.waiters.push_back((cpu, now));
            return None;
        }
        let granted = now + spinning.takes(memory, self.address, cpu, now);
        self.grant(cpu, granted, Duration::ZERO);
        Some(granted + spinning.stamp(memory, self, cpu, granted) - now)
    }

    /// `cpu` takes the lock if nobody holds it. Returns whether it did, and how long that took.
    pub(crate) fn try_request(
        &mut self,
        spinning: &Spinning,
        memory: &mut Memory,
        cpu: CpuId,
        now: Instant,
    ) -> (bool, Duration) {
        self.figures.requests += 1;
        let takes = spinning.takes(memory, self.address, cpu, now);
        let free = self.holder.is_none();
        if free {
            self.grant(cpu, now + takes, Duration::ZERO);
        } else {
            self.figures.contended += 1;
            spinning.read_again(memory, self, now + takes);
        }
        (free, takes)
    }

    fn grant(&mut self, cpu: CpuId, at: Instant, waited: Duration) {
        self.holder = Some(cpu);
        self.granted_at = at;
        self.waited = waited;
        self.figures.waited += waited;
        self.figures.waited_max = self.figures.waited_max.max(waited);
    }

    /// The holder lets go, and one of those who spin gets the lock; `None` when `cpu` is not the
    /// holder.
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
        if self.granted_at >= self.counts_from {
            self.figures.releases += 1;
            self.figures.held += held;
            self.figures.held_max = self.figures.held_max.max(held);
        }
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

    /// `from` has stored that the lock is free, at `at`.
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
    use crate::memory::Memory;
    use proptest::prelude::*;

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
    fn tickets_and_queues_serve_in_the_order_of_asking_and_test_and_set_in_that_of_the_bus() {
        let table = [
            (LockKind::TestAndSet, [1, 2, 5]),
            (LockKind::Ticket, [5, 2, 1]),
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
                holder = released.next_owner.expect("somebody waits").0;
                assert_eq!(holder, CpuId(next), "{kind:?}");
            }
        }
    }

    #[test]
    fn only_the_holder_releases() {
        let (mut lock, spinning, mut memory) = lock(LockKind::Ticket);
        lock.request(&spinning, &mut memory, CpuId(0), Instant(10));
        lock.request(&spinning, &mut memory, CpuId(1), Instant(11));
        let release = lock.release(&spinning, &mut memory, CpuId(1), Instant(12));
        assert!(release.is_none(), "cpu1 still waits");
    }

    /// Decision case 18 of the coloring paper's specification: contention 24 %.
    #[test]
    fn lockmeter_counts_failed_attempts_among_the_requests_that_waited() {
        let (mut lock, spinning, mut memory) = lock(LockKind::TestAndSet);
        let (mut at_once, mut spun, mut failed) = (0, 0, 0);
        for request in 0..760 {
            let now = Instant(request * 100);
            at_once += u32::from(
                lock.request(&spinning, &mut memory, CpuId(0), now)
                    .is_some(),
            );
            if request < 230 {
                spun += u32::from(
                    lock.request(&spinning, &mut memory, CpuId(1), now)
                        .is_none(),
                );
            }
            if request >= 750 {
                let (taken, _) = lock.try_request(&spinning, &mut memory, CpuId(2), now);
                failed += u32::from(!taken);
            }
            lock.release(&spinning, &mut memory, CpuId(0), now + Duration(10));
            lock.release(&spinning, &mut memory, CpuId(1), now + Duration(20));
        }
        assert_eq!((at_once, spun, failed), (760, 230, 10));
        let figures = lock.figures();
        assert_eq!((figures.requests, figures.contended), (1_000, 240));
        assert_eq!(figures.releases, 990);
    }

    #[test]
    fn a_tenure_that_began_before_counting_is_left_out() {
        let (mut lock, spinning, mut memory) = lock(LockKind::TestAndSet);
        lock.request(&spinning, &mut memory, CpuId(0), Instant(10));
        lock.reset_figures(Instant(50));
        lock.release(&spinning, &mut memory, CpuId(0), Instant(60));
        assert_eq!(
            (lock.figures().held_max, lock.figures().releases),
            (Duration(0), 0)
        );
        lock.request(&spinning, &mut memory, CpuId(1), Instant(70));
        lock.release(&spinning, &mut memory, CpuId(1), Instant(75));
        assert_eq!(
            (lock.figures().held_max, lock.figures().releases),
            (Duration(5), 1)
        );
    }

    proptest! {
        /// Whoever asks gets the lock in the end, one at a time.
        #[test]
        fn nobody_is_forgotten(
            kind in prop::sample::select(vec![LockKind::TestAndSet, LockKind::Ticket, LockKind::Queued]),
            asks in prop::collection::vec((0u16..8, 0u64..30), 1..60),
        ) {
            let (mut lock, spinning, mut memory) = lock(kind);
            let (mut now, mut holder, mut waiting) = (0, None, std::collections::BTreeSet::new());
            for (cpu, later) in asks {
                now += later;
                if holder == Some(cpu) {
                    let released = lock
                        .release(&spinning, &mut memory, CpuId(cpu), Instant(now))
                        .expect("it holds the lock");
                    holder = released.next_owner.map(|(next, _)| next.0);
                    prop_assert!(holder.is_none_or(|next| waiting.remove(&next)));
                } else if !waiting.contains(&cpu) {
                    match lock.request(&spinning, &mut memory, CpuId(cpu), Instant(now)) {
                        Some(_) => prop_assert_eq!(holder.replace(cpu), None),
                        None => prop_assert!(waiting.insert(cpu)),
                    }
                }
                prop_assert!(holder.is_some() || waiting.is_empty());
            }
        }
    }
}
