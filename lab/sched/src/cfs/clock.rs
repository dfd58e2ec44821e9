//! The clock of a run queue.

/// What a run queue takes for the time, in ns (`rq->clock` of 2.6.24): the TSC, held to one tick
/// past the last tick, and at least a tick later with each tick.
///
/// So a CPU's clock counts ticks, and the TSC only says where between two of them it is. While an
/// idle CPU has its tick stopped, the clock stands still; nobody is charged there.
#[derive(Default)]
pub(super) struct Clock {
    now: i64,
    /// The TSC when the clock was last brought up to date.
    raw: i64,
    ticked_at: i64,
    tick: i64,
    ticks: u64,
    jiffies: bool,
}

impl Clock {
    /// A clock whose tick comes every `tick` ns. On a machine without a TSC, `sched_clock()` counts
    /// `jiffies`.
    pub(super) fn new(tick: i64, jiffies: bool) -> Clock {
        Clock {
            tick: tick.max(1),
            jiffies,
            ..Clock::default()
        }
    }

    /// The time when the clock was last brought up to date, in ns.
    pub(super) fn now(&self) -> i64 {
        self.now
    }

    /// How often the tick came: this CPU's jiffies.
    pub(super) fn ticks(&self) -> u64 {
        self.ticks
    }

    /// How many ticks `ms` milliseconds take, at least one (`msecs_to_jiffies()`).
    pub(super) fn ticks_in(&self, ms: u64) -> u64 {
        (ms * 1_000_000).div_ceil(self.tick as u64).max(1)
    }

    /// Brings the clock up to date, `raw` being the TSC (`__update_rq_clock()`).
    pub(super) fn update(&mut self, raw: i64) {
        let raw = match self.jiffies {
            true => raw - raw % self.tick,
            false => raw,
        };
        let passed = raw - std::mem::replace(&mut self.raw, raw);
        let limit = self.ticked_at + self.tick;
        if passed < 0 || self.now >= limit && passed > 0 {
            self.now += 1;
        } else {
            self.now = (self.now + passed).min(limit.max(self.now));
        }
    }

    /// The tick came (`scheduler_tick()`).
    pub(super) fn tick(&mut self, raw: i64) {
        self.update(raw);
        self.now = self.now.max(self.ticked_at + self.tick);
        self.ticked_at = self.now;
        self.ticks += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_held_to_one_tick_past_the_last_tick() {
        let mut clock = Clock::new(4_000, false);
        clock.tick(4_000);
        clock.update(5_500);
        assert_eq!(clock.now(), 5_500, "the TSC between two ticks");
        clock.update(30_000);
        assert_eq!(clock.now(), 8_000, "held");
        clock.update(31_000);
        assert_eq!(clock.now(), 8_001, "and yet never the same twice");
        clock.tick(32_000);
        clock.update(33_000);
        assert_eq!(clock.now(), 9_002, "what was held back is lost");
    }

    #[test]
    fn each_tick_adds_one_tick_however_late_it_is_handled() {
        let mut clock = Clock::new(4_000, false);
        for (number, late) in [0, 300, 100, 900, 0].into_iter().enumerate() {
            let number = number as i64 + 1;
            clock.tick(number * 4_000 + late);
            assert_eq!(clock.now(), number * 4_000);
        }
        assert_eq!(clock.ticks(), 5);
    }

    #[test]
    fn a_clock_of_jiffies_stands_still_between_ticks() {
        let mut clock = Clock::new(4_000, true);
        clock.tick(4_100);
        clock.update(7_900);
        assert_eq!(clock.now(), 4_000);
        clock.update(8_100);
        assert_eq!(clock.now(), 8_000);
    }

    #[test]
    fn a_clock_that_goes_back_is_not_followed() {
        let mut clock = Clock::new(4_000, false);
        clock.tick(4_000);
        clock.update(5_000);
        clock.update(4_900);
        assert_eq!(clock.now(), 5_001);
    }
}
