//! What figures there are, and what each of them is.

use warmq_trace::Names;

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

/// The figures that people look at first, of a scenario of these names: what it does, how long its
/// spans take, and what each of its tasks gets and waits for.
pub fn answers(names: &Names) -> Vec<String> {
    let counters = names.counters_of_steps().map(|(_, name)| name);
    let counters = counters.filter(|name| **name != names.work);
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
        let what = |rest: &str| format!("{rest} of {task}");
        let share = "CPU time, in hundredths of one CPU,";
        add(format!("{task}_share"), "%", what(share));
        let least = "least CPU time of a task, in hundredths of one CPU,";
        add(format!("{task}_share_least"), "%", what(least));
        let most = "most CPU time of a task, in hundredths of one CPU,";
        add(format!("{task}_share_most"), "%", what(most));
        let longest = "longest time without a CPU of a runnable task";
        add(format!("{task}_delay_max"), "us", what(longest));
        let preempted = "switches away from a task that could go on,";
        add(
            format!("{task}_preemptions_per_second"),
            "1/s",
            what(preempted),
        );
        add(format!("{task}_preemptions"), "", what(preempted));
        let woken = "wakeups that ended a sleep";
        add(format!("{task}_wakeups_per_second"), "1/s", what(woken));
        let elapsed = "mean time from the start to the end, where all have ended,";
        add(format!("{task}_elapsed"), "s", what(elapsed));
        let moved = "moves to another CPU";
        add(format!("{task}_migrations_per_second"), "1/s", what(moved));
    }
    for (figure, unit, what) in names.spinlocks.iter().flat_map(|lock| of_spinlock(lock)) {
        add(figure, unit, what);
    }
    for group in &names.groups {
        let what = |rest: &str| format!("{rest} of the quota of {group}, as cpu.stat says");
        add(
            format!("{group}_nr_periods"),
            "",
            what("periods that ended"),
        );
        let throttled = "periods in which a CPU's queue was throttled,";
        add(format!("{group}_nr_throttled"), "", what(throttled));
        let time = "time for which queues were throttled, summed over CPUs,";
        add(format!("{group}_throttled_time"), "us", what(time));
    }
    add(
        "others_share".to_owned(),
        "%",
        "CPU time of tasks that are not the scenario's, in hundredths of one CPU".to_owned(),
    );
    add(
        "wakeups_per_second".to_owned(),
        "1/s",
        "wakeups of any task".to_owned(),
    );
    add(
        MISSING.to_owned(),
        "%",
        "time in which a recording lost events of a CPU: no task waits then, and tasks' own clocks say how long \
         they ran"
            .to_owned(),
    );
    add(
        "lost_events".to_owned(),
        "",
        "events that a recording lost; what was computed from it may be wrong".to_owned(),
    );
    all
}

/// The figures of the spin locks of a table.
fn of_spinlock(lock: &str) -> [(String, &'static str, String); 3] {
    let figure = |figure: &str, unit, what: &str| {
        let what = format!("{what} (spin lock {lock})");
        (format!("{lock}_{figure}"), unit, what)
    };
    [
        figure("taken_per_second", "1/s", "how often it was taken"),
        figure(
            "contention",
            "%",
            "share of these in which a task found it held",
        ),
        figure(
            "spin_share",
            "%",
            "CPU time of looks at it while it was held, in hundredths of one CPU",
        ),
    ]
}
