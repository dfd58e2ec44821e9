//! What can be set, and what follows from it on a machine.

use warmq_config::Chosen;
use warmq_units::Duration;

use super::weights::delta_fair;

/// The most that `sched_latency` and `min_granularity` grow to on large machines, in ns
/// (`sched_init_granularity()`).
const LIMIT: i64 = 200_000_000;
const SECOND: i64 = 1_000_000_000;

const TUNABLES: &str = "Linux 2.6.24, kernel/sched_fair.c";
const FEATURES: &str = "Linux 2.6.24, sched_features";
const FORMULA_5_1: &str = "Al-Mane' 2009, formula 5-1; alpha is left open there";

/// How far behind a woken task must be to preempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Granularity {
    /// `wakeup_granularity`, in the weight of the running task.
    Global,
    /// Formula 5-1, with alpha in ns.
    Local { alpha: i64 },
}

warmq_config::settings_of! {
    /// The settings as they are in force on a machine of `cpus` CPUs; spans in ns.
    pub(super) struct Tunables(chosen, cpus: u16) {
        latency: i64 = limited(ns(chosen, "sched_latency"), factor(chosen, cpus)),
        // The kernel computes it from what was set last, and not again when it scales.
        nr_latency: u64 = {
            let (latency, least) = (ns(chosen, "sched_latency"), ns(chosen, "min_granularity"));
            (latency as u64).div_ceil((least as u64).max(1)).max(1)
        },
        wakeup_granularity: i64 = ns(chosen, "wakeup_granularity") * factor(chosen, cpus),
        granularity: Granularity = match chosen.choice("granularity") {
            "local" => Granularity::Local { alpha: ns(chosen, "alpha") },
            _ => Granularity::Global,
        },
        groups: bool = chosen.choice("groups") == "on",
    }

    /// What can be set.
    pub(crate) fn settings() {
        "sched_latency", duration((Duration::from_us(100), Duration::from_s(1)), Duration::from_ms(20)),
            "the period in which each task runs once, while few are runnable, and the most that a \
             sleeper is credited with; for one CPU, at most 200 ms on larger machines",
            TUNABLES;
        "min_granularity", duration((Duration::from_us(100), Duration::from_s(1)), Duration::from_ms(4)),
            "where more tasks are runnable than `sched_latency` has room for, each has so much of \
             the period; for one CPU, at most 200 ms on larger machines",
            TUNABLES;
        "wakeup_granularity", duration((Duration::ZERO, Duration::from_s(1)), Duration::from_ms(10)),
            "by how much CPU time of the running task a woken one must be behind to preempt it; \
             for one CPU",
            TUNABLES;
        "batch_wakeup_granularity", duration((Duration::ZERO, Duration::from_s(1)), Duration::from_ms(10)),
            "nothing: the kernel has it for SCHED_BATCH and never reads it, as SCHED_BATCH never \
             preempts",
            TUNABLES;
        "tunable_scaling", choice(&["log", "none"]),
            "`log`: the four spans above are multiplied by 1 + floor(log2 CPUs) at boot; `none`: \
             they are as set, like values written to /proc/sys/kernel later",
            "Linux 2.6.24, sched_init_granularity(); named as in later kernels";
        "granularity", choice(&["global", "local"]),
            "`global`: wakeups preempt by `wakeup_granularity`; `local`: by a granularity of the \
             woken task, which grows with how often it sleeps",
            "Al-Mane' 2009, chapter 5";
        "alpha", duration((Duration::from_ns(1), Duration::from_ms(1)), Duration::from_us(1)),
            "with `granularity = \"local\"`: the granularity of a nice 0 task that sleeps once a \
             second; alpha * num_sleeps / (sched_period * weight)",
            FORMULA_5_1;
        "compat_yield" => compat_yield: bool, flag(false),
            "whether sched_yield puts a task behind all that wait, as before CFS",
            TUNABLES;
        "child_runs_first" => child_runs_first: bool, flag(true),
            "whether a child takes over its parent's vruntime if that is less than its own",
            TUNABLES;
        "new_fair_sleepers" => fair_sleepers: bool, flag(true),
            "whether a woken task is credited with up to `sched_latency` of its sleep",
            FEATURES;
        "wakeup_preempt" => wakeup_preempt: bool, flag(true),
            "whether wakeups preempt; if not, slices also end where nobody waits",
            FEATURES;
        "start_debit" => start_debit: bool, flag(true),
            "whether a new task waits for one slice, so that forks win no time",
            FEATURES;
        "groups", choice(&["off", "on"]),
            "`on`: a CPU is shared out to task groups by their weights, then to their tasks",
            "the thesis names no users; Kconfig's default (a group for each user) is `on`";
        "group_levels" => group_levels: u64, count((1, 16), 1, "levels"),
            "how deep groups lie in one another; tasks of deeper ones count in the last level's",
            "Linux 2.6.24, cpu_cgroup_create(): one level";
        "root_weight" => root_weight: u64, count((2, 200_000), 2_048, "weight"),
            "the weight, beside groups of 1024, of the tasks in no group and of kernel threads",
            "Linux 2.6.24, INIT_TASK_GRP_LOAD with a group for each user; 1024 with cgroups";
        "clock", choice(&["tsc", "jiffies"]),
            "what CPU time is measured by, held to a tick past the last tick; `jiffies` counts \
             ticks only",
            "Linux 2.6.24, sched_clock(): jiffies only without a TSC";
        "migration_cost" => migration_cost: i64, duration((Duration::ZERO, Duration::from_s(1)), Duration::from_us(500)),
            "a task that ran less than this ago is cache-hot and is not pulled at first",
            TUNABLES;
        "nr_migrate" => nr_migrate: usize, count((0, 10_000), 32, "tasks"),
            "how many tasks of a queue are looked at in one pull",
            TUNABLES;
        "fork_balance" => fork_balance: bool, flag(false),
            "whether a child starts on the idlest CPU; if not, on its parent's",
            "SD_BALANCE_FORK is in no level of a header of 2.6.18 to 2.6.20, and in all of 2.6.28's; that of \
             2.6.24 was not to be had";
    }
}

