//! What can be set: `debugfs/sched/llc_balancing` of Linux 7.2.

use warmq_config::{Chosen, Setting, Value};

/// The setting that turns it on.
const CACHE_AWARE: &str = "cache_aware";

const KNOB: &str = "c1e7fe5e75ed (7.2), debugfs sched/llc_balancing";

/// Who is taken to share data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// The threads of a process, as in the kernel.
    Process,
    /// The tasks that named the same fragment; one that named none is on its own.
    Declared,
}

impl Sharing {
    /// `None` if nobody is drawn anywhere.
    pub(super) fn chosen(chosen: &Chosen) -> Option<Sharing> {
        match chosen.choice(CACHE_AWARE) {
            "process" => Some(Sharing::Process),
            "declared" => Some(Sharing::Declared),
            _ => None,
        }
    }
}

/// The thresholds, and what of the machine they depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Knobs {
    pub(super) aggr_tolerance: u64,
    /// In ticks.
    pub(super) epoch_period: u64,
    /// In epochs.
    pub(super) epoch_affinity_timeout: u64,
    pub(super) imb_pct: u64,
    pub(super) overaggr_pct: u64,
    /// Threads of a core (`cpu_smt_num_threads`).
    pub(super) threads: u64,
}

impl Knobs {
    pub(super) fn chosen(chosen: &Chosen, threads: u64) -> Knobs {
        Knobs {
            aggr_tolerance: chosen.count("llc_aggr_tolerance"),
            epoch_period: chosen.count("llc_epoch_period"),
            epoch_affinity_timeout: chosen.count("llc_epoch_affinity_timeout"),
            imb_pct: chosen.count("llc_imb_pct"),
            overaggr_pct: chosen.count("llc_overaggr_pct"),
            threads,
        }
    }
}

/// The settings; the first is `default`.
pub(in super::super) fn settings(default: &str) -> Vec<Setting> {
    let sharing = Setting::choice(CACHE_AWARE, &["off", "process", "declared"]).says(
        "whom balancing draws under one last-level cache: nobody, the threads of a process, or the tasks \
         that named the same fragment instead",
        "CONFIG_SCHED_CACHE (7.2, on in Debian's): `process`; ours: `declared`",
    );
    vec![
        Setting {
            default: Value::Text(default.to_owned()),
            ..sharing
        },
        Setting::count("llc_aggr_tolerance", (0, 100), 1, "times").says(
            "how many times as many CPUs as a cache has may be busy with tasks that are drawn, less 20 %; 0: \
             nobody is drawn; 100: any number",
            KNOB,
        ),
        Setting::count("llc_epoch_period", (1, 10_000), 2, "ticks").says(
            "how often the preferred cache is chosen; what was counted halves each time",
            "c1e7fe5e75ed (7.2), EPOCH_PERIOD: HZ / 100, of 250",
        ),
        Setting::count("llc_epoch_affinity_timeout", (0, 10_000), 5, "epochs").says(
            "after how long without a choice nobody is drawn any more",
            KNOB,
        ),
        Setting::count("llc_imb_pct", (0, 1_000), 20, "%").says(
            "by how much fuller than the other the preferred cache may become once it passes \
             llc_overaggr_pct",
            KNOB,
        ),
        Setting::count("llc_overaggr_pct", (0, 100), 50, "%").says(
            "how full the preferred cache may become in any case; half as much again where cores have one \
             thread",
            "fits_llc_capacity() (7.2), debugfs sched/llc_balancing",
        ),
    ]
}
