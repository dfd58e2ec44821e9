//! The figures of a scenario, in whatever world it was played.

use std::collections::BTreeMap;

use warmq_trace::{Names, Observer, Record, Table};
use warmq_units::{Duration, Instant, TaskId};

use crate::quotas::{Counted, Quotas};
use crate::wakeups::Wakeups;
use crate::{Counts, Spans, TaskFigures, TaskMeter};

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

/// Collects the figures of a scenario, for the whole measurement and for each phase.
///
/// A span belongs to the window that it ends in; a wait for a CPU, to that in which the task gets
/// it. Only tasks that have a [`Record::Role`] are counted.
#[derive(Clone, Debug)]
pub struct PlayMeter {
    names: Names,
    roles: Table<TaskId, Option<usize>>,
    wakeups: Wakeups,
    /// The spans that are open, by name and number.
    open: BTreeMap<(u32, u64), Instant>,
    /// What each counter has counted.
    totals: Vec<u64>,
    /// What each task says that it has run.
    ran: BTreeMap<TaskId, Duration>,
    quotas: Quotas,
    /// True once a switch was seen: then [`Record::Ran`] is not needed.
    switches: bool,
    whole: Window,
    phase: Option<(usize, Window)>,
    ended: Vec<(usize, BTreeMap<String, f64>)>,
}

/// The figure that says for how long events of a CPU were lost.
pub const MISSING: &str = "missing_share";

/// What happened from one time to another.
#[derive(Clone, Debug)]
struct Window {
    from: Instant,
    tasks: TaskMeter,
    events: Counts,
    /// By name.
    spans: Vec<Spans>,
    /// By table of tasks: from the wakeup to the CPU.
    waits: Vec<Spans>,
    counts_before: Vec<u64>,
    ran_before: BTreeMap<TaskId, Duration>,
    quotas_before: Counted,
    lost: u64,
}

impl PlayMeter {
    /// Measures what happens at `from` or later in a scenario of these names.
    pub fn starting_at(names: Names, from: Instant) -> PlayMeter {
        PlayMeter {
            whole: Window {
                from,
                tasks: TaskMeter::starting_at(from),
                events: Counts::starting_at(from),
                spans: vec![Spans::default(); names.spans.len()],
                waits: vec![Spans::default(); names.tasks.len()],
                counts_before: vec![0; names.counters.len()],
                ran_before: BTreeMap::new(),
                quotas_before: Counted::new(),
                lost: 0,
            },
            totals: vec![0; names.counters.len()],
            roles: Table::default(),
            wakeups: Wakeups::default(),
            open: BTreeMap::new(),
            ran: BTreeMap::new(),
            quotas: Quotas::new(&names.groups),
            switches: false,
            phase: None,
            ended: Vec::new(),
            names,
        }
    }

    /// The tasks of a scenario's table.
    pub fn tasks_of_table(&self, table: usize) -> impl Iterator<Item = TaskId> {
        let roles = self.roles.iter();
        let tasks = roles.filter(move |(_, role)| **role == Some(table));
        tasks.map(|(task, _)| task)
    }

    /// What every task did since the measurement began.
    pub fn tasks(&self) -> &TaskMeter {
        &self.whole.tasks
    }

    /// How often things happened since the measurement began.
    pub fn events(&self) -> &Counts {
        &self.whole.events
    }

    /// What a counter had counted when the measurement began, and at its end, for who counts
    /// without a [`Record::Count`].
    pub fn counted(&mut self, counter: usize, before: u64, total: u64) {
        self.whole.counts_before[counter] = before;
        self.totals[counter] = total;
    }

    /// All figures up to `end`, by name; those of a phase are called `PHASE.NAME`. A figure that
    /// means nothing here (a quantile of no span) is absent.
    pub fn figures(&self, end: Instant) -> BTreeMap<String, f64> {
        let mut figures = self.of(&self.whole, end);
        let last = self.phase.iter();
        let last = last.map(|(phase, window)| (*phase, self.of(window, end)));
        for (phase, of_phase) in self.ended.iter().cloned().chain(last) {
            let Some(phase) = self.names.phases.get(phase) else {
                continue;
            };
            let named = of_phase.into_iter();
            figures.extend(named.map(|(name, value)| (format!("{phase}.{name}"), value)));
        }
        figures
    }

