//! Weights of nice values, as a sched_ext scheduler gets them.

use warmq_decide::WEIGHT_NICE_0;
use warmq_kernel::{Policy, View, group_weight_of_nice};

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
/// 1024.
fn of_nice(nice: i8) -> u64 {
    u64::from(group_weight_of_nice(nice)) * (WEIGHT_NICE_0 / SCX_NICE_0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `/proc/PID/sched` shows no sched_ext weight, so by hand: 15 * 100 / 1024 is 1.46.
    #[test]
    fn weights_are_rounded_to_hundredths_of_nice_0() {
        let table = [(0, 100), (1, 80), (3, 51), (19, 1), (-1, 125), (-20, 8_668)];
        for (nice, scx) in table {
            assert_eq!(of_nice(nice), scx * 1024, "nice {nice}");
        }
    }
}
