//! Per-entity load tracking: averages of what an entity or a queue was, in which the last 32 ms
//! count half (`kernel/sched/pelt.c`).
//!
//! Time is cut into periods of 1024 units of 1024 ns. A sum counts so many units of the present
//! period, and y^n of those n periods ago, where y^32 = 1/2. Averages are computed anew only when a
//! period ends.

/// A period, in units.
const PERIOD: u64 = 1_024;
/// A unit is 2^10 ns.
const UNIT: u32 = 10;
/// Periods after which a unit counts half.
const HALF_LIFE: u64 = 32;
/// What a sum of ones comes to (`LOAD_AVG_MAX`).
const MOST: u64 = 47_742;

/// y^n for n < 32, in 2^32ths, rounded down (`runnable_avg_yN_inv`).
const POWERS: [u32; HALF_LIFE as usize] = [
    0xffff_ffff,
    0xfa83_b2da,
    0xf525_7d14,
    0xefe4_b99a,
    0xeac0_c6e6,
    0xe5b9_06e6,
    0xe0cc_deeb,
    0xdbfb_b796,
    0xd744_fcc9,
    0xd2a8_1d91,
    0xce24_8c14,
    0xc9b9_bd85,
    0xc567_2a10,
    0xc12c_4cc9,
    0xbd08_a39e,
    0xb8fb_af46,
    0xb504_f333,
    0xb123_f581,
    0xad58_3ee9,
    0xa9a1_5ab4,
    0xa5fe_d6a9,
    0xa270_4302,
    0x9ef5_325f,
    0x9b8d_39b9,
    0x9837_f050,
    0x94f4_efa8,
    0x91c3_d373,
    0x8ea4_398a,
    0x8b95_c1e3,
    0x8898_0e80,
    0x85aa_c367,
    0x82cd_8698,
];

/// `sum` as it counts `periods` later (`decay_load()`).
fn decayed(sum: u64, periods: u64) -> u64 {
    let halvings = periods / HALF_LIFE;
    if halvings > 63 {
        return 0;
    }
    let power = POWERS[(periods % HALF_LIFE) as usize];
    let scaled = u128::from(sum >> halvings) * u128::from(power);
    (scaled >> 32) as u64
}

/// Units since a sum was brought up to date, `periods` ends of periods ago: `first` up to the first
/// of them, and `last` since the last (`__accumulate_pelt_segments()`).
fn accumulated(periods: u64, first: u64, last: u64) -> u64 {
    decayed(first, periods) + MOST - decayed(MOST, periods) - PERIOD + last
}

/// The averages of an entity or of a queue (`struct sched_avg`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Average {
    /// Up to when it counts, in ns.
    updated_at: i64,
    /// Units of the present period that have passed.
    part: u64,
    load_sum: u64,
    util_sum: u64,
    /// The load, in weights without bits behind their point.
    pub(super) load: u64,
    /// How much of the time it ran, in 1024ths.
    pub(super) util: u64,
}

impl Average {
    /// That of a new task of `weight`, which counts as if it had always been runnable
    /// (`init_entity_runnable_average()`), and as having run for `util` of the time.
    pub(super) fn full(now: i64, weight: u64, util: u64) -> Average {
        Average {
            updated_at: now,
            part: 0,
            load_sum: MOST - PERIOD,
            util_sum: util * (MOST - PERIOD),
            load: weight,
            util,
        }
    }

    /// Brings the sums up to date: since the last time, it had a load of `load` and `ran`. True if a
    /// period has ended (`___update_load_sum()`).
    fn advance(&mut self, now: i64, load: u64, ran: bool) -> bool {
        let units = (now - self.updated_at) >> UNIT;
        if units <= 0 {
            return false;
        }
        self.updated_at += units << UNIT;
        let units = units as u64;
        let (periods, part) = ((self.part + units) / PERIOD, (self.part + units) % PERIOD);
        let counted = if periods == 0 {
            units
        } else {
            self.load_sum = decayed(self.load_sum, periods);
            self.util_sum = decayed(self.util_sum, periods);
            accumulated(periods, PERIOD - self.part, part)
        };
        self.part = part;
        self.load_sum += load * counted;
        self.util_sum += u64::from(ran) * (counted << UNIT);
        periods > 0
    }

    /// For how much of the time an entity was queued, in 1024ths.
    pub(super) fn runnable(&self) -> u64 {
        (self.load_sum << UNIT) / self.divider()
    }

    fn divider(&self) -> u64 {
        MOST - PERIOD + self.part
    }

