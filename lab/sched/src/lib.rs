//! The schedulers of the laboratory, by name.
//!
//! Purpose: one file a scheduler, each a table of callbacks of
//! [`warmq_kernel::Scheduler`]. None of them knows a workload.
//!
//! ```
//! let cfs = warmq_sched::scheduler("cfs").unwrap();
//! println!("{}: {}", cfs.name, cfs.what);
//! for setting in cfs.settings() {
//!     println!("  {} = {}    {}", setting.name, setting.default, setting.what);
//! }
//! let newest = warmq_sched::of_kernel("7.3").unwrap();
//! assert!(newest.cgroups, "it shares CPUs out to groups by their weights");
//! ```
//!
//! To write one, see `docs/add-a-scheduler.md`.

// Integers decide; floats only describe.
#![deny(clippy::float_arithmetic)]

/// Declares what a scheduler says of its tasks: the numbers of these statistics, and a row each of
/// what they are. Those without a unit say that something happened.
macro_rules! statistics {
    (unit) => { None };
    (unit $unit:literal) => { Some($unit) };
    (number $of:ident $at:expr;) => {};
    (number $of:ident $at:expr; $first:ident $($more:ident)*) => {
        pub(super) const $first: $of = $of($at);
        statistics!(number $of $at + 1; $($more)*);
    };
    ($of:ident: $($number:ident $name:literal $(in $unit:literal)? $what:literal;)*) => {
        /// What is said, in the order of the numbers.
        pub(crate) const STATISTICS: &[crate::Said] = &[$(crate::Said {
            name: $name,
            unit: statistics!(unit $($unit)?),
            what: $what,
        }),*];
        statistics!(number $of 0; $($number)*);
    };
}

mod affinity;
mod broken;
mod cfs;
mod eevdf;
mod elsc;
mod fair;
mod family;
mod grouping;
mod linux24;
mod mq;
mod o1;
mod pls;
#[cfg(test)]
mod twins;

use std::collections::BTreeMap;

use warmq_config::{Chosen, Setting, Value};
use warmq_kernel::{
    Attach, BootError, MakeScheduler, Preemption, Scheduler, Settings, Throttling, UnknownCost,
};
use warmq_trace::{Promise, Queues};
use warmq_units::{Duration, Release, Seed};

type Constructor = fn(&Chosen, &mut Attach<'_>) -> Result<Box<dyn Scheduler>, UnknownCost>;

/// A scheduler that can be asked for by name.
pub struct Entry {
    /// Its name: `linux24`.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub what: &'static str,
    /// The cost table of a machine that it uses, where the machine has it: `linux-2.6.16`. Else it
    /// uses `linux-2.4`.
    pub kernel: &'static str,
    /// Whose timers it runs with: `Linux 2.4 on x86`.
    pub timers_of: &'static str,
    /// Where its kernel can be made to be preempted (`preempt=` of its command line).
    pub models: &'static [Preemption],
    /// Whether it shares a CPU out to cgroups by their weights; else it sees tasks alone.
    pub cgroups: bool,
    /// What it plays otherwise than a scenario says, or not at all: the use of a scenario
    /// (`warmq_scenario::Scenario::uses`), and how.
    pub deviates: &'static [(&'static str, &'static str)],
    /// What it does not play at all, and why; the same words.
    pub refuses: &'static [(&'static str, &'static str)],
    /// What it says of its tasks for statistics, in the order of their numbers.
    pub statistics: &'static [Said],
    /// For how long a CPU may idle while a task waits that it could run.
    pub promise: Promise,
    timers: fn(Seed) -> Settings,
    settings: fn() -> Vec<Setting>,
    build: Constructor,
}

/// A statistic that a scheduler keeps for each task (`warmq_kernel::Statistic`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    /// Its name: `expirations`.
    pub name: &'static str,
    /// The unit of its values, each of which holds until the next; none: it says that something
    /// happened.
    pub unit: Option<&'static str>,
    /// What it is, in a few words that `of TASK` can follow.
    pub what: &'static str,
}

