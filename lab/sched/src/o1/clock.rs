//! The clock that sleeps and runs are measured with (`sched_clock()`).

use warmq_units::{Duration, Instant};

/// What `sched_clock()` reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The count of jiffies. Only readings are rounded: events keep their exact times.
    Jiffies,
    /// The time stamp counter.
    Tsc,
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    source: Source,
    /// A jiffy, in ns.
    jiffy: u64,
    /// When CPU 0's tick counts the first jiffy, in ns after the start: the ticks of n CPUs follow
    /// each other at an n-th of a jiffy, the last at a whole one.
    first: u64,
}

impl Clock {
    pub(super) fn new(source: Source, tick: Duration, cpus: u16) -> Clock {
        let jiffy = tick.as_ns().max(1);
        let first = jiffy / u64::from(cpus.max(1));
        Clock {
            source,
            jiffy,
            first,
        }
    }

    /// Jiffies counted by `at`.
    pub(super) fn jiffies(&self, at: Instant) -> u64 {
        let since = at.since(Instant::START).as_ns();
        (since + self.jiffy - self.first) / self.jiffy
    }

    /// What the clock reads at `at`, in ns.
    pub(super) fn read(&self, at: Instant) -> u64 {
        match self.source {
            Source::Jiffies => self.jiffies(at) * self.jiffy,
            Source::Tsc => at.since(Instant::START).as_ns(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::credit::{Activated, Credit, DynamicPriority, Variants, credit};
    use super::super::release::Release;
    use super::super::rules::{Follows, MS, Rules};
    use super::*;

    const JIFFY: Duration = Duration::from_ms(4);

    /// What a clock says of a span of 10 us before, over and after a tick.
    fn span(source: Source, from_us: u64) -> u64 {
        let clock = Clock::new(source, JIFFY, 1);
        let at = |us| Instant::START + Duration::from_us(us);
        clock.read(at(from_us + 10)) - clock.read(at(from_us))
    }

    /// Decision case 10 of the specification.
    #[test]
    fn on_the_jiffy_clock_a_short_span_is_a_tick_or_nothing() {
        let rules = Rules::new(Release::V2_6_16, JIFFY);
        let (no_tick, a_tick) = (3_000, 3_995);
        let ran = |from| rules.debited(1000 * MS, span(Source::Jiffies, from));
        assert_eq!((ran(no_tick), ran(a_tick)), (1000 * MS, 999_600_000));
        let variants = Variants {
            dynamic_priority: DynamicPriority::On,
            activated: Follows::Source,
            wrap32: false,
            compares_raw: false,
        };
        let slept = Credit {
            user: true,
            activated: Activated::No,
            nice: 0,
            sleep_avg: 850 * MS,
            slept: span(Source::Jiffies, a_tick),
            min_sleep_ms: None,
        };
        assert_eq!(credit(&rules, &variants, &slept).sleep_avg, 858 * MS);
        assert_eq!(span(Source::Tsc, a_tick), 10_000);
    }

    /// The first tick of CPU 0 of two comes after half a jiffy.
    #[test]
    fn the_first_cpu_counts_jiffies() {
        let clock = Clock::new(Source::Jiffies, JIFFY, 2);
        let counted = [0, 1_999, 2_000, 5_999, 6_000]
            .map(|us| clock.jiffies(Instant::START + Duration::from_us(us)));
        assert_eq!(counted, [0, 0, 1, 1, 2]);
    }
}