    fn of(&self, window: &Window, end: Instant) -> BTreeMap<String, f64> {
        let mut found = Found {
            seconds: end.since(window.from).as_s_f64(),
            figures: BTreeMap::new(),
        };
        for (index, counter) in self.names.counters.iter().enumerate() {
            let counted = self.totals[index] - window.counts_before[index];
            found.rate(&format!("{counter}_per_second"), counted);
            if *counter == self.names.work {
                found.rate("work_per_second", counted);
            }
        }
        for (name, spans) in self.names.spans.iter().zip(&window.spans) {
            found.spans(name, spans);
            found.rate(&format!("{name}_spans_per_second"), spans.count());
        }
        let mut waits = Spans::default();
        for (table, name) in self.names.tasks.iter().enumerate() {
            waits.merge(&window.waits[table]);
            found.spans(&format!("{name}_wait"), &window.waits[table]);
            let tasks = self.tasks_of(table, window, end);
            found.shares(name, &tasks);
            if self.switches {
                found.switches(name, &tasks);
            }
        }
        found.spans("wait", &waits);
        for (table, name) in self.names.groups.iter().enumerate() {
            if let Some(quota) = self.quotas.since(&window.quotas_before, table) {
                found.put(&format!("{name}_nr_periods"), quota.periods as f64);
                found.put(&format!("{name}_nr_throttled"), quota.throttled as f64);
                found.put(&format!("{name}_throttled_time"), us(quota.span));
            }
        }
        if self.switches {
            found.rate("wakeups_per_second", window.events.wakeups);
            let ran: Duration = self.others(window, end).map(|task| task.ran).sum();
            found.put("others_share", 100.0 * ran.as_s_f64() / found.seconds);
        }
        let missing = window.tasks.missing(end);
        if missing > Duration::ZERO {
            found.put(MISSING, 100.0 * missing.as_s_f64() / found.seconds);
        }
        if window.lost > 0 {
            found.put("lost_events", window.lost as f64);
        }
        found.figures
    }

    /// What each task of a table did in `window`.
    fn tasks_of(&self, table: usize, window: &Window, end: Instant) -> Vec<TaskFigures> {
        let is_whole = window.tasks.missing(end) == Duration::ZERO;
        self.tasks_of_table(table)
            .map(|task| {
                let figures = window.tasks.figures(task, end).unwrap_or_default();
                let whole = self.switches && (is_whole || !self.ran.contains_key(&task));
                let ran = match whole {
                    true => figures.ran,
                    false => self.ran_in(task, window),
                };
                TaskFigures { ran, ..figures }
            })
            .collect()
    }

    /// What tasks did that are none of the scenario's.
    fn others<'w>(
        &'w self,
        window: &'w Window,
        end: Instant,
    ) -> impl Iterator<Item = TaskFigures> + 'w {
        let all = window.tasks.all(end);
        let others = all.filter(|(task, _)| self.roles.get(*task).copied().flatten().is_none());
        others.map(|(_, figures)| figures)
    }

    fn ran_in(&self, task: TaskId, window: &Window) -> Duration {
        let of = |ran: &BTreeMap<TaskId, Duration>| ran.get(&task).copied().unwrap_or_default();
        of(&self.ran).saturating_sub(of(&window.ran_before))
    }

    /// Of a phase that begins before the measurement, only what is measured counts.
    fn begin_phase(&mut self, at: Instant, phase: usize) {
        if let Some((before, window)) = self.phase.take()
            && at > window.from
        {
            let figures = self.of(&window, at);
            self.ended.push((before, figures));
        }
        let from = at.max(self.whole.from);
        let window = Window {
            from,
            tasks: self.whole.tasks.restarted(from),
            events: Counts::starting_at(from),
            spans: vec![Spans::default(); self.names.spans.len()],
            waits: vec![Spans::default(); self.names.tasks.len()],
            counts_before: self.totals.clone(),
            ran_before: self.ran.clone(),
            quotas_before: self.quotas.now().clone(),
            lost: 0,
        };
        self.phase = Some((phase, window));
    }

    fn all_windows(&mut self) -> impl Iterator<Item = &mut Window> {
        let phase = self.phase.iter_mut().map(|(_, window)| window);
        std::iter::once(&mut self.whole).chain(phase)
    }

    fn windows(&mut self, at: Instant) -> impl Iterator<Item = &mut Window> {
        self.all_windows().filter(move |window| at >= window.from)
    }

    /// The windows that totals of this time are what they begin with.
    fn not_begun(&mut self, at: Instant) -> impl Iterator<Item = &mut Window> {
        self.all_windows().filter(move |window| at <= window.from)
    }

    fn span_ends(&mut self, at: Instant, span: u32, number: u64) {
        let Some(begun) = self.open.remove(&(span, number)) else {
            return;
        };
        for window in self.windows(at) {
            if let Some(spans) = window.spans.get_mut(span as usize) {
                spans.add(at.since(begun));
            }
        }
    }

    /// `task`, which was woken then, gets a CPU.
    fn runs(&mut self, at: Instant, (task, woken): (TaskId, Instant)) {
        let Some(table) = self.roles.get(task).copied().flatten() else {
            return;
        };
        for window in self.windows(at) {
            if let Some(waits) = window.waits.get_mut(table) {
                waits.add(at.since(woken));
            }
        }
    }

    /// A count that is reported before the measurement begins is what it begins with.
    fn count(&mut self, at: Instant, counter: usize, total: u64) {
        if let Some(known) = self.totals.get_mut(counter) {
            *known = total.max(*known);
            let known = *known;
            for window in self.not_begun(at) {
                window.counts_before[counter] = known;
            }
        }
    }
}