impl Entry {
    /// The kernel that it belongs to, as far as timers go.
    pub fn kernel_settings(&self, seed: Seed) -> Settings {
        (self.timers)(seed)
    }

    /// The same as it is chosen: a scheduler with a setting `hz` counts jiffies, and so do the
    /// timers of its kernel.
    pub fn kernel_settings_as(&self, chosen: &Chosen, seed: Seed) -> Settings {
        let known = self.settings();
        let has = |name: &str| known.iter().any(|setting| setting.name == name);
        let mut settings = self.kernel_settings(seed);
        if has("bandwidth_slice") {
            settings.bandwidth_slice = chosen.duration("bandwidth_slice");
        }
        match has("hz") {
            true => settings.at_hz(chosen.count("hz")),
            false => settings,
        }
    }

    /// What can be set on it.
    pub fn settings(&self) -> Vec<Setting> {
        (self.settings)()
    }

    /// What makes the scheduler, set as chosen, for the machine that it is attached to.
    pub fn build(&self, chosen: Chosen) -> MakeScheduler {
        let build = self.build;
        Box::new(move |attach| build(&chosen, attach).map_err(BootError::Cost))
    }
}

/// What 2.4 promises: `reschedule_idle()` looks at who runs on a CPU, not at who was sent there a
/// moment ago, so two tasks may be sent to one idle CPU, and the second waits beside other CPUs
/// that idle until a slice of the first is over: 22 ticks at nice -20, and 11 more where the second
/// has no slice left either, and two until it has the CPU. (Behind a real-time task, it waits for
/// ever.)
const LINUX24_PROMISE: Promise = Promise {
    patience: Duration::from_ms(350),
    queues: Queues::Shared,
};

/// The same in the own queue only. A queue publishes one task; where that may not run on an idle
/// CPU, it hides the others, for as long as somebody better runs on their own.
const MQ_PROMISE: Promise = Promise {
    queues: Queues::PerCpu,
    ..LINUX24_PROMISE
};

/// What O(1) promises: a CPU picks at once from its own queue. A task that another CPU has pulled
/// from there may wait in that one's queue until this CPU, idle, pulls it back: it tries at least
/// once in 512 ms, and for a task with a warm cache twice more. It may idle for ever where the
/// busiest CPU has bound tasks only, as it looks at no other.
const O1_PROMISE: Promise = Promise {
    patience: Duration::from_ms(600),
    queues: Queues::PerCpu,
};

/// What a scheduler that is there to be broken promises: nothing. The laws are to find what is
/// wrong.
const BROKEN_PROMISE: Promise = Promise {
    patience: Duration(u64::MAX),
    queues: Queues::Shared,
};

/// What CFS promises: idle CPUs pull from others, but not from a group of CPUs that has less load
/// than their own, however many wait there; so a CPU answers for its own queue only. There a task
/// waits beside an idle CPU for no longer than it takes to switch away from it.
const CFS_PROMISE: Promise = Promise {
    patience: Duration::from_ms(20),
    queues: Queues::PerCpu,
};

/// What EEVDF promises: a CPU that is about to idle pulls, unless that rarely pays, and an idle one
/// is woken at the tick of a busy one. Tasks that are bound, or a moment too warm, wait longer.
const EEVDF_PROMISE: Promise = Promise {
    patience: Duration::from_ms(100),
    queues: Queues::PerCpu,
};

/// The layer of data affinity on top of `base`.
fn with_affinity<B: affinity::Base + 'static>(
    base: B,
    chosen: &Chosen,
    attach: &mut Attach<'_>,
) -> Result<Box<dyn Scheduler>, UnknownCost> {
    Ok(Box::new(affinity::Affinity::new(base, chosen, attach)))
}

fn eevdf(chosen: &Chosen, attach: &mut Attach<'_>) -> Result<Box<dyn Scheduler>, UnknownCost> {
    Ok(Box::new(eevdf::Eevdf::new(chosen, attach)?))
}

