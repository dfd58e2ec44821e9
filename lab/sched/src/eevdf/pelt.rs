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

/// How far the clock of a CPU's averages is behind its own, in ns.
///
/// Averages are of work: what a slower CPU runs takes longer, and counts as if it had taken as long
/// as on the fastest. While it idles, the clock catches up; not with what would not have been idle
/// on the fastest either (`update_rq_clock_pelt()`, `update_idle_rq_clock_pelt()`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pace {
    /// With which it catches up.
    late: i64,
    /// With which it does not (`lost_idle_time`).
    lost: i64,
}

impl Pace {
    pub(super) fn behind(self) -> i64 {
        self.late + self.lost
    }

    /// `passed` ns went by, in which a CPU of such a capacity ran something.
    pub(super) fn runs(&mut self, passed: i64, capacity: u64) {
        self.late += passed - ((passed * capacity as i64) >> UNIT);
    }

    /// The CPU idled.
    pub(super) fn catches_up(&mut self) {
        self.late = 0;
    }

    /// The CPU begins to idle, whose averages say that it ran all the time, or not.
    pub(super) fn begins_to_idle(&mut self, was_full: bool) {
        if was_full {
            self.lost += std::mem::take(&mut self.late);
        }
    }
}

/// The averages of an entity or of a queue (`struct sched_avg`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Average {
    /// Up to when it counts, in ns.
    updated_at: i64,
    /// Units of the present period that have passed.
    part: u64,
    load_sum: u64,
    runnable_sum: u64,
    util_sum: u64,
    /// The load, in weights without bits behind their point.
    pub(super) load: u64,
    /// How many tasks were runnable, in 1024ths.
    pub(super) runnable: u64,
    /// How much of the time it ran, in 1024ths.
    pub(super) util: u64,
}

/// What counts since the last time that an average was brought up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Since {
    /// The weight of what is queued, without bits behind the point; of an entity, whether it is
    /// queued.
    pub(super) load: u64,
    /// Tasks that were runnable.
    pub(super) runnable: u64,
    /// Whether something ran.
    pub(super) ran: bool,
}

impl Since {
    /// Nothing.
    pub(super) const IDLE: Since = Since {
        load: 0,
        runnable: 0,
        ran: false,
    };
}

/// Adds what an average and its sum have changed by. Rounding may have left less than is taken off,
/// and a sum is at least what its average stands for (`__update_sa()`).
fn shift(average: &mut u64, sum: &mut u64, by: (i64, i64)) {
    *average = average.saturating_add_signed(by.0);
    *sum = sum.saturating_add_signed(by.1);
    *sum = (*sum).max(*average * (MOST - PERIOD));
}

/// Makes an average `to`, and its sum what that is with `divider`. What both have changed by.
fn changed(average: &mut u64, sum: &mut u64, to: u64, divider: u64) -> (i64, i64) {
    let change = (
        to as i64 - *average as i64,
        (to * divider) as i64 - *sum as i64,
    );
    (*average, *sum) = (to, to * divider);
    change
}

impl Average {
    /// That of a new task of `weight`, which counts as if it had always been runnable
    /// (`init_entity_runnable_average()`), and as having run for `util` of the time.
    pub(super) fn full(now: i64, weight: u64, util: u64) -> Average {
        Average {
            updated_at: now,
            part: 0,
            load_sum: MOST - PERIOD,
            runnable_sum: util * (MOST - PERIOD),
            util_sum: util * (MOST - PERIOD),
            load: weight,
            runnable: util,
            util,
        }
    }

    /// Whether these averages of a CPU say that it runs all the time.
    pub(super) fn are_full(all: [&Average; 2]) -> bool {
        let sum: u64 = all.iter().map(|average| average.util_sum).sum();
        sum >= ((MOST - PERIOD) << UNIT) - MOST
    }

    /// Whether it is nothing, and time will not change that.
    pub(super) fn is_nothing(&self) -> bool {
        self.load == 0 && self.util == 0 && self.runnable == 0
    }

