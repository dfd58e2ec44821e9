//! Weights, and what a span of CPU time is in virtual time.

use warmq_kernel::{Group, Policy, View, weight_of_nice};

/// The weight of nice 0 (`NICE_0_LOAD`): 1024, with ten bits behind the point.
pub(super) const NICE_0: u64 = 1 << 20;
/// The bits behind the point (`SCHED_FIXEDPOINT_SHIFT`).
const POINT: u32 = 10;
/// The least weight that divides (`scale_load_down()`), without the bits behind the point.
pub(super) const LEAST: u64 = 2;
/// The weight of SCHED_IDLE (`WEIGHT_IDLEPRIO`).
const IDLE: u64 = 3 << POINT;
/// `cpu.weight` of a group that nobody has set.
const DEFAULT_GROUP: u64 = 100;
/// The weight of nice -20 (`sched_prio_to_weight[0]`).
pub(super) const HEAVIEST: u64 = 88_761 << POINT;
/// The least and greatest shares of a group (`MIN_SHARES`, `MAX_SHARES`).
pub(super) const SHARES: (u64, u64) = (2, (1 << 18) << POINT);

/// How exactly weights count in virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    /// Without the bits behind the point, and through a 32-bit inverse (up to 7.0).
    Down,
    /// In full, rounded down (from 7.1).
    Full,
}

impl Precision {
    /// The weight as it counts in a queue's average.
    pub(super) fn of(self, weight: u64) -> u64 {
        match self {
            Precision::Down => down(weight),
            Precision::Full => weight,
        }
    }

    /// How far the vruntime of an entity of `weight` gets while it runs for `span` ns, in virtual
    /// ns (`calc_delta_fair()`).
    ///
    /// ```text
    ///     span * 2^20 / weight
    /// ```
    pub(super) fn virtual_time(self, span: i64, weight: u64) -> i64 {
        if weight == NICE_0 {
            return span;
        }
        let scaled = match self {
            Precision::Full => i128::from(span) * i128::from(NICE_0) / i128::from(weight.max(1)),
            Precision::Down => by_inverse(span, down(weight)),
        };
        i64::try_from(scaled).unwrap_or(i64::MAX)
    }
}

/// span * 1024 / weight by an inverse of 32 bits (`__calc_delta()`).
fn by_inverse(span: i64, weight: u64) -> i128 {
    let mut factor = (NICE_0 >> POINT) * (u64::from(u32::MAX) / weight);
    let mut shift = 32;
    while factor > u64::from(u32::MAX) {
        factor >>= 1;
        shift -= 1;
    }
    (i128::from(span) * i128::from(factor)) >> shift
}

/// A weight without the bits behind its point (`scale_load_down()`).
pub(super) fn down(weight: u64) -> u64 {
    match weight {
        0 => 0,
        weight => (weight >> POINT).max(LEAST),
    }
}

/// The weight of a task (`set_load_weight()`).
pub(super) fn weight_of(view: View<'_>) -> u64 {
    match view.policy() {
        Policy::Idle => IDLE,
        Policy::Other | Policy::Batch => weight_of_nice(view.nice()) << POINT,
        Policy::Fifo(_) | Policy::RoundRobin(_) | Policy::Deadline(_) => NICE_0,
    }
}

/// The shares of a group (`cpu.weight`, where 100 is 1024 shares); an idle one weighs as a
/// SCHED_IDLE task.
pub(super) fn shares_of(group: &Group) -> u64 {
    if group.idle {
        return IDLE;
    }
    let shares = (u64::from(group.weight) * 1_024 + DEFAULT_GROUP / 2) / DEFAULT_GROUP;
    (shares << POINT).clamp(SHARES.0, SHARES.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decision case 3 of the specification: 1.4 ms, in virtual us.
    #[test]
    fn case_3_virtual_time_is_inverse_to_the_weight() {
        for (nice, us) in [(0, 1_400), (5, 4_279), (-5, 459), (19, 95_573)] {
            let weight = weight_of_nice(nice) << POINT;
            for precision in [Precision::Down, Precision::Full] {
                let virtual_us = precision.virtual_time(1_400_000, weight) / 1_000;
                assert_eq!(virtual_us, us, "nice {nice}, {precision:?}");
            }
        }
    }

    #[test]
    fn the_inverse_does_not_overflow() {
        let second = 1_000_000_000;
        for weight in [1, 2_048, NICE_0 - 1, NICE_0 + 1, SHARES.1] {
            let exact = Precision::Full.virtual_time(second, down(weight) << POINT);
            let inverse = Precision::Down.virtual_time(second, weight);
            assert!(
                (exact - inverse).abs() <= exact / 1_000 + 1,
                "weight {weight}"
            );
        }
    }

    #[test]
    fn a_group_that_nobody_has_set_weighs_as_much_as_a_task_of_nice_0() {
        let group = |weight| Group {
            idle: false,
            name: warmq_trace::Comm::new("g"),
            parent: None,
            weight,
            autogroup: false,
            limits: None,
        };
        assert_eq!(shares_of(&group(100)), NICE_0);
        assert_eq!(shares_of(&group(1)), 10 << POINT);
        let idle = Group {
            idle: true,
            ..group(1)
        };
        assert_eq!(shares_of(&idle), 3 << POINT, "WEIGHT_IDLEPRIO");
    }
}