const NO_GROUPS: &str = "its kernel knows no groups: weights do not count";
const NO_SUCH_POLICY: &str = "its kernel has no such policy: tasks are played as usual ones";
const NO_CLAMPS: &str = "its kernel does not clamp utilization, which came with Linux 5.3";
const ONE_POOL: &str = "all CPUs draw a quota from one pool without slices, and keep no burst";
/// Before 2.6.25 nothing limits real-time tasks, so that they starve others there as here.
const LINUX24_DEVIATES: &[(&str, &str)] = &[
    ("group", NO_GROUPS),
    ("quota", ONE_POOL),
    ("autogroup", NO_GROUPS),
    ("policy batch", NO_SUCH_POLICY),
    ("policy idle", NO_SUCH_POLICY),
    ("uclamp", NO_CLAMPS),
];
const O1_DEVIATES: &[(&str, &str)] = &[
    ("group", NO_GROUPS),
    ("quota", ONE_POOL),
    ("autogroup", NO_GROUPS),
    (
        "policy idle",
        "its kernel has no such policy: tasks are batch ones of nice 19",
    ),
    ("uclamp", NO_CLAMPS),
];
const CFS_DEVIATES: &[(&str, &str)] = &[
    (
        "autogroup",
        "autogroups came with 2.6.38: a session is no group",
    ),
    (
        "group",
        "weights of groups count with its setting groups=on only",
    ),
    ("quota", ONE_POOL),
    ("uclamp", NO_CLAMPS),
];
const EEVDF66_DEVIATES: &[(&str, &str)] = &[(
    "slice",
    "its kernel knows no slices of tasks, which came with Linux 6.12",
)];
const COMPILED_DEVIATES: &[(&str, &str)] = &[
    ("autogroup", "schedulers of sched_ext do not see sessions"),
    (
        "uclamp",
        "schedulers of sched_ext would have to read it from the task, and find nothing",
    ),
];
const BROKEN_DEVIATES: &[(&str, &str)] = &[
    (
        "policy fifo or rr",
        "real-time tasks have a large weight, and are no class of their own",
    ),
    ("uclamp", "it does not clamp utilization"),
];

const NO_DEADLINES: &[(&str, &str)] = &[(
    "policy deadline",
    "SCHED_DEADLINE came with Linux 3.14, and its kernel is older",
)];
const BROKEN_REFUSES: &[(&str, &str)] = &[("policy deadline", "it has no scheduling classes")];

/// 2.4 has no choice.
const NOWHERE: &[Preemption] = &[Preemption::None];
/// What a kernel before 2.6.13 can be built with.
const BEFORE_VOLUNTARY: &[Preemption] = &[Preemption::None, Preemption::Full];
/// What a later 2.6 kernel can be built with, and one from 5.12 to 6.12 be booted with.
const BEFORE_LAZY: &[Preemption] = &[Preemption::None, Preemption::Voluntary, Preemption::Full];
/// From 6.13 on.
const ANYWHERE: &[Preemption] = &[
    Preemption::None,
    Preemption::Voluntary,
    Preemption::Full,
    Preemption::Lazy,
];
/// From 7.0 on x86 (7dadeaa6e851).
const FULL_OR_LAZY: &[Preemption] = &[Preemption::Full, Preemption::Lazy];

/// Linux 6.6 and 6.12 as Debian builds 6.12.
fn linux612(seed: Seed) -> Settings {
    Settings {
        preemption: Preemption::Voluntary,
        throttling: Throttling::Groups,
        ..Settings::linux6(seed)
    }
}

/// Linux 6 under a compiled scheduler of sched_ext, which knows quotas and keeps them or not.
fn linux6_compiled(seed: Seed) -> Settings {
    Settings {
        throttling: Throttling::Scheduler,
        ..Settings::linux6(seed)
    }
}

