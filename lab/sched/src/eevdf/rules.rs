//! The rules that differ between kernels, and the spans that follow from a machine.

use warmq_config::Chosen;

use warmq_classes::{IdleTime, Reservation};

use super::weights::Precision;

pub(super) const MS: i64 = 1_000_000;

/// What a change of weight does to an entity that is queued (`reweight_entity()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reweight {
    /// Its lag in CPU time stays, and so does the average of its queue (6.12, from 7.1, and
    /// 6.18.45).
    KeepsAverage,
    /// It is placed again as if it joined its queue, also while it runs and is still counted there
    /// (6.13 to 7.0).
    PlacesAgain,
}

/// How much lag counts (`update_entity_lag()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LagLimit {
    /// Two slices of its own, or a tick.
    OwnSlice,
    /// The longest slice of its queue, and a tick.
    LongestSlice,
}

/// Until when a picked entity keeps its CPU, whoever else is eligible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protection {
    /// Until its deadline changes (6.12).
    Deadline,
    /// For the shortest slice of its queue (from 6.17).
    ShortestSlice,
}

/// What lag an entity leaves with that slept while it was owing (`DELAY_ZERO`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DelayedLag {
    /// What it owes when it leaves.
    AsItLeaves,
    /// No more than what it owed when it fell asleep (from 7.1).
    AtMostAsItSlept,
}

/// How a wakeup asks whether to preempt (`check_preempt_wakeup_fair()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WakeupTest {
    /// As 6.12: a short slice cancels protection where it would win by its deadline.
    V6_12,
    /// As 6.18.2: a short slice is compared as if nobody were protected.
    V6_18,
    /// As 6.19: the same, and a child or a delayed entity never preempts.
    V6_19,
}

/// What the shares of a group are multiplied by before they are shared out to its CPUs
/// (`cgroup_mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CgroupMode {
    /// Each CPU has all shares.
    Up,
    /// By 1 (up to 7.2).
    Smp,
    /// By the number of tasks that are runnable on average, or of CPUs if that is less (from 7.3).
    Concurrent,
    /// By the number of CPUs; nowhere does a group weigh more than a task of nice -20.
    Max,
    /// By the number of tasks.
    Tasks,
}

/// Everything that is decided by a kernel's version, its features and the number of CPUs. Spans are
/// in ns.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// The slice of whoever asks for none, and the same for one CPU
    /// (`normalized_sysctl_sched_base_slice`).
    pub(super) base_slice: i64,
    pub(super) one_cpu_slice: i64,
    pub(super) tick: i64,
    pub(super) precision: Precision,
    pub(super) reweight: Reweight,
    /// Whether a reweight leaves protection as it is, in relation to the deadline.
    pub(super) keeps_protection: bool,
    pub(super) lag_limit: LagLimit,
    pub(super) protection: Protection,
    pub(super) delayed_lag: DelayedLag,
    pub(super) wakeup_test: WakeupTest,
    pub(super) run_to_parity: bool,
    pub(super) preempt_short: bool,
    pub(super) wakeup_preemption: bool,
    pub(super) clock_skip: bool,
    pub(super) delay_dequeue: bool,
    pub(super) delay_zero: bool,
    pub(super) requeue_charges: bool,
    pub(super) place_lag: bool,
    pub(super) place_deadline_initial: bool,
    pub(super) place_rel_deadline: bool,
    pub(super) pick_buddy: bool,
    pub(super) next_buddy: bool,
    pub(super) yield_forfeits: bool,
    pub(super) hrtick: bool,
    pub(super) hrtick_again: bool,
    pub(super) hrtick_dl: bool,
    /// Whether only tasks compete, and no groups.
    pub(super) flat: bool,
    pub(super) cgroup_mode: CgroupMode,
    pub(super) groups: bool,
    pub(super) autogroup: bool,
    pub(super) wake_affine: bool,
    pub(super) ttwu_queue: bool,
    pub(super) sis_util: bool,
    pub(super) util_est: bool,
    pub(super) migration_cost: i64,
    pub(super) nr_migrate: usize,
    /// Whether a CPU looks for work only as often as it found some (`NI_RANDOM`).
    pub(super) newidle_random: bool,
    /// Whether it looks the more often, the more rarely it idles (`NI_RATE`).
    pub(super) newidle_rate: bool,
    /// Whether balancing leaves a task where it owes time, until it has failed once.
    pub(super) ineligible_stay: bool,
    /// Whether balancing counts tasks that are queued in their sleep (`h_nr_queued`).
    pub(super) counts_delayed: bool,
    /// Whether the idle CPU that balances for all is one on an idle core, if there is one.
    pub(super) kicks_idle_core: bool,
    /// Where CPUs are of unlike capacity, whether idle cores count among them, and wakeups look at
    /// the fewer CPUs, the busier they are.
    pub(super) unlike_cores: bool,
    /// Whether a group counts as having a task that needs a larger CPU only for a CPU that is
    /// larger, and a busy sibling makes a CPU smaller.
    pub(super) misfit_if_larger: bool,
    /// What real-time tasks leave to fair ones (`rq->fair_server`).
    pub(super) fair_server: Reservation,
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