impl Observer for PlayMeter {
    const DETAIL: bool = false;

    fn see(&mut self, at: Instant, record: &Record) {
        self.whole.tasks.see(at, record);
        self.whole.events.see(at, record);
        if let Some((_, phase)) = &mut self.phase {
            phase.tasks.see(at, record);
            phase.events.see(at, record);
        }
        if let Some(woken) = self.wakeups.see(at, record) {
            self.runs(at, woken);
        }
        if self.quotas.see(record) && at <= self.whole.from {
            self.whole.quotas_before = self.quotas.now().clone();
        }
        match *record {
            Record::Role { task, table, .. } => {
                *self.roles.touch(task) = Some(table as usize);
            }
            Record::SpanBegin { span, number, .. } => {
                self.open.insert((span, number), at);
            }
            Record::SpanEnd { span, number, .. } => self.span_ends(at, span, number),
            Record::Switch { .. } => self.switches = true,
            Record::Count { counter, total } => self.count(at, counter as usize, total),
            Record::Phase { phase } => self.begin_phase(at, phase as usize),
            Record::Ran { task, total } => {
                self.ran.insert(task, total);
                for window in self.not_begun(at) {
                    window.ran_before.insert(task, total);
                }
            }
            Record::Lost { events, .. } => {
                let lost = events.max(1);
                self.windows(at).for_each(|window| window.lost += lost);
            }
            _ => {}
        }
    }
}

fn us(span: Duration) -> f64 {
    span.0 as f64 / 1e6
}

/// The figures of a window.
struct Found {
    seconds: f64,
    figures: BTreeMap<String, f64>,
}

/// The quantiles that are told, in percent.
const QUANTILES: [(&str, f64); 4] = [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p999", 99.9)];

impl Found {
    fn put(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.figures.insert(name.to_owned(), value);
        }
    }

    fn rate(&mut self, name: &str, count: u64) {
        self.put(name, count as f64 / self.seconds);
    }

    fn spans(&mut self, name: &str, spans: &Spans) {
        if spans.count() == 0 {
            return;
        }
        self.put(&format!("{name}_mean"), us(spans.mean()));
        for (quantile, percent) in QUANTILES {
            self.put(&format!("{name}_{quantile}"), us(spans.percentile(percent)));
        }
        self.put(&format!("{name}_max"), us(spans.max()));
    }

    /// Shares are of one CPU's time.
    fn shares(&mut self, name: &str, tasks: &[TaskFigures]) {
        let share = |ran: Duration| 100.0 * ran.as_s_f64() / self.seconds;
        let shares: Vec<f64> = tasks.iter().map(|task| share(task.ran)).collect();
        let Some(least) = shares.iter().copied().reduce(f64::min) else {
            return;
        };
        let most = shares.iter().copied().fold(least, f64::max);
        self.put(&format!("{name}_share"), shares.iter().sum());
        if shares.len() > 1 {
            self.put(&format!("{name}_share_least"), least);
            self.put(&format!("{name}_share_most"), most);
        }
    }

    /// What only a recording of switches tells.
    fn switches(&mut self, name: &str, tasks: &[TaskFigures]) {
        let Some(longest) = tasks.iter().map(|task| task.longest_wait).max() else {
            return;
        };
        self.put(&format!("{name}_delay_max"), us(longest));
        let sum = |of: fn(&TaskFigures) -> u64| tasks.iter().map(of).sum::<u64>();
        let wakeups = sum(|task| task.wakeups);
        self.rate(&format!("{name}_wakeups_per_second"), wakeups);
        self.put(
            &format!("{name}_preemptions"),
            sum(|task| task.involuntary) as f64,
        );
        if tasks.iter().all(|task| task.exited) {
            let elapsed: Duration = tasks.iter().map(TaskFigures::elapsed).sum();
            let mean = elapsed.as_s_f64() / tasks.len() as f64;
            self.put(&format!("{name}_elapsed"), mean);
        }
        let preempted = sum(|task| task.involuntary);
        self.rate(&format!("{name}_preemptions_per_second"), preempted);
        let migrations = sum(|task| task.migrations);
        self.rate(&format!("{name}_migrations_per_second"), migrations);
    }
}

