//! What can be set: `debugfs/sched/llc_balancing` of Linux 7.2.

use warmq_config::Chosen;

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
        match chosen.choice("cache_aware") {
            "process" => Some(Sharing::Process),
            "declared" => Some(Sharing::Declared),
            _ => None,
        }
    }
}

warmq_config::settings_of! {
    /// The thresholds, and what of the machine they depend on.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Knobs(chosen, threads: u64) {
        /// Threads of a core (`cpu_smt_num_threads`).
        threads: u64 = threads,
    }

    /// The settings; the first is `default`.
    pub(in super::super) fn settings(default: &str) {
        "cache_aware", choice_of(&["off", "process", "declared"], default),
            "whom balancing draws under one last-level cache: nobody, the threads of a process, or the tasks \
             that named the same fragment instead",
            "CONFIG_SCHED_CACHE (7.2, on in Debian's): `process`; ours: `declared`";
        "llc_aggr_tolerance" => aggr_tolerance: u64, count((0, 100), 1, "times"),
            "how many times as many CPUs as a cache has may be busy with tasks that are drawn, less 20 %; 0: \
             nobody is drawn; 100: any number",
            KNOB;
        "llc_epoch_period" => epoch_period: u64, count((1, 10_000), 2, "ticks"),
            "how often the preferred cache is chosen; what was counted halves each time",
            "c1e7fe5e75ed (7.2), EPOCH_PERIOD: HZ / 100, of 250";
        "llc_epoch_affinity_timeout" => epoch_affinity_timeout: u64, count((0, 10_000), 5, "epochs"),
            "after how long without a choice nobody is drawn any more",
            KNOB;
        "llc_imb_pct" => imb_pct: u64, count((0, 1_000), 20, "%"),
            "by how much fuller than the other the preferred cache may become once it passes \
             llc_overaggr_pct",
            KNOB;
        "llc_overaggr_pct" => overaggr_pct: u64, count((0, 100), 50, "%"),
            "how full the preferred cache may become in any case; half as much again where cores have one \
             thread",
            "fits_llc_capacity() (7.2), debugfs sched/llc_balancing";
    }
}
