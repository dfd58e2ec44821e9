//! What the scheduler says of each task: what the thesis counted in the kernel.

use warmq_kernel::Statistic;

use crate::Said;

/// By the numbers below.
pub(crate) const STATISTICS: &[Said] = &[
    event("slices_used_up", "slices used up"),
    event(
        "expirations",
        "slices used up that ended in the expired array",
    ),
    event(
        "reinsertions",
        "slices used up that ended in the active array again",
    ),
    value(
        "sleep_credit",
        "ms",
        "weighted sleep or credited wait (w of the paper's rule b), where more than 0,",
    ),
    value(
        "sleep_avg",
        "ms",
        "sleep_avg after each credit and each run",
    ),
    value("priority", "", "effective priority, 100 to 139,"),
];

pub(super) const SLICES_USED_UP: Statistic = Statistic(0);
pub(super) const EXPIRATIONS: Statistic = Statistic(1);
pub(super) const REINSERTIONS: Statistic = Statistic(2);
pub(super) const SLEEP_CREDIT: Statistic = Statistic(3);
pub(super) const SLEEP_AVG: Statistic = Statistic(4);
pub(super) const PRIORITY: Statistic = Statistic(5);

const fn event(name: &'static str, what: &'static str) -> Said {
    Said {
        name,
        unit: None,
        what,
    }
}

const fn value(name: &'static str, unit: &'static str, what: &'static str) -> Said {
    Said {
        name,
        unit: Some(unit),
        what,
    }
}