/// Every figure that a scenario of these names can give, without those of its phases.
pub fn described(names: &Names) -> Vec<Described> {
    let mut all = Vec::new();
    let mut add = |name: String, unit: &'static str, what: String| {
        all.push(Described { name, unit, what });
    };
    for counter in &names.counters {
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

#[cfg(test)]
mod tests {
    use warmq_units::CpuId;

    use super::*;

    const CPU: CpuId = CpuId(0);
    const A: TaskId = TaskId(0);
    const B: TaskId = TaskId(1);

    fn names() -> Names {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Names {
            tasks: list(&["hog", "audio"]),
            spans: list(&["trip"]),
            counters: list(&["rounds"]),
            phases: list(&["calm", "storm"]),
            groups: list(&["pod"]),
            work: "rounds".to_owned(),
        }
    }

    #[test]
    fn quotas_are_counted_from_the_measurement_on_and_in_each_phase() {
        let counted = |periods, throttled, us| Record::Quota {
            group: 7,
            periods,
            throttled,
            span: Duration::from_us(us),
        };
        let pod = Record::Cgroup {
            group: 7,
            parent: 0,
            weight: 100,
            name: warmq_trace::Comm::new("pod"),
        };
        let mut meter = PlayMeter::starting_at(names(), ms(100));
        meter.see(ms(0), &pod);
        assert!(!meter.figures(ms(50)).contains_key("pod_nr_periods"));
        meter.see(ms(100), &counted(1, 1, 70));
        meter.see(ms(200), &counted(2, 1, 70));
        meter.see(ms(250), &Record::Phase { phase: 1 });
        meter.see(ms(300), &counted(3, 2, 170));
        let figures = meter.figures(ms(300));
        let of = |name: &str| figures[name];
        assert_eq!((of("pod_nr_periods"), of("pod_nr_throttled")), (2.0, 1.0));
        assert_eq!(of("pod_throttled_time"), 100.0);
        assert_eq!(of("storm.pod_nr_periods"), 1.0);
    }

    fn ms(ms: u64) -> Instant {
        Instant::START + Duration::from_ms(ms)
    }

    fn role(task: TaskId, table: u32) -> Record {
        Record::Role {
            task,
            table,
            number: 0,
        }
    }

    fn switch(prev: Option<TaskId>, prev_runnable: bool, next: Option<TaskId>) -> Record {
        Record::Switch {
            cpu: CPU,
            prev,
            prev_runnable,
            next,
        }
    }

    fn woken(task: TaskId) -> Record {
        Record::Wakeup {
            waker: CPU,
            task,
            target: CPU,
        }
    }

    /// The hog runs; audio is woken every 10 ms, waits 1 ms (3 ms in the storm, which begins at 100)
    /// and runs 2 ms; its span reaches from the wakeup to the end. It counts its rounds.
    fn story(from: Instant) -> PlayMeter {
        let mut meter = PlayMeter::starting_at(names(), from);
        meter.see(ms(0), &role(A, 0));
        meter.see(ms(0), &role(B, 1));
        meter.see(ms(0), &switch(None, false, Some(A)));
        meter.see(ms(0), &Record::Phase { phase: 0 });
        let (span, number) = (0, 1);
        for round in 0..20 {
            let at = 10 * round;
            let total = round;
            meter.see(ms(at), &Record::Count { counter: 0, total });
            if round == 10 {
                meter.see(ms(at), &Record::Phase { phase: 1 });
            }
            let wait = if round < 10 { 1 } else { 3 };
            meter.see(ms(at), &woken(B));
            let begin = Record::SpanBegin {
                task: B,
                span,
                number,
            };
            meter.see(ms(at), &begin);
            meter.see(ms(at + wait), &switch(Some(A), true, Some(B)));
            let end = Record::SpanEnd {
                task: B,
                span,
                number,
            };
            meter.see(ms(at + wait + 2), &end);
            meter.see(ms(at + wait + 2), &switch(Some(B), false, Some(A)));
        }
        meter.see(
            ms(200),
            &Record::Count {
                counter: 0,
                total: 20,
            },
        );
        meter
    }

    fn is(figures: &BTreeMap<String, f64>, name: &str, wanted: f64) {
        let found = figures.get(name).copied().unwrap_or(f64::NAN);
        assert!((found - wanted).abs() <= wanted * 1e-3, "{name}: {found}");
    }

    #[test]
    fn shares_waits_spans_and_counts_are_those_of_their_window() {
        let figures = story(ms(0)).figures(ms(200));
        is(&figures, "work_per_second", 100.0);
        is(&figures, "audio_share", 20.0);
        is(&figures, "hog_share", 80.0);
        is(&figures, "hog_preemptions_per_second", 100.0);
        is(&figures, "calm.audio_wait_max", 1_000.0);
        is(&figures, "storm.audio_wait_mean", 3_000.0);
        is(&figures, "calm.trip_p99", 3_000.0);
        is(&figures, "storm.trip_p50", 5_000.0);
        is(&figures, "calm.hog_delay_max", 2_000.0);
        is(&figures, "storm.audio_delay_max", 3_000.0);
        is(&figures, "audio_wait_mean", 2_000.0);
        is(&figures, "storm.rounds_per_second", 100.0);
        is(&figures, "calm.hog_share", 80.0);
        is(&figures, "storm.trip_spans_per_second", 100.0);
        assert!(!figures.contains_key("hog_wait_p50"), "it was never woken");
    }

    #[test]
    fn what_was_before_the_measurement_does_not_count() {
        let figures = story(ms(100)).figures(ms(200));
        is(&figures, "work_per_second", 100.0);
        is(&figures, "audio_share", 20.0);
        is(&figures, "audio_wait_mean", 3_000.0);
    }

    /// The measurement begins at 50 ms, in the phase `calm` that ends at 100 ms.
    #[test]
    fn of_a_phase_that_begins_in_the_warm_up_only_what_is_measured_counts() {
        let figures = story(ms(50)).figures(ms(200));
        is(&figures, "calm.audio_share", 20.0);
        is(&figures, "calm.hog_share", 80.0);
        is(&figures, "calm.hog_preemptions_per_second", 100.0);
        // A phase that is over by then has no figures.
        let later = story(ms(150)).figures(ms(200));
        assert!(
            !later.keys().any(|name| name.starts_with("calm.")),
            "{later:?}"
        );
        is(&later, "storm.hog_share", 80.0);
    }

    #[test]
    fn without_switches_the_tasks_own_clocks_count() {
        let mut meter = PlayMeter::starting_at(names(), ms(100));
        meter.see(ms(0), &role(A, 0));
        let ran = |total| Record::Ran {
            task: A,
            total: Duration::from_ms(total),
        };
        meter.see(ms(100), &ran(60));
        meter.see(ms(300), &ran(160));
        is(&meter.figures(ms(300)), "hog_share", 50.0);
    }

    #[test]
    fn every_figure_is_described() {
        let known: Vec<String> = described(&names()).into_iter().map(|it| it.name).collect();
        for name in story(ms(0)).figures(ms(200)).keys() {
            let plain = name.split_once('.').map_or(name.as_str(), |(_, name)| name);
            assert!(known.iter().any(|it| it == plain), "{name}");
        }
    }

    /// Where events are missing, a task's own clock says how long it ran.
    #[test]
    fn shares_do_not_come_from_switches_with_gaps() {
        let share = |events| {
            let mut meter = PlayMeter::starting_at(names(), ms(0));
            let hog = TaskId(0);
            let ran = |total| Record::Ran {
                task: hog,
                total: Duration::from_ms(total),
            };
            let switch = |next| Record::Switch {
                cpu: CPU,
                prev: None,
                prev_runnable: false,
                next,
            };
            let role = Record::Role {
                task: hog,
                table: 0,
                number: 0,
            };
            let lost = Record::Lost { cpu: CPU, events };
            let story = [
                (0, role),
                (0, ran(10)),
                (0, switch(Some(hog))),
                (20, lost),
                (80, switch(None)),
                (100, ran(40)),
            ];
            for (at, record) in &story {
                meter.see(ms(*at), record);
            }
            let figures = meter.figures(ms(100));
            (figures["hog_share"], figures.get(MISSING).copied())
        };
        assert_eq!(share(1), (100.0, None));
        assert_eq!(share(9), (30.0, Some(60.0)));
    }

    #[test]
    fn lost_events_are_told() {
        let mut meter = PlayMeter::starting_at(names(), ms(0));
        let lost = |events| Record::Lost { cpu: CPU, events };
        meter.see(ms(1), &lost(0));
        meter.see(ms(2), &lost(4));
        is(&meter.figures(ms(3)), "lost_events", 5.0);
    }
}