const LINUX24: &str = "Linux 2.4 on x86";
const LINUX264: &str = "Linux 2.6.4 on x86";
const LINUX2624: &str = "Linux 2.6.24 on x86";
const LINUX2616: &str = "Linux 2.6.16 on x86 as Fedora Core 5 builds it";
const LINUX6: &str = "Linux 6 on x86 as Debian builds it";

const LINUX_2_4: Entry = Entry {
    name: "linux24",
    what: "Linux 2.4.4: one run queue, one lock, a walk over all that is runnable",
    kernel: "linux-2.4",
    timers_of: LINUX24,
    models: NOWHERE,
    cgroups: false,
    deviates: LINUX24_DEVIATES,
    refuses: NO_DEADLINES,
    statistics: &[],
    promise: LINUX24_PROMISE,
    timers: Settings::linux24,
    settings: linux24::settings,
    build: |chosen, attach| Ok(Box::new(linux24::Linux24::new(chosen, attach)?)),
};

const O1: Entry = Entry {
    name: "o1",
    what: "Linux 2.6.16: two priority arrays for each CPU, and a bonus for sleeping",
    kernel: "linux-2.6.16",
    timers_of: LINUX2616,
    models: BEFORE_LAZY,
    cgroups: false,
    deviates: O1_DEVIATES,
    refuses: NO_DEADLINES,
    statistics: o1::STATISTICS,
    promise: O1_PROMISE,
    timers: Settings::linux2616,
    settings: o1::settings,
    build: |chosen, attach| Ok(Box::new(o1::O1::new(O1_2_6_16, chosen, attach)?)),
};

const O1_2_6_4: o1::Release = o1::Release::V2_6_4;
const O1_2_6_16: o1::Release = o1::Release::V2_6_16;

const CFS: Entry = Entry {
    name: "cfs",
    what: "Linux 2.6.24's Completely Fair Scheduler: a tree by virtual time for each CPU",
    kernel: "linux-2.6.24",
    timers_of: LINUX2624,
    models: BEFORE_LAZY,
    cgroups: false,
    deviates: CFS_DEVIATES,
    refuses: NO_DEADLINES,
    statistics: &[],
    promise: CFS_PROMISE,
    timers: Settings::linux2624,
    settings: cfs::settings,
    build: |chosen, attach| Ok(Box::new(cfs::Cfs::new(chosen, attach)?)),
};

/// What all versions of EEVDF have in common, and the latest one.
const EEVDF: Entry = Entry {
    name: "eevdf-7.3",
    what: "the same of Linux 7.3: all tasks of a CPU in one queue, weighed by their groups",
    kernel: "linux-6.18",
    timers_of: LINUX6,
    models: FULL_OR_LAZY,
    cgroups: true,
    deviates: &[],
    refuses: &[],
    statistics: &[],
    promise: EEVDF_PROMISE,
    timers: Settings::linux6,
    settings: || eevdf::settings(eevdf::Version::V7_3),
    build: eevdf,
};

/// What all compiled schedulers of sched_ext have in common; lab/sched-ext makes them and says what
/// can be set on them, and what they promise.
pub const COMPILED: Entry = Entry {
    name: "sched_ext",
    what: "a compiled scheduler of sched_ext, as it is loaded",
    models: ANYWHERE,
    deviates: COMPILED_DEVIATES,
    refuses: &[],
    promise: BROKEN_PROMISE,
    timers: linux6_compiled,
    settings: Vec::new,
    ..EEVDF
};

