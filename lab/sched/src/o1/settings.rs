//! What can be set on the scheduler, and what was.

use warmq_config::{Chosen, Setting, settings};
use warmq_units::Duration;

use super::clock::Source;
use super::credit::{DynamicPriority, Variants};
use super::local::Estimate;
use super::queue_lengths::{Lengths, OddTask, QuarterOf};
use super::release::Release;
use super::rules::{Follows, MS};

const KERNEL: &str = "Linux 2.6.16, kernel/sched.c";
const THESIS: &str = "starvation paper (thesis of 2009)";

/// What can be set on the scheduler of 2.6.16.
pub(crate) fn settings() -> Vec<Setting> {
    settings! {
        "hz", count((100, 1_000), 250, "Hz"),
            "ticks of the kernel in a second, of which slices, sleeps and the clock are made",
            "Linux 2.6.16's default, and Fedora Core 5's; 100 and 1000 are the others";
        "clock", choice(&["jiffies", "tsc"]),
            "what sleeps and runs are measured with: the count of jiffies, or a clock that is exact",
            "Linux 2.6.16 on i386: sched_clock() counts jiffies where the clock is HPET or the ACPI timer";
        "dynamic_priority", choice(&["on", "patch", "frozen"]),
            "`patch`: the addition to sleep_avg is removed, but a long sleep still sets it; `frozen`: \
             sleep_avg never grows",
            KERNEL;
        "activated", choice(&["source", "thesis"]),
            "`source`: a wait after a wakeup in an interrupt counts whole as sleep, another by 30 %; \
             `thesis`: the other way round",
            KERNEL;
        "interactive_delta", choice(&["source", "thesis"]),
            "how much better than its static priority an interactive task is: nice / 4 + 2, or static \
             priority / 4 - 28",
            KERNEL;
        "starvation_clock", choice(&["source", "thesis"]),
            "`source`: the first slice that is used up starts the clock; `thesis`: the first task that \
             expires does",
            KERNEL;
        "wrap32", flag(false),
            "whether weighted sleeps and their sums are 32-bit nanoseconds, which wrap above 4295 ms",
            "Linux 2.6.16 on i386; off as it matters for sleeps above 429 ms only";
        "network_min_sleep", duration((Duration::ZERO, Duration::from_s(10)), Duration::ZERO),
            "sleeps of no more whole milliseconds than this add nothing to sleep_avg; 0 turns it off",
            THESIS;
        "min_sleep_compares", choice(&["weighted", "raw"]),
            "what network_min_sleep and local thresholds are compared with: what a sleep would add, or \
             the sleep",
            THESIS;
        "local_percentile", count((0, 100), 0, "%"),
            "the share of its recent sleeps that a network task's own threshold is above, which then \
             replaces network_min_sleep; 0 turns it off",
            "ours: the thesis takes about 90 % of the sleeps at all rates, beforehand";
        "local_window", count((1, 10_000), 100, "sleeps"),
            "how many recent sleeps a local threshold is estimated from",
            "ours: the fewest of which a percentile is one sleep";
        "cache_hot_time", duration((Duration::ZERO, Duration::from_s(10)), Duration::from_ms(4)),
            "a task that left its CPU less than this ago is not moved by balancing until two attempts \
             have failed",
            "ours: 2.6.16 measures it at boot, in steps of 4 ms on the jiffy clock; nobody published it";
    }
}

/// What can be set on that of 2.6.4. The variants and thresholds of the thesis are of 2.6.16 only.
pub(crate) fn of_2_6_4() -> Vec<Setting> {
    settings! {
        "hz", count((100, 1_000), 1_000, "Hz"),
            "ticks of the kernel in a second, of which slices, sleeps and the clock are made",
            "Linux 2.6.4, asm-i386/param.h: 1000, and no choice";
        "clock", choice(&["tsc", "jiffies"]),
            "what sleeps and runs are measured with: a clock that is exact, or the count of jiffies",
            "Linux 2.6.4 on i386: the time stamp counter, but for kernels with NUMA or another timer";
        "odd_task", choice(&["all", "one"]),
            "what a busy CPU pulls from one that has one task more: all that may move, or one",
            "`all`: Linux 2.6.4, load_balance(), where half of 1 is 0, which is then counted down; `one`: \
             ours, what was meant";
        "quarter_of", choice(&["busiest", "own"]),
            "of whose tasks an imbalance must be a quarter for a busy CPU to pull",
            "`busiest`: Linux 2.6.4, find_busiest_queue(); `own`: affinity paper";
        "cache_hot_time", duration((Duration::ZERO, Duration::from_s(10)), Duration::from_ms(1)),
            "a task that was queued or left its CPU at most this ago is not moved by a busy CPU",
            "Linux 2.6.4, cache_decay_ticks: size of L2 / 350 MB/s in whole ms, and one more: 1 ms for \
             256 KB, 2 ms for 512 KB";
    }
}

