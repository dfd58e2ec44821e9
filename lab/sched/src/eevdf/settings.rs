//! What can be set, and what a kernel's version has by default.

use warmq_classes::{IdleTime, Reservation};
use warmq_config::{Chosen, Setting};
use warmq_units::Duration;

use super::cache_aware;
use super::rules::{CgroupMode, LagLimit, Protection, Reweight, WakeupTest, scale};
use super::weights::Precision;

const FEATURES: &str = "Linux, kernel/sched/features.h";
const TUNABLES: &str = "Linux, kernel/sched/fair.c";
const LONGEST_SLICE: Duration = Duration::from_ms(100);
/// `dl_server_period_max`; the least is 100 us.
const LONGEST_PERIOD: Duration = Duration::from_us(1 << 22);

/// A kernel whose scheduler is a default of the settings. The commits that divide them, and the
/// stable releases that have them, are in the sources of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    /// 6.6 as 6.6.139 has it.
    V6_6,
    /// 6.12 as Debian 13 has it.
    V6_12,
    /// 6.18 up to 6.18.16.
    V6_18,
    /// 7.1.
    V7_1,
    /// 7.2.
    V7_2,
    /// 7.3: V7_2 with the flat run queue. Other changes of 7.3 are not in it.
    V7_3,
}

use Version::{V6_6, V6_12, V6_18, V7_1, V7_2, V7_3};

/// What can be set on the scheduler of `version`, with its defaults.
pub(crate) fn settings(version: Version) -> Vec<Setting> {
    let mut settings = of_the_queue(version);
    let cache_aware = if version < V7_2 { "off" } else { "process" };
    settings.extend(cache_aware::settings(cache_aware));
    settings
}

/// A time in ns.
fn ns(chosen: &Chosen, name: &str) -> i64 {
    chosen.get(name)
}