/// Every scheduler, in the order in which they are listed.
pub const SCHEDULERS: &[Entry] = &[
    LINUX_2_4,
    Entry {
        name: "mq",
        what: "IBM's multi-queue scheduler for 2.4: a run queue and a lock for each CPU",
        promise: MQ_PROMISE,
        settings: family::settings,
        build: |chosen, attach| Ok(Box::new(mq::Mq::new(chosen, attach)?)),
        ..LINUX_2_4
    },
    Entry {
        name: "elsc",
        what: "2.4 with a table of lists by static goodness, of which only the top is searched",
        settings: family::settings,
        build: |chosen, attach| Ok(Box::new(elsc::Elsc::new(chosen, attach)?)),
        ..LINUX_2_4
    },
    Entry {
        name: "pls",
        what: "2.4 with a list for each priority level, walked from the top",
        settings: family::settings,
        build: |chosen, attach| Ok(Box::new(pls::Pls::new(chosen, attach)?)),
        ..LINUX_2_4
    },
    O1,
    Entry {
        name: "o1-2.6.4",
        what: "the same of Linux 2.6.4: wakeups stay where they are, and queues are balanced by length",
        kernel: "linux-2.6.4",
        timers_of: LINUX264,
        models: BEFORE_VOLUNTARY,
        timers: Settings::linux264,
        settings: o1::of_2_6_4,
        build: |chosen, attach| Ok(Box::new(o1::O1::new(O1_2_6_4, chosen, attach)?)),
        ..O1
    },
    CFS,
    Entry {
        name: "eevdf-6.6",
        what: "Linux 6.6's EEVDF: the eligible task with the earliest virtual deadline runs",
        models: BEFORE_LAZY,
        deviates: EEVDF66_DEVIATES,
        timers: linux612,
        settings: || eevdf::settings(eevdf::Version::V6_6),
        ..EEVDF
    },
    Entry {
        name: "eevdf-6.12",
        what: "the same of Linux 6.12: slices of tasks, and who sleeps while owing stays queued",
        models: BEFORE_LAZY,
        timers: linux612,
        settings: || eevdf::settings(eevdf::Version::V6_12),
        ..EEVDF
    },
    Entry {
        name: "eevdf-6.18",
        what: "the same of Linux 6.18: groups whose tasks sleep often starve others",
        models: ANYWHERE,
        settings: || eevdf::settings(eevdf::Version::V6_18),
        ..EEVDF
    },
    Entry {
        name: "eevdf-7.1",
        what: "the same of Linux 7.1: slices end by a timer, and no group starves",
        settings: || eevdf::settings(eevdf::Version::V7_1),
        ..EEVDF
    },
    Entry {
        name: "eevdf-7.2",
        what: "the same of Linux 7.2: balancing draws the threads of a process under one cache",
        settings: || eevdf::settings(eevdf::Version::V7_2),
        ..EEVDF
    },
    EEVDF,
    Entry {
        name: "affinity-o1",
        what: "o1 under a layer that runs tasks that use the same data in one place, one after another",
        statistics: affinity::with_those_of_o1(),
        settings: || affinity::settings::<o1::O1>(o1::settings()),
        build: |chosen, attach| {
            with_affinity(o1::O1::new(O1_2_6_16, chosen, attach)?, chosen, attach)
        },
        ..O1
    },
    Entry {
        name: "affinity-o1-2.6.4",
        what: "o1-2.6.4 under the same layer: the affinity paper's scheduler",
        kernel: "linux-2.6.4",
        timers_of: LINUX264,
        models: BEFORE_VOLUNTARY,
        timers: Settings::linux264,
        statistics: affinity::with_those_of_o1(),
        settings: || affinity::settings::<o1::O1>(o1::of_2_6_4()),
        build: |chosen, attach| {
            with_affinity(o1::O1::new(O1_2_6_4, chosen, attach)?, chosen, attach)
        },
        ..O1
    },
    Entry {
        name: "affinity-cfs",
        what: "cfs under the same layer",
        statistics: affinity::STATISTICS,
        settings: || affinity::settings::<cfs::Cfs>(cfs::settings()),
        build: |chosen, attach| with_affinity(cfs::Cfs::new(chosen, attach)?, chosen, attach),
        ..CFS
    },
    Entry {
        name: "affinity-eevdf",
        what: "eevdf-7.1 under the same layer",
        statistics: affinity::STATISTICS,
        settings: || affinity::settings::<eevdf::Eevdf>(eevdf::settings(eevdf::Version::V7_1)),
        build: |chosen, attach| with_affinity(eevdf::Eevdf::new(chosen, attach)?, chosen, attach),
        ..EEVDF
    },
    Entry {
        name: "broken",
        what: "shows that laws can fail: a plain fair scheduler, with one property broken by `fault`",
        kernel: "linux-2.4",
        models: ANYWHERE,
        deviates: BROKEN_DEVIATES,
        refuses: BROKEN_REFUSES,
        promise: BROKEN_PROMISE,
        settings: broken::settings,
        build: |chosen, attach| Ok(Box::new(broken::Broken::new(chosen, attach)?)),
        ..EEVDF
    },
];

