//! Weights that follow from nice values.

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
const WEIGHT_NICE_0: u64 = 1_024;

/// The kernel's weight of a nice value, which is 1,024 for nice 0; values outside -20 to 19 are
/// clamped.
pub fn weight_of_nice(nice: i8) -> u64 {
    NICE_TO_WEIGHT[(i32::from(nice.clamp(-20, 19)) + 20) as usize]
}

/// The weight of a nice value on the scale of `cpu.weight`, where nice 0 is 100: rounded to a whole
/// number of at least 1, as `sched_weight_to_cgroup()` does for sched_ext. That is 1 for
/// nice 19 (exactly 1.46), and within 2 % for nice 5 and below.
pub fn group_weight_of_nice(nice: i8) -> u32 {
    let scaled = (weight_of_nice(nice) * 100 + WEIGHT_NICE_0 / 2) / WEIGHT_NICE_0;
    scaled.clamp(1, 10_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 15 * 100 / 1024 is 1.46.
    #[test]
    fn weights_are_rounded_to_hundredths_of_nice_0() {
        let table = [(0, 100), (1, 80), (3, 51), (19, 1), (-1, 125), (-20, 8_668)];
        for (nice, weight) in table {
            assert_eq!(group_weight_of_nice(nice), weight, "nice {nice}");
        }
        assert_eq!(weight_of_nice(i8::MIN), weight_of_nice(-20));
    }

    #[test]
    fn a_nicer_task_weighs_less() {
        for nice in -19..=19 {
            assert!(weight_of_nice(nice) < weight_of_nice(nice - 1), "{nice}");
        }
    }
}