warmq_config::settings_of! {
    /// Everything that is decided by a kernel's version, its features and the number of CPUs, with
    /// a tick of `tick` ns. Spans are in ns.
    #[derive(Clone, Debug)]
    pub(super) struct Rules(chosen, cpus: u16, tick: u64) {
        /// The slice of whoever asks for none, and the same for one CPU
        /// (`normalized_sysctl_sched_base_slice`).
        base_slice: i64 = ns(chosen, "base_slice") * scale(chosen.choice("tunable_scaling"), cpus),
        one_cpu_slice: i64 = ns(chosen, "base_slice"),
        tick: i64 = tick as i64,
        precision: Precision = match chosen.flag("full_weights") {
            true => Precision::Full,
            false => Precision::Down,
        },
        /// What real-time tasks leave to fair ones (`rq->fair_server`).
        fair_server: Reservation = Reservation {
            runtime: ns(chosen, "fair_server_runtime"),
            period: ns(chosen, "fair_server_period"),
            idle: match chosen.choice("fair_server_idle") {
                "spends" => IdleTime::Spends,
                _ => IdleTime::Stops,
            },
        },
    }

    /// What can be set but for what makes balancing aware of caches.
    fn of_the_queue(version: Version) {
        "hz", count((100, 1_000), 250, "Hz"),
            "ticks a second",
            "Debian's kernels: CONFIG_HZ=250";
        "hrtick" => hrtick: bool, flag(version >= V7_1),
            "whether a timer ends the slice of a task that is not alone; if not, a tick does",
            "off in features.h until 7.1, which turns it on where timers can be re-armed late (x86); when it is \
             armed as in 7.1.5 (hrtick_start_fair(), hrtick_schedule_exit())";
        "hrtick_again" => hrtick_again: bool, flag(false),
            "whether that timer is also armed for a task that is picked again as its slice ends; if not, that \
             task has the CPU until a tick",
            "hrtick_start_fair() is called by set_next_task_fair() in the sources of 7.1.5 and 7.3.4, thus for \
             another task only; known upstream, no fix in 7.3.4";
        "hrtick_dl" => hrtick_dl: bool, flag(version >= V7_1),
            "whether a timer ends the runtime of a deadline task; if not, a tick does",
            "HRTICK_DL in features.h, as `hrtick`";
        "base_slice", duration((Duration::from_us(100), LONGEST_SLICE), Duration::from_us(if version == V6_6 { 750 } else { 700 })),
            "the slice of a task that asks for none; for one CPU",
            "base_slice_ns; 0.75 ms before 6.15 and 6.12.30, and still in 6.6.139";
        "custom_slices" => custom_slices: bool, flag(version >= V6_12),
            "whether a task may ask for a slice of its own (sched_attr.sched_runtime)",
            "857b158dc5e8 (6.12)";
        "tunable_scaling", choice(&["log", "none", "linear"]),
            "`log`: base_slice is multiplied by 1 + floor(log2 CPUs), of 8 CPUs at most; `linear`: by the \
             number of CPUs, 8 at most",
            TUNABLES;
        "reweight" => reweight: Reweight, choice_of(&Reweight::WORDS, if version == V6_18 { "places-again" } else { "keeps-average" }),
            "what happens to a queued entity whose weight changes, as that of a group does when its tasks \
             sleep and wake: `keeps-average` scales its lag; `places-again` places it as if it had just \
             joined, even if it runs, and starves other groups; `keeps-vruntime` scales the distance to its \
             deadline alone. With `flat` it is always the first",
            "6d71a9c61604 (6.13), reverted by 101f3498b4bd (7.1, 6.18.45); 6.6 began with `keeps-vruntime`, which \
             eab03c23c2a1 (6.7, and in the source of 6.6.139) replaced";
        "lag_limit" => lag_limit: LagLimit, choice_of(&LagLimit::WORDS, if version < V7_1 { "own-slice" } else { "longest-slice" }),
            "the most lag that counts: two slices of its own or a tick, or the longest slice of its queue and \
             a tick",
            "6e3c0a4e1ad1 (7.0, 6.18.17, 6.19.7)";
        "full_weights", flag(version >= V7_1),
            "whether weights count with the ten bits behind their point",
            "Linux 7.1";
        "place_lag" => place_lag: bool, flag(true),
            "whether an entity that joins a queue has the lag that it left its last with",
            FEATURES;
        "place_deadline_initial" => place_deadline_initial: bool, flag(true),
            "whether the first slice of a new task is half of one",
            FEATURES;
        "places_new_twice" => places_new_twice: bool, flag(version < V6_12),
            "whether a new task is placed again as one that is not new, which gives it a whole slice all the same",
            "wake_up_new_task() passes ENQUEUE_INITIAL in 6.12, and not in 6.6.139";
        "place_rel_deadline" => place_rel_deadline: bool, flag(version >= V6_12),
            "whether an entity that moves keeps the distance to its deadline",
            "features.h of 6.12; 6.6 has no such feature";
        "yield_forfeits" => yield_forfeits: bool, flag(true),
            "whether sched_yield also gives away what is left of the slice; if not, it only puts off the deadline",
            "79104becf42b (6.17; in 6.12 since a release between .56 and .63; in 6.6.139)";
        "protection" => protection: Protection, choice_of(&Protection::WORDS, if version < V6_18 { "deadline" } else { "shortest-slice" }),
            "until when a picked entity keeps the CPU: until its own slice is over, or for the shortest slice \
             of its queue",
            "74eec63661d4 and others (6.17)";
        "reweight_keeps_protection" => keeps_protection: bool, flag(version >= V7_1),
            "whether the running entity is still protected after its weight has changed",
            "80390ead2080 (7.0, 6.18.45): lag and protection are no longer kept in one word";
        "run_to_parity" => run_to_parity: bool, flag(true),
            "whether a picked entity is protected at all; if not, for 0.7 ms from 6.17 on",
            FEATURES;
        "wakeup_test" => wakeup_test: WakeupTest, choice_of(&WakeupTest::WORDS, match version {
            V6_6 => "6.6",
            V6_12 => "6.12",
            V6_18 => "6.18",
            _ => "6.19",
        }),
            "by which kernel's rules a woken task preempts: they differ for short slices, children and tasks \
             whose dequeue is delayed",
            "check_preempt_wakeup_fair(); e837456fdca8 and 15257cc2f905 (6.19)";
        "preempt_short" => preempt_short: bool, flag(version >= V6_12),
            "whether a woken task with a shorter slice preempts a protected one",
            FEATURES;
        "wakeup_preemption" => wakeup_preemption: bool, flag(true),
            "whether wakeups preempt at all",
            FEATURES;
        "clock_skip" => clock_skip: bool, flag(true),
            "whether what passes from a wakeup that preempts at once to the switch is charged to the woken task, \
             as the clock is not read again in between; if not, to the one that still runs",
            "rq_clock_skip_update() in wakeup_preempt() and yield_task_fair(), in sources of 4.16 to 6.12; seen in a \
             recording of 6.18.44 (docs/simplex.md)";
        "pick_buddy" => pick_buddy: bool, flag(version >= V6_12),
            "whether the next buddy is picked first while it is eligible",
            FEATURES;
        "next_buddy" => next_buddy: bool, flag(false),
            "whether a woken task becomes the next buddy",
            "aceccac58ad7, off again by 4f70f106bca1 before 6.19";
        "delay_dequeue" => delay_dequeue: bool, flag(version >= V6_12),
            "whether a task that owes time stays queued in its sleep until its lag is paid",
            FEATURES;
        "delay_zero" => delay_zero: bool, flag(version >= V6_12),
            "whether such a task earns nothing meanwhile",
            FEATURES;
        "requeue_charges" => requeue_charges: bool, flag(version >= V7_2),
            "whether the running task is charged before such a task that wakes is placed again; if not, what \
             that is owed is as of the last tick",
            "off in the sources of 6.12.63, 6.18.2, 6.18.35 and 7.1.5 and as seen in guests of 6.12, 6.18 and \
             7.1.13, on as seen in guests of 7.2.12 (docs/decisions.md); no source of 7.2 was to be had";
        "delayed_lag_bounded" => delayed_lag_bounded: bool, flag(version >= V7_1),
            "whether such a task never owes more than when it fell asleep",
            "Linux 7.1";
        "flat" => flat: bool, flag(version >= V7_3),
            "whether only tasks compete for a CPU, all with one another, each with the part of its groups' \
             weights that is its own; if not, groups compete, and within them tasks",
            "85570f10a4c6 (7.3), read as version 3 of the patch, with the later fix that the running task is \
             charged whatever its group (1719d035a6fa); protection and short slices are as in 7.1, as what \
             7.3 changed in them was not read";
        "cgroup_mode" => cgroup_mode: CgroupMode, choice_of(&CgroupMode::WORDS, if version < V7_3 { "smp" } else { "concur" }),
            "what the shares of a group are multiplied by before its CPUs have their parts of them: `smp` \
             by 1, `concur` by the tasks that are runnable on average, and by the CPUs at most, `max` by \
             the CPUs, `tasks` by the tasks; `up` gives each CPU all shares",
            "debugfs sched/cgroup_mode; fb1050ac8e40 (7.3), before that as `smp`. The CPUs are all of the \
             machine: of cpusets a group knows nothing here";
        "empty_keeps_weight" => empty_keeps_weight: bool, flag(version >= V6_12),
            "whether a group that has just become empty on a CPU keeps its weight there; if not, it has that of its \
             past load until a task comes back",
            "66951e4860d3 (6.14, 6.12.14)";
        "load_interval" => load_interval: i64, duration((Duration::ZERO, Duration::from_s(1)), Duration::from_ms((version > V6_6).into())),
            "how often a CPU says at most what load of a group it has, from which its weights elsewhere follow",
            "1528c661c24b (6.7): 1 ms; before, whenever it has changed by a 64th (update_tg_load_avg())";
        "groups" => groups: bool, flag(true),
            "whether a CPU is shared out to task groups by their shares, then to their tasks",
            "Linux, CONFIG_FAIR_GROUP_SCHED";
        "autogroup" => autogroup: bool, flag(true),
            "whether each session is a group of its own",
            "Linux, kernel.sched_autogroup_enabled";
        "bandwidth_slice", duration((Duration::from_us(1), LONGEST_SLICE), Duration::from_ms(5)),
            "how much CPU time a group's queue on a CPU takes from the group's quota at once",
            "/proc/sys/kernel/sched_cfs_bandwidth_slice_us";
        "wake_affine" => wake_affine: bool, flag(true),
            "whether a waker draws a woken task to its own CPU (WA_IDLE, WA_WEIGHT)",
            FEATURES;
        "ttwu_queue" => ttwu_queue: bool, flag(true),
            "whether a wakeup is left to the CPU where the task is to run, if that idles or is under another \
             last-level cache; if not, the waker queues the task there itself",
            "features.h; ttwu_queue_cond() of 6.12.63, 6.18.2 and 7.1.5";
        "sis_util" => sis_util: bool, flag(true),
            "whether a wakeup looks at the fewer CPUs for an idle one, the busier those of a cache are",
            FEATURES;
        "util_est" => util_est: bool, flag(true),
            "whether balancing counts what the tasks of a CPU are expected to use of it, where that is more \
             than they used lately",
            FEATURES;
        "migration_cost" => migration_cost: i64, duration((Duration::ZERO, Duration::from_s(1)), Duration::from_us(500)),
            "a task that ran less than this ago is cache-hot and is not pulled at first",
            TUNABLES;
        "nr_migrate" => nr_migrate: usize, count((0, 10_000), 32, "tasks"),
            "how many tasks of a queue are looked at in one pull",
            TUNABLES;
        "newidle_random" => newidle_random: bool, flag(version != V6_18),
            "whether a CPU that is about to idle looks for work only as often as it found some before",
            "NI_RANDOM (6.19, 6.12.65, and releases of 6.18 between .3 and .35 and of 6.6)";
        "newidle_rate" => newidle_rate: bool, flag(version >= V7_1),
            "whether it looks the more often, the more rarely it is about to idle: always, if 512 times take 4 s or more",
            "NI_RATE (7.1)";
        "ineligible_stay" => ineligible_stay: bool, flag(version >= V6_18),
            "whether balancing leaves a task that owes time where it is, if its group has tasks on the CPU \
             that pulls, until an attempt there has failed",
            "task_is_ineligible_on_dst_cpu(), in 7.1.5 and 6.18.2, not in 6.12";
        "counts_delayed" => counts_delayed: bool, flag(version < V6_18),
            "whether balancing counts the tasks that are still queued in their sleep as others",
            "h_nr_queued in update_sg_lb_stats() of 6.12.117, h_nr_runnable in that of 7.2.12";
        "kicks_idle_core" => kicks_idle_core: bool, flag(version >= V7_3),
            "whether a busy CPU wakes an idle one on an idle core to balance for all that idle; if not, \
             or if there is none, the first that idles",
            "find_new_ilb() of 7.3.4, not of 7.2.12";
        "unlike_cores" => unlike_cores: bool, flag(version >= V7_2),
            "where CPUs are of unlike capacity: whether wakeups prefer idle cores, and look at the fewer CPUs \
             the busier they are, and whether a task that needs a larger CPU is pulled to an idle core only",
            "select_idle_capacity(), asym_fits_cpu() and dst_core_idle in 7.2.12, not in 6.12.117";
        "misfit_if_larger" => misfit_if_larger: bool, flag(version >= V7_3),
            "where CPUs are of unlike capacity: whether a task that needs a larger CPU counts only for a CPU \
             that balances and is larger, and a lone task may leave a core with busy siblings, or go to \
             another cluster of the same capacity",
            "update_sg_lb_stats() and sched_balance_find_src_rq() of 7.3.4, not of 7.2.12";
        "rt_runtime" => rt_runtime: i64, duration((Duration::ZERO, LONGEST_PERIOD), Duration::from_ms(if version == V6_6 { 950 } else { 0 })),
            "the most that real-time tasks have of a CPU in each `rt_period`, then they wait, and it may idle; 0: all",
            "kernel.sched_rt_runtime_us (0 is its -1) until 6.11; from 6.12 on nothing is throttled unless \
             CONFIG_RT_GROUP_SCHED is set (5f6bd380c7bd). No CPU borrows from another: RT_RUNTIME_SHARE is off from \
             5.10 on";
        "rt_period" => rt_period: i64, duration((Duration::from_us(100), LONGEST_PERIOD), Duration::from_s(1)),
            "the period of that, for all CPUs the same; the first begins with the first real-time task",
            "kernel.sched_rt_period_us";
        "fair_server_runtime", duration((Duration::ZERO, LONGEST_PERIOD), Duration::from_ms(if version == V6_6 { 0 } else { 50 })),
            "the CPU time that fair tasks have in each period beside real-time ones, which would starve \
             them; at most the period; 0 switches the server off",
            "debugfs sched/fair_server/cpu*/runtime; 557a6bfc662c (6.12). Until 6.11 `rt_runtime` leaves 50 ms in 1 s";
        "fair_server_period", duration((Duration::from_us(100), LONGEST_PERIOD), Duration::from_s(1)),
            "the period of that; it serves so late in its period that the runtime just fits",
            "debugfs sched/fair_server/cpu*/period";
        "fair_server_counts", flag((V6_12..V7_2).contains(&version)),
            "whether what the server has reserved counts where deadline tasks are admitted",
            "seen in guests of one CPU: 6.12.118, 6.18.15 and 7.1.13 refuse a task of 94.9 % of it, 7.2.12 and \
             7.3.4 admit it. By the source of 7.3.4, too, it is to count (dl_server_apply_params())";
        "fair_server_idle", choice_of(&["stops", "spends"], if version < V7_1 { "spends" } else { "stops" }),
            "what idle time does to the server: `spends` uses up its runtime; `stops` puts it off by a \
             period, and stops it if the CPU idles for all of that",
            "dl_server_update_idle_time() in the source of 6.12.117; dl_defer_idle in that of 7.3.4; the \
             source of 6.18 was not read";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_have_the_same_settings() {
        let names = |version| -> Vec<String> {
            settings(version)
                .into_iter()
                .map(|setting| setting.name)
                .collect()
        };
        assert_eq!(names(V6_12), names(V6_6));
        assert_eq!(names(V6_12), names(V6_18));
        assert_eq!(names(V6_12), names(V7_1));
        assert_eq!(names(V6_12), names(V7_2));
        assert_eq!(names(V6_12), names(V7_3));
    }

    #[test]
    fn each_default_is_allowed() {
        for version in [V6_6, V6_12, V6_18, V7_1, V7_2, V7_3] {
            for setting in settings(version) {
                assert!(setting.kind.admits(&setting.default), "{}", setting.name);
            }
        }
    }
}