/// The scheduler called `name`.
pub fn scheduler(name: &str) -> Option<&'static Entry> {
    SCHEDULERS.iter().find(|entry| entry.name == name)
}

/// The scheduler of Linux `release`, such as `6.18` or `6.18.15`; `None` before 6.6, which is
/// before what there is here, and for what is no release.
///
/// ```
/// assert_eq!(warmq_sched::of_kernel("6.18.15").unwrap().name, "eevdf-6.18");
/// assert_eq!(warmq_sched::of_kernel("7.2").unwrap().name, "eevdf-7.2");
/// assert_eq!(warmq_sched::of_kernel("7.3-rc4").unwrap().name, "eevdf-7.3");
/// assert!(warmq_sched::of_kernel("5.15").is_none());
/// ```
pub fn of_kernel(release: &str) -> Option<&'static Entry> {
    let release = Release::at_start_of(release)?;
    scheduler(match (release.major, release.minor) {
        (..=5, _) | (6, ..=5) => return None,
        (6, ..=11) => "eevdf-6.6",
        (6, 12) => "eevdf-6.12",
        (6, _) | (7, 0) => "eevdf-6.18",
        (7, 1) => "eevdf-7.1",
        (7, 2) => "eevdf-7.2",
        _ => "eevdf-7.3",
    })
}

/// A setting that a stable release took over from a later series: the series, the first release of
/// it that has the change, the setting and its value.
type Backport = ((u32, u32), u32, &'static str, &'static str);

/// The commits are named at the settings (`warmq schedulers eevdf-6.18`).
const BACKPORTS: &[Backport] = &[
    ((6, 18), 17, "lag_limit", "longest-slice"),
    ((6, 18), 45, "reweight", "keeps-average"),
    ((6, 18), 45, "reweight_keeps_protection", "true"),
    ((6, 19), 7, "lag_limit", "longest-slice"),
    ((7, 0), 0, "lag_limit", "longest-slice"),
    ((7, 0), 0, "reweight_keeps_protection", "true"),
];

/// In what `release` differs from the scheduler of its series ([`of_kernel`]): settings and their
/// values. A series without the number of a release is its first.
///
/// ```
/// assert!(warmq_sched::backports("6.18").is_empty());
/// let names = |release| warmq_sched::backports(release).into_keys().collect::<Vec<_>>();
/// assert_eq!(names("6.18.44-cloud-amd64"), ["lag_limit"]);
/// assert_eq!(names("6.18.45"), ["lag_limit", "reweight", "reweight_keeps_protection"]);
/// ```
pub fn backports(release: &str) -> BTreeMap<String, Value> {
    let Some(release) = Release::at_start_of(release) else {
        return BTreeMap::new();
    };
    let (series, patch) = ((release.major, release.minor), release.patch.unwrap_or(0));
    let taken = BACKPORTS
        .iter()
        .filter(|(of, since, ..)| *of == series && patch >= *since);
    taken
        .map(|(.., name, value)| ((*name).to_owned(), written(value)))
        .collect()
}

fn written(value: &str) -> Value {
    match value.parse() {
        Ok(flag) => Value::Bool(flag),
        Err(_) => Value::Text(value.to_owned()),
    }
}

/// The page that shows how to add a scheduler, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/add-a-scheduler.md")]
struct AddAScheduler;
