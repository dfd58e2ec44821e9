//! Weights, and what a span of CPU time is in virtual time.

use warmq_kernel::{Group, Policy, View, weight_of_nice};

/// The weight of nice 0 (`NICE_0_LOAD`), which is also one unit of load (`SCHED_LOAD_SCALE`).
pub(super) const NICE_0: u64 = 1_024;
/// The weight of SCHED_IDLE (`WEIGHT_IDLEPRIO`).
const IDLE: u64 = 2;
/// `cpu.weight` of a group that nobody has set.
const DEFAULT_GROUP: u64 = 100;

/// The weight of a task (`set_load_weight()` of 2.6.24). Real-time tasks have one for the balance
/// of load only: twice that of nice -20.
pub(super) fn weight_of(view: View<'_>) -> u64 {
    match view.policy() {
        Policy::Other | Policy::Batch | Policy::Deadline(_) => weight_of_nice(view.nice()),
        Policy::Idle => IDLE,
        Policy::Fifo(_) | Policy::RoundRobin(_) => 2 * weight_of_nice(-20),
    }
}

/// The weight of a group on each CPU (`cpu.shares`, 1024 by default).
pub(super) fn weight_of_group(group: &Group) -> u64 {
    u64::from(group.weight) * NICE_0 / DEFAULT_GROUP
}

/// How far the vruntime of an entity of `weight` gets while it runs for `span` ns, in virtual ns
/// (`calc_delta_fair()`).
///
/// ```text
///     span * 1024 / weight
/// ```
///
/// Exact but for the fraction, which is cut off; the kernel multiplies by a rounded inverse of the
/// weight, which differs by less than 1 part in 10,000.
pub(super) fn delta_fair(span: i64, weight: u64) -> i64 {
    if weight == NICE_0 {
        return span;
    }
    let scaled = i128::from(span) * i128::from(NICE_0) / i128::from(weight.max(1));
    i64::try_from(scaled).unwrap_or(i64::MAX)
}

/// The part `weight` of `total` of a period, in ns (`sched_slice()`).
pub(super) fn share(period: i64, weight: u64, total: u64) -> i64 {
    let part = i128::from(period) * i128::from(weight) / i128::from(total.max(1));
    i64::try_from(part).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Decision case 20 of the starvation specification, first half: 10 ms in the weight of the
    /// running task.
    #[test]
    fn case_20_a_granularity_in_the_weight_of_the_current_task() {
        for (nice, ns) in [(0, 10_000_000), (5, 30_567_164), (-5, 3_280_999)] {
            assert_eq!(delta_fair(10 * MS, weight_of_nice(nice)), ns, "nice {nice}");
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
        assert_eq!(weight_of_group(&group(100)), NICE_0);
        assert_eq!(weight_of_group(&group(200)), 2 * NICE_0);
    }
}