fn ns(chosen: &Chosen, name: &str) -> i64 {
    chosen.get(name)
}

/// By how much spans grow on a machine of `cpus` CPUs.
fn factor(chosen: &Chosen, cpus: u16) -> i64 {
    match chosen.choice("tunable_scaling") {
        "none" => 1,
        _ => scale(cpus),
    }
}

fn limited(span: i64, factor: i64) -> i64 {
    (span * factor).min(LIMIT.max(span))
}

impl Tunables {
    /// The period in which each of `running` entities runs once, in ns (`__sched_period()`).
    pub(super) fn period(&self, running: u64) -> i64 {
        if running <= self.nr_latency {
            return self.latency;
        }
        let stretched =
            i128::from(self.latency) * i128::from(running) / i128::from(self.nr_latency);
        i64::try_from(stretched).unwrap_or(i64::MAX)
    }

    /// The wakeup granularity of a task of `weight` that has slept `sleeps` times in a period of
    /// `period` ns, in virtual ns.
    ///
    /// ```text
    ///     g = alpha * num_sleeps / (sched_period * weight)                      (formula 5-1)
    ///
    ///     sched_period := period in seconds      weight := 1 at nice 0
    /// ```
    ///
    /// The unit of alpha is ours: the formula leaves it open.
    pub(super) fn local(alpha: i64, sleeps: u64, period: i64, weight: u64) -> i64 {
        let a_second = i128::from(sleeps) * i128::from(SECOND) / i128::from(period.max(1));
        let granularity = i128::from(alpha)
            .saturating_mul(a_second)
            .min(i128::from(i64::MAX >> 20));
        delta_fair(granularity as i64, weight)
    }
}

/// By how much the tunables grow with the number of CPUs (`sched_init_granularity()`).
fn scale(cpus: u16) -> i64 {
    1 + i64::from(cpus.max(1).ilog2())
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use warmq_config::Value;

    use super::*;

    const MS: i64 = 1_000_000;

    /// The settings in force on `cpus` CPUs with `set` chosen.
    pub(in super::super) fn tunables(cpus: u16, set: &[(&str, Value)]) -> Tunables {
        let values: BTreeMap<String, Value> = set
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        let chosen = Chosen::new(settings(), values).expect("settings that it has");
        Tunables::new(&chosen, cpus)
    }

    /// Decision case 20 of the starvation specification, second half; min_granularity shows in the
    /// period of many.
    #[test]
    fn case_20_tunables_grow_with_the_logarithm_of_the_cpus() {
        for (cpus, latency, least, wakeup) in [
            (1, 20, 4, 10),
            (2, 40, 8, 20),
            (4, 60, 12, 30),
            (16, 100, 20, 50),
        ] {
            let tunables = tunables(cpus, &[]);
            assert_eq!(tunables.latency, latency * MS, "{cpus} CPUs");
            assert_eq!(tunables.period(50), 50 * least * MS, "{cpus} CPUs");
            assert_eq!(tunables.wakeup_granularity, wakeup * MS, "{cpus} CPUs");
        }
    }

    #[test]
    fn latency_grows_to_200_ms_at_most_and_the_wakeup_granularity_without_bound() {
        let set = [
            ("sched_latency", Value::Duration(Duration::from_ms(90))),
            ("wakeup_granularity", Value::Duration(Duration::from_ms(90))),
        ];
        let tunables = tunables(8, &set);
        assert_eq!(tunables.latency, 200 * MS);
        assert_eq!(tunables.wakeup_granularity, 360 * MS);
    }

    #[test]
    fn without_scaling_they_are_as_set_on_any_machine() {
        let none = [("tunable_scaling", Value::Text("none".into()))];
        assert_eq!(tunables(16, &none).latency, 20 * MS);
    }

    #[test]
    fn an_alpha_of_zero_is_not_admitted() {
        let values = BTreeMap::from([("alpha".to_owned(), Value::Duration(Duration::ZERO))]);
        assert_eq!(
            Chosen::new(settings(), values).err(),
            Some("alpha".to_owned())
        );
    }

    /// By hand: 1 us for one sleep per second; 10 sleeps in 20 ms are 500 per second.
    #[test]
    fn formula_5_1_grows_with_sleeps_and_shrinks_with_weight() {
        let table = [
            (0, 1_024, 0),
            (1, 1_024, 50_000),
            (10, 1_024, 500_000),
            (10, 2_048, 250_000),
        ];
        for (sleeps, weight, ns) in table {
            assert_eq!(
                Tunables::local(1_000, sleeps, 20 * MS, weight),
                ns,
                "{sleeps} {weight}"
            );
        }
        assert!(
            Tunables::local(i64::MAX, u64::MAX, 1, 1) > 0,
            "it does not overflow"
        );
    }
}