/// What was set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) release: Release,
    pub(super) lengths: Lengths,
    pub(super) clock: Source,
    pub(super) variants: Variants,
    pub(super) interactive_delta: Follows,
    pub(super) starvation_clock: Follows,
    /// In whole ms, if it is on.
    pub(super) network_min_sleep: Option<u64>,
    /// If local thresholds are on.
    pub(super) local: Option<Estimate>,
    /// In ns.
    pub(super) cache_hot_time: u64,
}

impl Options {
    /// Reads what was chosen for `release`.
    pub(super) fn new(release: Release, chosen: &Chosen) -> Options {
        match release {
            Release::V2_6_4 => Options::of_2_6_4(chosen),
            Release::V2_6_16 => Options::of_2_6_16(chosen),
        }
    }

    /// Reads what was chosen among [`of_2_6_4`].
    fn of_2_6_4(chosen: &Chosen) -> Options {
        let lengths = Lengths {
            quarter_of: match chosen.choice("quarter_of") {
                "own" => QuarterOf::Own,
                _ => QuarterOf::Busiest,
            },
            odd_task: match chosen.choice("odd_task") {
                "one" => OddTask::One,
                _ => OddTask::All,
            },
        };
        Options {
            release: Release::V2_6_4,
            lengths,
            clock: source(chosen),
            cache_hot_time: chosen.duration("cache_hot_time").as_ns(),
            ..Options::SOURCE
        }
    }

    /// The kernel's own rules.
    const SOURCE: Options = Options {
        release: Release::V2_6_16,
        lengths: Lengths {
            quarter_of: QuarterOf::Busiest,
            odd_task: OddTask::All,
        },
        clock: Source::Jiffies,
        variants: Variants {
            dynamic_priority: DynamicPriority::On,
            activated: Follows::Source,
            wrap32: false,
            compares_raw: false,
        },
        interactive_delta: Follows::Source,
        starvation_clock: Follows::Source,
        network_min_sleep: None,
        local: None,
        cache_hot_time: 0,
    };

    /// Reads what was chosen among [`settings`].
    fn of_2_6_16(chosen: &Chosen) -> Options {
        let follows = |name| match chosen.choice(name) {
            "thesis" => Follows::Thesis,
            _ => Follows::Source,
        };
        let min_sleep = chosen.duration("network_min_sleep").as_ns() / MS;
        let percentile = chosen.count("local_percentile");
        let window = chosen.count("local_window") as usize;
        Options {
            clock: source(chosen),
            variants: Variants {
                dynamic_priority: match chosen.choice("dynamic_priority") {
                    "patch" => DynamicPriority::Patch,
                    "frozen" => DynamicPriority::Frozen,
                    _ => DynamicPriority::On,
                },
                activated: follows("activated"),
                wrap32: chosen.flag("wrap32"),
                compares_raw: chosen.choice("min_sleep_compares") == "raw",
            },
            interactive_delta: follows("interactive_delta"),
            starvation_clock: follows("starvation_clock"),
            network_min_sleep: Some(min_sleep).filter(|ms| *ms > 0),
            local: (percentile > 0).then_some(Estimate { percentile, window }),
            cache_hot_time: chosen.duration("cache_hot_time").as_ns(),
            ..Options::SOURCE
        }
    }
}

fn source(chosen: &Chosen) -> Source {
    match chosen.choice("clock") {
        "tsc" => Source::Tsc,
        _ => Source::Jiffies,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use warmq_config::Value;
    use warmq_kernel::PollTime;
    use warmq_units::Seed;

    use super::*;

    /// What the kernel counts in jiffies stays as many of them.
    #[test]
    fn the_kernel_ticks_as_often_as_the_scheduler_is_set_to() {
        let entry = crate::scheduler("o1").expect("a scheduler");
        let spans = |hz: Option<i64>| {
            let set = hz.map(|hz| ("hz".to_owned(), Value::Integer(hz)));
            let values = set.into_iter().collect::<BTreeMap<_, _>>();
            let chosen = Chosen::new(settings(), values).expect("an hz that is allowed");
            let kernel = entry.kernel_settings_as(&chosen, Seed(1));
            let two_jiffies = PollTime::Jiffies(2);
            assert_eq!(kernel.softirqs.packets_time, two_jiffies);
            [kernel.tick, kernel.timer_resolution]
        };
        let ms = Duration::from_ms;
        assert_eq!(spans(None), [ms(4), ms(4)]);
        assert_eq!(spans(Some(1_000)), [ms(1), ms(1)]);
    }
}
