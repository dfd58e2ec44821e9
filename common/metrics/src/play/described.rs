//! What figures there are, and what each of them is.

use std::collections::BTreeMap;

use warmq_trace::{Names, OF_SCHEDULER};

use super::figures::QUANTILES;

/// The figure that says for how long events of a CPU were lost.
pub const MISSING: &str = "missing_share";

/// A figure's name, its unit and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The name: `trip_p99`.
    pub name: String,
    /// The unit; empty for a plain number.
    pub unit: &'static str,
    /// What it is, in a sentence.
    pub what: String,
}

impl Described {
    /// The figure of this name, if it is that of a counter of a scheduler.
    pub fn of_scheduler(name: &str) -> Option<Described> {
        let counter = name.strip_prefix(OF_SCHEDULER)?.strip_suffix(RATE)?;
        Some(Described {
            name: name.to_owned(),
            unit: "1/s",
            what: format!("{counter}, as the scheduler counts it"),
        })
    }

    /// The figure of a counter of a scheduler.
    pub fn of_counter(counter: &str) -> Described {
        let name = format!("{OF_SCHEDULER}{counter}{RATE}");
        Described::of_scheduler(&name).expect("it has what is needed")
    }
}

/// How the names of rates end.
const RATE: &str = "_per_second";

/// The figures that people look at first, of a scenario of these names: what it does, how long its
/// spans take, and what each of its tasks gets and waits for.
pub fn answers(names: &Names) -> Vec<String> {
    let counters = names.counters_of_steps().map(|(_, name)| name);
    let is_shown = |name: &&String| **name != names.work && !name.starts_with(OF_SCHEDULER);
    let counters = counters.filter(is_shown);
    let counters: Vec<String> = counters.cloned().collect();
    let whole: Vec<String> = [
        vec!["work_per_second".to_owned()],
        of_each(&counters, &["per_second"]),
        of_each(&names.spans, &["p50", "p99", "max"]),
        of_each(&names.tasks, &["share", "wait_p99", "delay_max", "elapsed"]),
        of_each(&names.spinlocks, &["contention", "spin_share"]),
        of_each(&names.groups, &["nr_throttled", "throttled_time"]),
    ]
    .concat();
    let of_phases = names.phases.iter().flat_map(|phase| {
        let of_phase = whole.iter();
        of_phase.map(move |figure| format!("{phase}.{figure}"))
    });
    whole.iter().cloned().chain(of_phases).collect()
}

fn of_each(tables: &[String], figures: &[&str]) -> Vec<String> {
    let named = |table| {
        figures
            .iter()
            .map(move |figure| format!("{table}_{figure}"))
    };
    tables.iter().flat_map(named).collect()
}

/// Every figure that a scenario of these names can give, without those of its phases.
pub fn described(names: &Names) -> Vec<Described> {
    let mut all = Vec::new();
    let mut add = |name: String, unit: &'static str, what: String| {
        all.push(Described { name, unit, what });
    };
    for (_, counter) in names.counters_of_steps() {
        let what = format!("{counter} that were counted");
        add(format!("{counter}_per_second"), "1/s", what);
    }
    if !names.work.is_empty() {
        let what = format!("{} that were counted: the work done", names.work);
        add("work_per_second".to_owned(), "1/s", what);
    }
    let mut add_spans = |name: &str, what: &str| {
        add(format!("{name}_mean"), "us", format!("mean {what}"));
        for (quantile, percent) in QUANTILES {
            let what = format!("{what} that {percent} % do not exceed");
            add(format!("{name}_{quantile}"), "us", what);
        }
        add(format!("{name}_max"), "us", format!("longest {what}"));
    };
    for span in &names.spans {
        add_spans(span, &format!("length of the span {span}"));
    }
    for task in &names.tasks {
        let what = format!("wait of {task} for a CPU after a wakeup");
        add_spans(&format!("{task}_wait"), &what);
    }
    add_spans("wait", "wait of any of the tasks for a CPU after a wakeup");
    for span in &names.spans {
        let what = format!("spans {span} that ended");
        add(format!("{span}_spans_per_second"), "1/s", what);
    }
    for task in &names.tasks {
        for (figure, unit, what) in OF_TASKS {
            add(
                format!("{task}_{figure}"),
                unit,
                format!("{what} of {task}"),
            );
        }
    }
    for lock in &names.spinlocks {
        for (figure, unit, what) in OF_SPINLOCKS {
            let what = format!("{what} (spin lock {lock})");
            add(format!("{lock}_{figure}"), unit, what);
        }
    }
    for group in &names.groups {
        for (figure, unit, what) in OF_QUOTAS {
            let what = format!("{what} of the quota of {group}, as cpu.stat says");
            add(format!("{group}_{figure}"), unit, what);
        }
    }
    for (figure, unit, what) in OF_ALL {
        add(figure.to_owned(), unit, what.to_owned());
    }
    all
}

/// Two figures that have one name, if names of the scenario make such: the waits of a task `a` are
/// called as a span `a_wait` is.
pub fn of_one_name(names: &Names) -> Option<[Described; 2]> {
    let mut known: BTreeMap<String, Described> = BTreeMap::new();
    let mut all = described(names).into_iter();
    all.find_map(|one| {
        let other = known.insert(one.name.clone(), one.clone())?;
        // The work may be called so.
        (other.name != "work_per_second").then_some([other, one])
    })
}

/// Figures by the ends of their names, with their units and what they are.
type Table<const N: usize> = [(&'static str, &'static str, &'static str); N];

/// Of each table of tasks.
#[rustfmt::skip]
const OF_TASKS: Table<9> = [
    ("share", "%", "CPU time, in hundredths of one CPU,"),
    ("share_least", "%", "least CPU time of a task, in hundredths of one CPU,"),
    ("share_most", "%", "most CPU time of a task, in hundredths of one CPU,"),
    ("delay_max", "us", "longest time without a CPU of a runnable task"),
    ("preemptions_per_second", "1/s", "switches away from a task that could go on,"),
    ("preemptions", "", "switches away from a task that could go on,"),
    ("wakeups_per_second", "1/s", "wakeups that ended a sleep"),
    ("elapsed", "s", "mean time from the start to the end, where all have ended,"),
    ("migrations_per_second", "1/s", "moves to another CPU"),
];

/// Of the spin locks of a table.
#[rustfmt::skip]
const OF_SPINLOCKS: Table<3> = [
    ("taken_per_second", "1/s", "how often it was taken"),
    ("contention", "%", "share of these in which a task found it held"),
    ("spin_share", "%", "CPU time of looks at it while it was held, in hundredths of one CPU"),
];

/// Of each table of groups.
#[rustfmt::skip]
const OF_QUOTAS: Table<3> = [
    ("nr_periods", "", "periods that ended"),
    ("nr_throttled", "", "periods in which a CPU's queue was throttled,"),
    ("throttled_time", "us", "time for which queues were throttled, summed over CPUs,"),
];

/// Of the whole machine.
#[rustfmt::skip]
const OF_ALL: Table<4> = [
    ("others_share", "%", "CPU time of tasks that are not the scenario's, in hundredths of one CPU"),
    ("wakeups_per_second", "1/s", "wakeups of any task"),
    (MISSING, "%", "time in which a recording lost events of a CPU: no task waits then, and tasks' own clocks \
        say how long they ran"),
    ("lost_events", "", "events that a recording lost; what was computed from it may be wrong"),
];
