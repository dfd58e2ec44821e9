//! The kernel's weights (`sched_prio_to_weight`, kernel/sched/core.c).

use warmq_trace::Policy;

/// Of nice -20 to 19.
const OF_NICE: [u64; 40] = [
    88_761, 71_755, 56_483, 46_273, 36_291, 29_154, 23_254, 18_705, 14_949, 11_916, 9_548, 7_620,
    6_100, 4_904, 3_906, 3_121, 2_501, 1_991, 1_586, 1_277, 1_024, 820, 655, 526, 423, 335, 272,
    215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];
/// Of SCHED_IDLE, and of groups that are idle (`WEIGHT_IDLEPRIO`).
pub(crate) const OF_IDLE: u64 = 3;
/// Of a group of the usual `cpu.weight`, 100: as much as a task of nice 0.
const OF_GROUP: u64 = 1_024;

/// The weight of a task.
pub(crate) fn of_task(policy: Policy, nice: i8) -> u64 {
    match policy {
        Policy::Idle => OF_IDLE,
        _ => OF_NICE[usize::from((nice.clamp(-20, 19) + 20).unsigned_abs())],
    }
}

/// The weight of a group of this `cpu.weight`, which is 0 where `cpu.idle` is set.
pub(crate) fn of_group(cpu_weight: u32) -> u64 {
    match cpu_weight {
        0 => OF_IDLE,
        weight => u64::from(weight) * OF_GROUP / 100,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nice_value_is_worth_a_quarter_more_than_the_next() {
        assert_eq!(of_task(Policy::Other, 0), 1_024);
        assert_eq!(of_task(Policy::Batch, 19), 15);
        assert_eq!(of_task(Policy::Other, -20), 88_761);
        assert_eq!((of_group(100), of_group(1), of_group(0)), (1_024, 10, 3));
        for pair in OF_NICE.windows(2) {
            let ratio = pair[0] * 100 / pair[1];
            assert!((115..140).contains(&ratio), "{pair:?}");
        }
    }
}