    /// The same of an entity: while `queued`, its load is its `weight`, without bits behind the point.
    pub(super) fn of_entity(&mut self, now: i64, weight: u64, queued: bool, runs: bool) {
        if self.advance(now, u64::from(queued), runs) {
            self.load = weight * self.load_sum / self.divider();
            self.util = self.util_sum / self.divider();
        }
    }

    /// The same of a queue whose entities weigh `weight`. True if the averages are new.
    pub(super) fn of_queue(&mut self, now: i64, weight: u64, runs: bool) -> bool {
        let new = self.advance(now, weight, runs);
        if new {
            self.load = self.load_sum / self.divider();
            self.util = self.util_sum / self.divider();
        }
        new
    }

    /// What an entity's load is once its weight is `weight` (`reweight_entity()`).
    pub(super) fn reweigh(&mut self, weight: u64) {
        self.load = weight * self.load_sum / self.divider();
    }

    /// Counts the averages of an entity of `weight` in those of the queue that it joins
    /// (`attach_entity_load_avg()`).
    pub(super) fn attach(&mut self, entity: &mut Average, weight: u64) {
        let divider = self.divider();
        (entity.updated_at, entity.part) = (self.updated_at, self.part);
        entity.util_sum = entity.util * divider;
        entity.load_sum = match weight {
            0 => 1,
            weight => (entity.load * divider / weight).max(1),
        };
        self.add(entity, weight);
    }

    /// Adds what an entity of `weight` counts.
    pub(super) fn add(&mut self, entity: &Average, weight: u64) {
        self.load += entity.load;
        self.load_sum += weight * entity.load_sum;
        self.util += entity.util;
        self.util_sum += entity.util_sum;
    }

    /// Takes it out again (`detach_entity_load_avg()`). Rounding may have left less than that.
    pub(super) fn subtract(&mut self, entity: &Average, weight: u64) {
        let least = MOST - PERIOD;
        self.load = self.load.saturating_sub(entity.load);
        self.load_sum = self.load_sum.saturating_sub(weight * entity.load_sum);
        self.load_sum = self.load_sum.max(self.load * least);
        self.util = self.util.saturating_sub(entity.util);
        self.util_sum = self.util_sum.saturating_sub(entity.util_sum);
        self.util_sum = self.util_sum.max(self.util * least);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn the_table_is_of_powers_of_a_half() {
        for (n, power) in POWERS.into_iter().enumerate() {
            let exact = (-(n as f64) / 32.0).exp2() * 4_294_967_296.0;
            assert!((exact - f64::from(power)).abs() <= 2.0, "y^{n}");
        }
        let sum = (1..10_000).fold(0, |sum, _| decayed(sum, 1) + PERIOD);
        assert!(sum.abs_diff(MOST) <= 1, "{sum}");
    }

    /// After 32 periods, 33.6 ms, half of what it will be.
    #[test]
    fn half_of_a_load_is_there_after_32_periods() {
        let mut queue = Average::default();
        let period = (PERIOD << UNIT) as i64;
        queue.of_queue(32 * period, 1_024, true);
        assert!(queue.load.abs_diff(512) <= 12, "{queue:?}");
        queue.of_queue(500 * MS, 1_024, true);
        assert!(queue.load.abs_diff(1_024) <= 1 && queue.util.abs_diff(1_024) <= 1);
        queue.of_queue(500 * MS + 32 * period, 0, false);
        assert!(queue.load.abs_diff(512) <= 1 && queue.util.abs_diff(512) <= 1);
    }

    proptest! {
        /// Many small steps come to what one large step does, but for rounding.
        #[test]
        fn steps_add_up(spans in prop::collection::vec(1i64..3_000_000, 1..200)) {
            let (mut often, mut once) = (Average::default(), Average::default());
            let mut now = 0;
            for span in spans {
                now += span;
                often.of_queue(now, 1_000, true);
            }
            once.of_queue(now, 1_000, true);
            prop_assert!(often.load.abs_diff(once.load) <= 30, "{often:?} {once:?}");
        }

        /// What joins a queue and leaves it again leaves it as it was.
        #[test]
        fn what_is_attached_can_be_taken_out(load in 0u64..90_000, weight in 2u64..90_000) {
            let mut queue = Average::full(0, 2_048, 300);
            let before = queue;
            let mut entity = Average { load, ..Average::full(0, weight, 100) };
            queue.attach(&mut entity, weight);
            queue.subtract(&entity, weight);
            prop_assert_eq!(queue.load, before.load);
            prop_assert_eq!(queue.util, before.util);
        }
    }
}
