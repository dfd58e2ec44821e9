//! Weights of nice values, as a sched_ext scheduler gets them.

use warmq_decide::WEIGHT_NICE_0;
use warmq_kernel::{Policy, View};

/// The kernel's weights of nice -20 to 19 (`sched_prio_to_weight`, kernel/sched/core.c): about 1.25
/// times as much for each step.
const NICE_TO_WEIGHT: [u64; 40] = [
    88_761, 71_755, 56_483, 46_273, 36_291, 29_154, 23_254, 18_705, 14_949,
    11_916, // -20 to -11
    9_548, 7_620, 6_100, 4_904, 3_906, 3_121, 2_501, 1_991, 1_586, 1_277, // -10 to -1
    1_024, 820, 655, 526, 423, 335, 272, 215, 172, 137, // 0 to 9
    110, 87, 70, 56, 45, 36, 29, 23, 18, 15, // 10 to 19
];

/// The kernel's weight of nice 0.
const KERNEL_NICE_0: u64 = 1_024;
/// sched_ext's weight of nice 0.
const SCX_NICE_0: u64 = 100;

/// The weight of a task.
///
/// A sched_ext scheduler never gets real-time tasks. The lab has no scheduling class above its
/// scheduler, so here they get the largest weight of a nice value. SCHED_IDLE has the kernel's
/// weight 3, which sched_ext rounds to the least one, as it does that of nice 19.
pub(super) fn weight_of(view: View<'_>) -> u64 {
    match view.policy() {
        Policy::Other | Policy::Batch => of_nice(view.nice()),
        Policy::Idle => of_nice(19),
        Policy::Fifo(_) | Policy::RoundRobin(_) => of_nice(-20),
    }
}

/// The weight of a nice value. sched_ext scales the kernel's weight so that nice 0 is 100, rounds
/// it to a whole number of at least 1 (`sched_weight_to_cgroup`), and scx_warmq multiplies that by
/// 64.
fn of_nice(nice: i8) -> u64 {
    let kernel = NICE_TO_WEIGHT[(i32::from(nice) + 20) as usize];
    let scx = (kernel * SCX_NICE_0 + KERNEL_NICE_0 / 2) / KERNEL_NICE_0;
    scx.max(1) * (WEIGHT_NICE_0 / SCX_NICE_0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `/proc/PID/sched` shows no sched_ext weight, so by hand: 15 * 100 / 1024 is 1.46.
    #[test]
    fn weights_are_rounded_to_hundredths_of_nice_0() {
        let table = [(0, 100), (1, 80), (3, 51), (19, 1), (-1, 125), (-20, 8_668)];
        for (nice, scx) in table {
            assert_eq!(of_nice(nice), scx * 64, "nice {nice}");
        }
    }
}