    /// Brings the sums up to date. True if a period has ended (`___update_load_sum()`).
    fn advance(&mut self, now: i64, since: Since) -> bool {
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
            self.runnable_sum = decayed(self.runnable_sum, periods);
            self.util_sum = decayed(self.util_sum, periods);
            accumulated(periods, PERIOD - self.part, part)
        };
        self.part = part;
        if since.load > 0 {
            self.load_sum += since.load * counted;
            self.runnable_sum += since.runnable * (counted << UNIT);
            self.util_sum += u64::from(since.ran) * (counted << UNIT);
        }
        periods > 0
    }

    /// For how much of the time an entity was queued, in 1024ths.
    pub(super) fn runnable(&self) -> u64 {
        (self.load_sum << UNIT) / self.divider()
    }

    fn divider(&self) -> u64 {
        MOST - PERIOD + self.part
    }

    /// The same of an entity: while queued, its load is its `weight`, without bits behind the
    /// point.
    pub(super) fn of_entity(&mut self, now: i64, weight: u64, since: Since) {
        if self.advance(now, since) {
            self.load = weight * self.load_sum / self.divider();
            self.runnable = self.runnable_sum / self.divider();
            self.util = self.util_sum / self.divider();
        }
    }

    /// The same of a queue. True if the averages are new.
    pub(super) fn of_queue(&mut self, now: i64, since: Since) -> bool {
        let new = self.advance(now, since);
        if new {
            self.load = self.load_sum / self.divider();
            self.runnable = self.runnable_sum / self.divider();
            self.util = self.util_sum / self.divider();
        }
        new
    }

    /// What an entity's load is once its weight is `weight`, where it counts nowhere else.
    pub(super) fn reweigh_alone(&mut self, weight: u64) {
        self.load = weight * self.load_sum / self.divider();
    }

    /// The same for an `entity` of this queue, which weighed `before` (`reweight_entity()`).
    pub(super) fn reweigh(&mut self, entity: &mut Average, before: u64, weight: u64) {
        let (load, sum) = (entity.load, before * entity.load_sum);
        entity.reweigh_alone(weight);
        self.shift_load((-(load as i64), -(sum as i64)));
        self.shift_load((entity.load as i64, (weight * entity.load_sum) as i64));
    }

    fn shift_load(&mut self, by: (i64, i64)) {
        shift(&mut self.load, &mut self.load_sum, by);
    }

    /// The sum of an entity's load, without its weight.
    pub(super) fn unweighted_sum(&self) -> u64 {
        self.load_sum
    }

    /// The tasks of `own`, the queue of a group whose entities weigh `own_weight`, have brought or
    /// taken averages with them, whose unweighted sums come to `moved`. `self`, the group's entity
    /// of `weight`, follows, and with it the queue `above` that it is in (`update_tg_cfs_util()`,
    /// `update_tg_cfs_runnable()`, `update_tg_cfs_load()`).
    pub(super) fn follow(
        &mut self,
        weight: u64,
        above: &mut Average,
        (own, own_weight, moved): (&Average, u64, i64),
    ) {
        let divider = above.divider();
        if own.util != self.util {
            let by = changed(&mut self.util, &mut self.util_sum, own.util, divider);
            shift(&mut above.util, &mut above.util_sum, by);
        }
        if own.runnable != self.runnable {
            let (to, sum) = (own.runnable, &mut self.runnable_sum);
            let by = changed(&mut self.runnable, sum, to, divider);
            shift(&mut above.runnable, &mut above.runnable_sum, by);
        }
        if moved == 0 {
            return;
        }
        // Of what came, all counts until the CPU is full. Of what is left when something went, it
        // is assumed that all tasks were runnable equally long.
        let runnable = match moved > 0 {
            true => self.load_sum.saturating_add_signed(moved).min(divider),
            false => self.load_sum.min(match own_weight {
                0 => 0,
                weight => own.load_sum / weight,
            }),
        };
        let runnable = runnable.max(self.util_sum >> UNIT);
        let load = weight * runnable / divider;
        if load == self.load {
            return;
        }
        let by = (
            load as i64 - self.load as i64,
            (weight * runnable) as i64 - (weight * self.load_sum) as i64,
        );
        (self.load, self.load_sum) = (load, runnable);
        above.shift_load(by);
    }

    /// Counts the averages of an entity of `weight` in those of the queue that it joins
    /// (`attach_entity_load_avg()`).
    pub(super) fn attach(&mut self, entity: &mut Average, weight: u64) {
        let divider = self.divider();
        (entity.updated_at, entity.part) = (self.updated_at, self.part);
        entity.util_sum = entity.util * divider;
        entity.runnable_sum = entity.runnable * divider;
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
        self.runnable += entity.runnable;
        self.runnable_sum += entity.runnable_sum;
        self.util += entity.util;
        self.util_sum += entity.util_sum;
    }

    /// Takes it out again (`detach_entity_load_avg()`).
    pub(super) fn subtract(&mut self, entity: &Average, weight: u64) {
        let less = |average: u64, sum: u64| (-(average as i64), -(sum as i64));
        self.shift_load(less(entity.load, weight * entity.load_sum));
        let by = less(entity.runnable, entity.runnable_sum);
        shift(&mut self.runnable, &mut self.runnable_sum, by);
        let by = less(entity.util, entity.util_sum);
        shift(&mut self.util, &mut self.util_sum, by);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: i64 = 1_000_000;

    fn busy(load: u64) -> Since {
        Since {
            load,
            runnable: 1,
            ran: true,
        }
    }

    #[test]
    fn the_table_is_of_powers_of_a_half() {
        for (n, power) in POWERS.into_iter().enumerate() {
            let exact = (-(n as f64) / 32.0).exp2() * 4_294_967_296.0;
            assert!((exact - f64::from(power)).abs() <= 2.0, "y^{n}");
        }
        let sum = (1..10_000).fold(0, |sum, _| decayed(sum, 1) + PERIOD);
        assert!(sum.abs_diff(MOST) <= 1, "{sum}");
    }

    /// What a CPU of half the capacity runs in 10 ms counts for 5 ms; idling gives back the rest,
    /// if it had idle time to give.
    #[test]
    fn a_slow_cpu_counts_what_it_did() {
        let mut pace = Pace::default();
        pace.runs(10 * MS, 1_024);
        assert_eq!(pace.behind(), 0);
        pace.runs(10 * MS, 512);
        assert_eq!(pace.behind(), 5 * MS);
        let mut full = pace;
        pace.begins_to_idle(false);
        pace.catches_up();
        assert_eq!(pace.behind(), 0);
        full.begins_to_idle(true);
        full.catches_up();
        assert_eq!(full.behind(), 5 * MS);
    }

    /// After 32 periods, 33.6 ms, half of what it will be.
    #[test]
    fn half_of_a_load_is_there_after_32_periods() {
        let mut queue = Average::default();
        let period = (PERIOD << UNIT) as i64;
        queue.of_queue(32 * period, busy(1_024));
        assert!(queue.load.abs_diff(512) <= 12, "{queue:?}");
        queue.of_queue(500 * MS, busy(1_024));
        assert!(queue.load.abs_diff(1_024) <= 1 && queue.util.abs_diff(1_024) <= 1);
        queue.of_queue(500 * MS + 32 * period, Since::IDLE);
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
                often.of_queue(now, busy(1_000));
            }
            once.of_queue(now, busy(1_000));
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
            prop_assert_eq!(queue.runnable, before.runnable);
        }

        /// A group's entity counts what tasks bring to the group, in the queue above, too, and no
        /// longer when they have taken it away again.
        #[test]
        fn what_moves_with_tasks_counts_above_their_group(
            util in 0u64..1_024,
            load_part in 1u64..1_024,
            weight in 2u64..90_000,
            shares in 2u64..90_000,
        ) {
            let (mut own, mut above) = (Average::default(), Average::full(0, 2_048, 300));
            let (mut group, before) = (Average::default(), above);
            let load = weight * load_part / 1_024;
            let mut task = Average { load, ..Average::full(0, weight, util) };
            own.attach(&mut task, weight);
            let moved = task.unweighted_sum() as i64;
            group.follow(shares, &mut above, (&own, weight, moved));
            prop_assert_eq!(group.util, util);
            prop_assert_eq!(above.util, before.util + util);
            prop_assert_eq!(above.runnable, before.runnable + util);
            // As long as it was runnable, or as it ran.
            let expected = shares * load_part.max(util) / 1_024;
            let slack = shares / 512 + shares / weight + 2;
            prop_assert!(group.load.abs_diff(expected) <= slack, "{} {expected}", group.load);
            prop_assert_eq!(above.load, before.load + group.load);

            own.subtract(&task, weight);
            group.follow(shares, &mut above, (&own, 0, -moved));
            prop_assert!(group.is_nothing(), "{group:?}");
            prop_assert_eq!(above.load, before.load);
            prop_assert_eq!(above.util, before.util);
        }
    }
}
