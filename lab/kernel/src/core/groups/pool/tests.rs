//! The bandwidth of one group, by hand and at random.

use proptest::prelude::*;

use super::*;

const CPU_0: CpuId = CpuId(0);

const CPU_1: CpuId = CpuId(1);

fn ms(ms: u64) -> Duration {
    Duration::from_ms(ms)
}

fn at(ms: u64) -> Instant {
    Instant::START + Duration::from_ms(ms)
}

fn of_slices(quota: u64, burst: u64) -> Bandwidth {
    let limits = Limits {
        quota: ms(quota),
        period: ms(100),
        burst: ms(burst),
    };
    let handing = Handing::Slices(ms(5));
    Bandwidth::new(limits, handing, 4, (Instant::START, Instant::START))
}

/// A task is queued and runs on `cpu` from `from` to `to`, in ms; then it sleeps.
fn runs(group: &mut Bandwidth, cpu: CpuId, (from, to): (u64, u64)) {
    group.join(cpu, false, at(from));
    group.begin(cpu, at(from));
    group.charge(cpu, at(to));
    group.leave(cpu, at(to));
}

#[test]
fn the_first_cpu_takes_a_slice_and_the_second_what_is_left() {
    let mut group = of_slices(6, 0);
    for cpu in [CPU_0, CPU_1] {
        group.join(cpu, false, at(1));
        assert!(!group.begin(cpu, at(1)));
    }
    assert!(!group.charge(CPU_0, at(3)), "it has 3 ms of its slice");
    assert!(group.charge(CPU_1, at(3)), "it had 1 ms");
    assert!(group.is_throttled(CPU_1) && !group.is_throttled(CPU_0));
}

#[test]
fn what_idle_queues_return_is_handed_out_after_the_slack_period() {
    let mut group = of_slices(20, 0);
    for cpu in (0..4).map(CpuId) {
        group.join(cpu, false, at(0));
        group.begin(cpu, at(0));
    }
    assert!(group.charge(CpuId(3), at(6)), "5 ms were left for it");
    group.take_unarmed();
    group.leave(CPU_0, at(6));
    assert_eq!(
        group.take_unarmed(),
        [None, None],
        "4 ms are less than a slice"
    );
    group.leave(CPU_1, at(7));
    assert_eq!(group.take_unarmed(), [None, Some(at(12))]);
    group.leave(CpuId(2), at(8));
    assert_eq!(group.take_unarmed(), [None, None], "it runs already");
    assert_eq!(group.slack_over(at(12)), [3]);
}

#[test]
fn slack_is_not_handed_out_shortly_before_a_refill() {
    let mut group = of_slices(20, 0);
    for cpu in (0..4).map(CpuId) {
        group.join(cpu, false, at(0));
        group.begin(cpu, at(0));
    }
    assert!(group.charge(CpuId(3), at(6)));
    group.take_unarmed();
    group.leave(CPU_0, at(94));
    group.leave(CPU_1, at(94));
    assert_eq!(group.take_unarmed(), [None, None]);
}

#[test]
fn a_queue_keeps_a_millisecond_and_a_throttled_one_is_counted() {
    let mut group = of_slices(40, 0);
    group.join(CPU_0, false, at(0));
    group.begin(CPU_0, at(0));
    // An overrun of 35 ms takes all that the pool has.
    group.charge(CPU_0, at(36));
    group.join(CPU_1, false, at(36));
    assert!(group.is_throttled(CPU_1), "the pool is empty");
    group.waits(CPU_1, at(36));
    // CPU 0 has 4 ms left, of which it returns 3: not more than a slice, so nobody hands them out.
    group.take_unarmed();
    group.leave(CPU_0, at(36));
    assert_eq!(group.take_unarmed(), [None, None]);
    assert_eq!(group.refill(at(100)), [1]);
    let stat = group.stat();
    assert_eq!((stat.periods, stat.throttled, stat.span), (1, 1, ms(64)));
}