fn ns(chosen: &Chosen, name: &str) -> i64 {
    i64::try_from(chosen.duration(name).as_ns()).unwrap_or(i64::MAX)
}

impl Rules {
    /// Ticks a second (`HZ`).
    pub(super) fn hz(&self) -> i64 {
        1_000 * MS / self.tick
    }

    /// What `chosen` is on a machine of `cpus` CPUs with a tick of `tick` ns.
    pub(super) fn new(chosen: &Chosen, cpus: u16, tick: u64) -> Rules {
        let one_cpu_slice = ns(chosen, "base_slice");
        let scaled = one_cpu_slice * scale(chosen.choice("tunable_scaling"), cpus);
        Rules {
            base_slice: scaled,
            one_cpu_slice,
            tick: tick as i64,
            precision: match chosen.flag("full_weights") {
                true => Precision::Full,
                false => Precision::Down,
            },
            reweight: match chosen.choice("reweight") {
                "places-again" => Reweight::PlacesAgain,
                _ => Reweight::KeepsAverage,
            },
            keeps_protection: chosen.flag("reweight_keeps_protection"),
            lag_limit: match chosen.choice("lag_limit") {
                "longest-slice" => LagLimit::LongestSlice,
                _ => LagLimit::OwnSlice,
            },
            protection: match chosen.choice("protection") {
                "deadline" => Protection::Deadline,
                _ => Protection::ShortestSlice,
            },
            delayed_lag: match chosen.flag("delayed_lag_bounded") {
                true => DelayedLag::AtMostAsItSlept,
                false => DelayedLag::AsItLeaves,
            },
            wakeup_test: match chosen.choice("wakeup_test") {
                "6.12" => WakeupTest::V6_12,
                "6.18" => WakeupTest::V6_18,
                _ => WakeupTest::V6_19,
            },
            run_to_parity: chosen.flag("run_to_parity"),
            preempt_short: chosen.flag("preempt_short"),
            wakeup_preemption: chosen.flag("wakeup_preemption"),
            clock_skip: chosen.flag("clock_skip"),
            delay_dequeue: chosen.flag("delay_dequeue"),
            delay_zero: chosen.flag("delay_zero"),
            requeue_charges: chosen.flag("requeue_charges"),
            place_lag: chosen.flag("place_lag"),
            place_deadline_initial: chosen.flag("place_deadline_initial"),
            place_rel_deadline: chosen.flag("place_rel_deadline"),
            pick_buddy: chosen.flag("pick_buddy"),
            next_buddy: chosen.flag("next_buddy"),
            yield_forfeits: chosen.flag("yield_forfeits"),
            hrtick: chosen.flag("hrtick"),
            hrtick_again: chosen.flag("hrtick_again"),
            hrtick_dl: chosen.flag("hrtick_dl"),
            flat: chosen.flag("flat"),
            cgroup_mode: match chosen.choice("cgroup_mode") {
                "up" => CgroupMode::Up,
                "concur" => CgroupMode::Concurrent,
                "max" => CgroupMode::Max,
                "tasks" => CgroupMode::Tasks,
                _ => CgroupMode::Smp,
            },
            groups: chosen.flag("groups"),
            autogroup: chosen.flag("autogroup"),
            wake_affine: chosen.flag("wake_affine"),
            ttwu_queue: chosen.flag("ttwu_queue"),
            sis_util: chosen.flag("sis_util"),
            util_est: chosen.flag("util_est"),
            migration_cost: ns(chosen, "migration_cost"),
            nr_migrate: chosen.count("nr_migrate") as usize,
            newidle_random: chosen.flag("newidle_random"),
            newidle_rate: chosen.flag("newidle_rate"),
            ineligible_stay: chosen.flag("ineligible_stay"),
            counts_delayed: chosen.flag("counts_delayed"),
            kicks_idle_core: chosen.flag("kicks_idle_core"),
            unlike_cores: chosen.flag("unlike_cores"),
            misfit_if_larger: chosen.flag("misfit_if_larger"),
            fair_server: Reservation {
                runtime: ns(chosen, "fair_server_runtime"),
                period: ns(chosen, "fair_server_period"),
                idle: match chosen.choice("fair_server_idle") {
                    "spends" => IdleTime::Spends,
                    _ => IdleTime::Stops,
                },
            },
        }
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
