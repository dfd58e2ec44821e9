//! A reservation of CPU time, of a deadline task or of a server (`struct sched_dl_entity`).
//!
//! A constant bandwidth server: in each period it has `runtime` of CPU time, until `deadline` after
//! the period began. What is used beyond that moves the deadline, so that nobody else is late by
//! it.
//!
//! ```text
//!     a new period from t:   deadline = t + D          left = Q
//!     a replenishment:       deadline += P, left += Q  until something is left
//!     a wakeup at t:         if  left / (deadline - t)  >  Q / D   or t is after the deadline,
//!                            a new period from t; with D < P, before the deadline, instead
//!                            left = Q (deadline - t) / D
//! ```
//!
//! Q, D and P are `runtime`, `deadline` and `period` of [`Times`]. Times are those of a CPU's
//! clock, in ns.

use warmq_units::Duration;

/// Runtimes and laxities are compared in units of 2^10 ns (`DL_SCALE`).
const SCALE: u32 = 10;
/// A density is in units of 2^-20 (`BW_SHIFT`).
const DENSITY_SHIFT: u32 = 20;
/// A deadline long before the beginning of time.
const NEVER: i64 = i64::MIN / 4;
/// A timer is set for a time that has passed by less than this, in ns (`ktime_us_delta()`).
const LATE: i64 = 1_000;

/// What has been reserved, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// CPU time in each period.
    pub runtime: i64,
    /// Until when it is due, from the beginning of the period; not more than that.
    pub deadline: i64,
    /// From one period to the next.
    pub period: i64,
}

impl Times {
    /// The same in ns.
    pub fn new(runtime: Duration, deadline: Duration, period: Duration) -> Times {
        let ns = |span: Duration| i64::try_from(span.as_ns()).unwrap_or(i64::MAX >> 2);
        Times {
            runtime: ns(runtime),
            deadline: ns(deadline),
            period: ns(period),
        }
    }
}

/// A reservation and where it is in its period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entity {
    pub(crate) times: Times,
    /// What is left of the runtime, and until when. Below 0 it was overrun.
    pub(crate) left: i64,
    pub(crate) deadline: i64,
}

impl Entity {
    /// One whose last period is over.
    pub(crate) fn new(times: Times) -> Entity {
        Entity {
            times,
            left: 0,
            deadline: NEVER,
        }
    }

    /// Whether the deadline lies before `now`.
    pub(crate) fn has_passed(&self, now: i64) -> bool {
        self.deadline < now
    }

    /// `replenish_dl_new_period()`.
    pub(crate) fn begin_period(&mut self, now: i64) {
        self.deadline = now + self.times.deadline;
        self.left = self.times.runtime;
    }

    /// The runtime is refilled, and what it was overrun by is paid back (`replenish_dl_entity()`).
    pub(crate) fn replenish(&mut self, now: i64) {
        while self.left <= 0 {
            self.deadline += self.times.period;
            self.left += self.times.runtime;
        }
        if self.has_passed(now) {
            self.begin_period(now);
        }
    }

    /// What is left becomes its share of the time until the deadline
    /// (`update_dl_revised_wakeup()`).
    pub(crate) fn revise(&mut self, now: i64) {
        let density = (i128::from(self.times.runtime) << DENSITY_SHIFT)
            / i128::from(self.times.deadline.max(1));
        let laxity = i128::from(self.deadline - now);
        self.left = ((density * laxity) >> DENSITY_SHIFT) as i64;
    }

    /// Whether what is left until the deadline is more than its share of the CPU
    /// (`dl_entity_overflow()`).
    ///
    /// ```text
    ///     left / (deadline - now)  >  Q / D        each side multiplied by both divisors
    /// ```
    pub(crate) fn overflows(&self, now: i64) -> bool {
        let scaled = |time: i64| i128::from(time >> SCALE);
        let Times {
            runtime, deadline, ..
        } = self.times;
        scaled(deadline) * scaled(self.left) > scaled(self.deadline - now) * scaled(runtime)
    }

    /// When the next period begins (`dl_next_period()`).
    pub(crate) fn next_period(&self) -> i64 {
        self.deadline - self.times.deadline + self.times.period
    }

    /// Whether a timer can still be set for the next period (`start_dl_timer()`).
    pub(crate) fn can_wait(&self, now: i64) -> bool {
        now - self.next_period() < LATE
    }
}