#[test]
fn burst_keeps_what_a_period_left() {
    let mut group = of_slices(10, 5);
    runs(&mut group, CPU_0, (0, 2));
    // 8 ms are left in the pool and 1 ms in the queue; 15 ms are the most.
    group.refill(at(100));
    group.join(CPU_0, false, at(100));
    group.begin(CPU_0, at(100));
    assert!(!group.charge(CPU_0, at(115)));
    assert!(group.charge(CPU_0, at(116)));
    let mut without = of_slices(10, 0);
    runs(&mut without, CPU_0, (0, 2));
    without.refill(at(100));
    without.join(CPU_0, false, at(100));
    without.begin(CPU_0, at(100));
    assert!(without.charge(CPU_0, at(111)));
}

#[test]
fn the_timer_stops_when_nobody_asks_and_starts_again() {
    let mut group = of_slices(10, 0);
    runs(&mut group, CPU_0, (0, 2));
    assert_eq!(group.take_unarmed(), [Some(at(100)), None]);
    group.refill(at(100));
    assert_eq!(group.take_unarmed(), [Some(at(200)), None]);
    group.refill(at(200));
    assert_eq!(
        group.take_unarmed(),
        [None, None],
        "a period without activity"
    );
    runs(&mut group, CPU_0, (250, 252));
    assert_eq!(group.take_unarmed(), [Some(at(300)), None]);
}

#[test]
fn who_was_throttled_first_is_served_first_and_others_wait_where_nothing_is_left() {
    let mut group = of_slices(10, 0);
    for cpu in [CPU_1, CPU_0] {
        group.join(cpu, false, at(0));
        group.begin(cpu, at(0));
    }
    assert!(group.charge(CPU_1, at(14)), "an overrun of 9 ms");
    assert!(group.charge(CPU_0, at(14)));
    assert_eq!(
        group.refill(at(100)),
        [1],
        "10 ms are 9 for the first and 1 of 9"
    );
    assert!(group.is_throttled(CPU_0));
    assert_eq!(group.refill(at(200)), [0]);
}

#[test]
fn other_limits_free_all_queues() {
    let mut group = of_slices(5, 0);
    group.join(CPU_0, false, at(0));
    group.begin(CPU_0, at(0));
    assert!(group.charge(CPU_0, at(50)));
    let limits = Limits {
        quota: ms(20),
        ..group.limits()
    };
    assert_eq!(group.set_limits(limits, at(60)), [0]);
    assert!(!group.is_throttled(CPU_0));
}

proptest! {
    #[test]
    fn a_period_ends_after_now_and_as_long_as_it_is_after_the_one_before(
        (period, first) in (1u64..1_000).prop_flat_map(|period| (Just(period), 0..period)),
        now in 0u64..10_000,
    ) {
        let limits = Limits { quota: Duration(1), period: Duration(period), burst: Duration::ZERO };
        let begins = (Instant(first), Instant::START);
        let mut group = Bandwidth::new(limits, Handing::Whole, 1, begins);
        group.begin(CPU_0, Instant(now));
        let [ends, _] = group.take_unarmed();
        let ends = ends.expect("the timer was started");
        prop_assert!(ends.0 > now && ends.0 <= now + period);
        prop_assert_eq!(ends.0 % period, first % period);
    }

    /// However tasks come and go, no period hands out more than its quota and what queues keep.
    #[test]
    fn nothing_is_made_from_nothing(
        steps in prop::collection::vec((0u16..2, 0u64..8, any::<bool>()), 1..200),
        quota in 2u64..60,
    ) {
        let mut group = of_slices(quota, 0);
        let (mut now, mut next, mut ran, mut periods) = (0, 100, 0, 1);
        for (cpu, span, idles) in steps {
            let cpu = CpuId(cpu);
            if now + span >= next {
                now = next;
                next += 100;
                periods += 1;
                group.refill(at(now));
            }
            group.join(cpu, false, at(now));
            group.begin(cpu, at(now));
            if !group.is_throttled(cpu) {
                now += span;
                ran += span;
                group.charge(cpu, at(now));
            }
            if idles || group.is_throttled(cpu) {
                group.leave(cpu, at(now));
            }
            // A slice and an overrun of 8 ms on each CPU.
            prop_assert!(ran <= periods * quota + 2 * (5 + 8), "{ran} in {periods} periods");
        }
    }
}
