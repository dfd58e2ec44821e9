//! Figures of spin locks, as SGI's Lockmeter prints them.

use warmq_trace::{Observer, Record, Table};
use warmq_units::{Duration, Instant, LockId};

use crate::sum;

/// The statistics of one lock.
///
/// Lockmeter's columns (Bryant, Hawkes, "Lockmeter: highly-informative instrumentation for spin
/// locks in the Linux kernel", 4th Annual Linux Showcase, 2000) and ours:
///
/// ```text
///     TOTAL      requests           requests that were granted and released, and failed attempts
///     CON        contended_share    contended / requests; contended := requests that waited at all
///     HOLD MEAN  mean_hold          held / tenures                 MAX   max_hold
///     WAIT MEAN  mean_wait          waited / contended             MAX   max_wait
///     UTIL       utilization        held / elapsed
/// ```
///
/// Lockmeter's mean wait, and so ours, is over the requests that waited and were granted, not over
/// all requests and not over attempts that gave up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockFigures {
    /// Requests that were granted and released, and attempts that found the lock held and gave up.
    pub requests: u64,
    /// Requests that had to wait, and attempts that found the lock held and gave up.
    pub contended: u64,
    /// Tenures that ended: the divisor of mean holds.
    pub tenures: u64,
    /// Requests that had to wait and were granted: the divisor of mean waits.
    pub waits: u64,
    /// The sum of all tenures.
    pub held: Duration,
    /// The longest tenure.
    pub max_hold: Duration,
    /// The sum of all waits, of all CPUs.
    pub waited: Duration,
    /// The longest wait.
    pub max_wait: Duration,
}

impl LockFigures {
    fn attempt(&mut self) {
        self.requests += 1;
        self.contended += 1;
    }

    fn tenure(&mut self, waited: Duration, held: Duration) {
        self.requests += 1;
        self.tenures += 1;
        self.contended += u64::from(waited > Duration::ZERO);
        self.waits += u64::from(waited > Duration::ZERO);
        self.held = sum(self.held, held);
        self.max_hold = self.max_hold.max(held);
        self.waited = sum(self.waited, waited);
        self.max_wait = self.max_wait.max(waited);
    }
}

/// Collects the figures of every lock from [`Record::Lock`] and [`Record::LockBusy`].
#[derive(Clone, Debug, Default)]
pub struct LockMeter {
    from: Instant,
    locks: Table<LockId, LockFigures>,
}

impl LockMeter {
    /// Counts what happens at `from` or later. A tenure that began before is left out (Lockmeter
    /// 1.5).
    pub fn starting_at(from: Instant) -> LockMeter {
        LockMeter {
            from,
            ..LockMeter::default()
        }
    }

    /// The figures of `lock`; all zero for one that was never taken.
    pub fn figures(&self, lock: LockId) -> LockFigures {
        self.locks.get(lock).copied().unwrap_or_default()
    }

    /// The figures of every lock that was taken, in the order of ids.
    pub fn all(&self) -> impl Iterator<Item = (LockId, LockFigures)> {
        self.locks.iter().map(|(lock, figures)| (lock, *figures))
    }
}

impl Observer for LockMeter {
    const DETAIL: bool = false;

    #[inline]
    fn see(&mut self, at: Instant, record: &Record) {
        match *record {
            Record::Lock {
                lock, waited, held, ..
            } if at >= self.from + held => self.locks.touch(lock).tenure(waited, held),
            Record::LockBusy { lock, .. } if at >= self.from => self.locks.touch(lock).attempt(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warmq_units::CpuId;

    use super::*;

    fn taken(lock: u16, waited: u64, held: u64) -> Record {
        let (waited, held) = (Duration::from_ns(waited), Duration::from_ns(held));
        Record::Lock {
            cpu: CpuId(0),
            lock: LockId(lock),
            waited,
            held,
        }
    }

    #[test]
    fn waits_are_averaged_over_those_who_waited() {
        let from = Instant(0) + ns(1_000);
        let mut meter = LockMeter::starting_at(from);
        meter.see(from + ns(9), &taken(1, 900, 900));
        for (waited, held) in [(0, 10), (30, 20), (10, 30), (0, 40)] {
            meter.see(from + ns(100), &taken(1, waited, held));
        }
        let figures = meter.figures(LockId(1));
        assert_eq!((figures.requests, figures.contended), (4, 2));
        assert_eq!((figures.held, figures.max_hold), (ns(100), ns(40)));
        assert_eq!((figures.waited, figures.max_wait), (ns(40), ns(30)));
    }

    fn ns(ns: u64) -> Duration {
        Duration::from_ns(ns)
    }

    /// Decision case 18 of the coloring paper's specification: contention 24 %.
    #[test]
    fn attempts_that_gave_up_count_among_the_requests_that_waited() {
        let mut meter = LockMeter::default();
        for request in 0..990 {
            let at = Instant(0) + ns(10 + request);
            meter.see(at, &taken(1, u64::from(request < 230), 2));
        }
        let busy = Record::LockBusy {
            cpu: CpuId(1),
            lock: LockId(1),
        };
        let attempts = (0..10).map(|attempt| Instant(0) + ns(1_000 + attempt));
        attempts.for_each(|at| meter.see(at, &busy));
        let figures = meter.figures(LockId(1));
        assert_eq!((figures.requests, figures.contended), (1_000, 240));
    }

    #[test]
    fn a_tenure_that_began_before_counting_is_left_out() {
        let mut meter = LockMeter::starting_at(Instant(0) + ns(50));
        meter.see(Instant(0) + ns(60), &taken(1, 0, 50));
        assert_eq!(meter.figures(LockId(1)), LockFigures::default());
        meter.see(Instant(0) + ns(75), &taken(1, 0, 5));
        assert_eq!(meter.figures(LockId(1)).max_hold, ns(5));
    }

    #[test]
    fn a_lock_that_nobody_took_has_figures_of_zero() {
        let figures = LockMeter::default().figures(LockId(3));
        assert_eq!(figures, LockFigures::default());
    }

    proptest! {
        #[test]
        fn a_mean_never_passes_the_maximum_and_locks_do_not_mix(
            tenures in prop::collection::vec((0u16..3, 0u64..1000, 0u64..1000), 0..50)
        ) {
            let mut meter = LockMeter::default();
            for (lock, waited, held) in &tenures {
                meter.see(Instant::START + ns(*held), &taken(*lock, *waited, *held));
            }
            for (_, figures) in meter.all() {
                prop_assert!(figures.max_hold <= figures.held);
                prop_assert!(figures.max_wait <= figures.waited);
                prop_assert!(figures.contended <= figures.requests);
            }
            let requests: u64 = meter.all().map(|(_, figures)| figures.requests).sum();
            prop_assert_eq!(requests, tenures.len() as u64);
        }
    }
}
