//! What the scheduler says of each task: what the thesis counted in the kernel.

use warmq_kernel::Statistic;

statistics! { Statistic:
    SLICES_USED_UP "slices_used_up" "slices used up";
    EXPIRATIONS "expirations" "slices used up that ended in the expired array";
    REINSERTIONS "reinsertions" "slices used up that ended in the active array again";
    SLEEP_CREDIT "sleep_credit" in "ms"
        "weighted sleep or credited wait (w of the paper's rule b), where more than 0,";
    SLEEP_AVG "sleep_avg" in "ms" "sleep_avg after each credit and each run";
    PRIORITY "priority" in "" "effective priority, 100 to 139,";
}
