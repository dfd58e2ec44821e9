//! How much of a CPU real-time tasks may have (`sched_rt_runtime_exceeded()`,
//! `do_sched_rt_period_timer()`; until 6.11).
//!
//! What they ran adds up. When it is more than the runtime, which is seen when they are charged,
//! they wait, also if nobody else wants the CPU. At the end of each period a runtime is taken off,
//! and they go on if less than one is left: what they had too much is missing in the next period.
//! A CPU borrows nothing from others (RT_RUNTIME_SHARE).

/// What the real-time tasks of one CPU have had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttle {
    ran: i64,
    holds: bool,
}

impl Throttle {
    /// Whether its real-time tasks wait for the end of a period.
    pub fn holds(self) -> bool {
        self.holds
    }

    /// What they had and has not been taken off, in ns.
    pub fn ran(self) -> i64 {
        self.ran
    }

    /// Who is above the fair tasks ran for `ran` ns; deadline tasks count, and go on.
    pub fn add(&mut self, ran: i64) {
        self.ran += ran;
    }

    /// Whether real-time tasks have had more than `runtime`, and did not wait before.
    pub fn exceeds(&mut self, runtime: i64) -> bool {
        let begins = !self.holds && self.ran > runtime;
        self.holds |= begins;
        begins
    }

    /// A period ends. Whether those who waited go on.
    pub fn refill(&mut self, runtime: i64) -> bool {
        self.ran -= self.ran.min(runtime);
        let ends = self.holds && self.ran < runtime;
        self.holds &= !ends;
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_too_much_is_missing_in_the_next_period() {
        let mut throttle = Throttle::default();
        throttle.add(950);
        assert!(!throttle.exceeds(950), "no more than it may");
        throttle.add(2);
        assert!(throttle.exceeds(950) && throttle.holds());
        throttle.add(1);
        assert!(!throttle.exceeds(950), "once");
        assert!(throttle.refill(950) && !throttle.holds());
        assert_eq!(throttle.ran(), 3);
        assert!(!throttle.refill(950), "it did not wait");
        assert_eq!(throttle.ran(), 0);
    }

    #[test]
    fn who_had_two_runtimes_waits_for_two_periods() {
        let mut throttle = Throttle::default();
        throttle.add(1_900);
        assert!(throttle.exceeds(950));
        assert!(!throttle.refill(950) && throttle.holds());
        assert!(throttle.refill(950));
    }
}
