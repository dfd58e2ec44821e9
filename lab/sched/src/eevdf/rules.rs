//! The rules that differ between kernels, and the spans that follow from a machine.

use warmq_config::choices;

use super::settings::Rules;

pub(super) const MS: i64 = 1_000_000;

choices! {
    /// What a change of weight does to an entity that is queued (`reweight_entity()`).
    pub(super) enum Reweight {
        /// Its lag in CPU time stays, and so does the average of its queue (6.6.139, 6.12, 6.18.45,
        /// and from 7.1).
        KeepsAverage = "keeps-average",
        /// It is placed again as if it joined its queue, also while it runs and is still counted
        /// there (6.13 to 7.0).
        PlacesAgain = "places-again",
        /// It stays where it is, so that its lag in CPU time follows its weight (6.6).
        KeepsVruntime = "keeps-vruntime",
    }

    /// How much lag counts (`update_entity_lag()`).
    pub(super) enum LagLimit {
        /// Two slices of its own, or a tick.
        OwnSlice = "own-slice",
        /// The longest slice of its queue, and a tick.
        LongestSlice = "longest-slice",
    }

    /// Until when a picked entity keeps its CPU, whoever else is eligible.
    pub(super) enum Protection {
        /// Until its deadline changes (6.6, 6.12).
        Deadline = "deadline",
        /// For the shortest slice of its queue (from 6.17).
        ShortestSlice = "shortest-slice",
    }

    /// How a wakeup asks whether to preempt (`check_preempt_wakeup_fair()`).
    pub(super) enum WakeupTest {
        /// As 6.6: by the pick alone; one that does not run in the background ends nobody's
        /// protection.
        V6_6 = "6.6",
        /// As 6.12: a short slice cancels protection where it would win by its deadline.
        V6_12 = "6.12",
        /// As 6.18.2: a short slice is compared as if nobody were protected.
        V6_18 = "6.18",
        /// As 6.19: the same, and a child or a delayed entity never preempts.
        V6_19 = "6.19",
    }

    /// What the shares of a group are multiplied by before they are shared out to its CPUs
    /// (`cgroup_mode`).
    pub(super) enum CgroupMode {
        /// By 1 (up to 7.2).
        Smp = "smp",
        /// By the number of tasks that are runnable on average, or of CPUs if that is less (from
        /// 7.3).
        Concurrent = "concur",
        /// By the number of CPUs; nowhere does a group weigh more than a task of nice -20.
        Max = "max",
        /// By the number of tasks.
        Tasks = "tasks",
        /// Each CPU has all shares.
        Up = "up",
    }
}

/// By how much spans grow with the number of CPUs (`get_update_sysctl_factor()`).
pub(super) fn scale(scaling: &str, cpus: u16) -> i64 {
    let cpus = i64::from(cpus.clamp(1, 8));
    match scaling {
        "none" => 1,
        "linear" => cpus,
        _ => 1 + i64::from(cpus.ilog2()),
    }
}

impl Rules {
    /// Ticks a second (`HZ`).
    pub(super) fn hz(&self) -> i64 {
        1_000 * MS / self.tick
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decision case 3, second half: the slice is 0.7 ms on one CPU and 2.8 ms from 8 on.
    #[test]
    fn case_3_slices_grow_with_the_logarithm_of_up_to_8_cpus() {
        for (cpus, log, linear) in [
            (1, 1, 1),
            (2, 2, 2),
            (3, 2, 3),
            (4, 3, 4),
            (8, 4, 8),
            (384, 4, 8),
        ] {
            assert_eq!(scale("log", cpus), log, "{cpus} CPUs");
            assert_eq!(scale("linear", cpus), linear, "{cpus} CPUs");
            assert_eq!(scale("none", cpus), 1, "{cpus} CPUs");
        }
    }
}
