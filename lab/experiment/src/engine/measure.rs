//! Turns the counts of a run into the metrics of experiments. Floats begin here.

use std::collections::{BTreeMap, BTreeSet};

use warmq_kernel::{Kernel, Mode, Within};
use warmq_machine::Counts;
use warmq_metrics::{
    CpuFigures, CpuMeter, Described, LockFigures, LockMeter, PlayMeter, TaskFigures, described,
};
use warmq_trace::{Interrupt, Names, OF_SCHEDULER, Observer, Record};
use warmq_units::{Duration, Instant};

use crate::simulator::{HistogramDescription, MetricDescription};

/// The page offsets of the lines that 32 colors use: one line in 0x20..0x3f without colors, and
/// the 31 that follow it with them.
const HOT_OFFSETS: std::ops::Range<u64> = 0x20..0x420;
/// Bytes in a bin of the histogram.
const BIN: usize = 16;
const HISTOGRAM: &str = "bus_by_page_offset";

/// A table of metrics, a row each: name, unit and meaning.
macro_rules! metrics {
    ($($name:ident $unit:literal $what:literal)*) => {
        &[$((stringify!($name), $unit, $what)),*]
    };
}

/// Name, unit and meaning of every metric.
const METRICS: &[(&str, &str, &str)] = metrics! {
    requests_per_second "1/s" "pages that the clients of the web workload received"
    messages_per_second "1/s" "messages that users of the chat workload received"
    bursts_per_second "1/s" "bursts of work that the tasks of the spin workload finished"
    walk_l2_miss_ratio "%" "level-2 misses over level-2 reads inside the run-queue walk"
    walk_length "visits" "mean visits of a walk over a run queue"
    walk_length_max "visits" "visits of the longest walk"
    walks_per_second "1/s" "walks over run queues"
    recalculations "" "how often the time slices of all tasks were recalculated"
    bus_transactions_per_second "1/s" "transactions on the bus"
    bus_transactions_per_request "" "transactions on the bus per unit of work"
    bus_hot_transactions_per_second "1/s"
        "transactions on the page offsets of 32 colors; needs page_offsets"
    bus_hot_transactions_per_request ""
        "transactions on the page offsets of 32 colors per unit of work"
    bus_hot_share "%" "share of transactions on the page offsets of 32 colors"
    bus_busy "%" "share of time that the bus was occupied"
    lock_contention "%" "share of requests for run-queue locks that found the lock held"
    lock_hold_mean "us" "mean hold of run-queue locks"
    lock_hold_max "us" "longest hold of a run-queue lock"
    lock_wait_mean "us" "mean wait of the requests that had to wait"
    lock_wait_max "us" "longest wait"
    lock_requests_per_second "1/s" "requests for run-queue locks"
    switches_per_second "1/s" "switches from one task to another"
    migrations_per_second "1/s" "tasks picked by a CPU other than the one that they last ran on"
    runnable_mean "tasks" "mean number of runnable tasks over time, running tasks included"
    cpu_busy_share "%" "time in programs and in the kernel on their behalf"
    cpu_interrupt_share "%" "time in interrupts and softirqs"
    cpu_spin_share "%" "time spinning for locks"
    cpu_idle_share "%" "idle time"
    card_interrupts_per_second "1/s" "interrupts of network cards"
    datagrams_lost_share "%"
        "share of the datagrams sent to sockets that cards or full buffers dropped"
    l2_misses_cold "%" "share of level-2 misses on lines never seen; needs classify_misses"
    l2_misses_conflict "%" "share of level-2 misses that full associativity would have avoided"
    l2_misses_capacity "%" "share of level-2 misses that only a larger cache would have avoided"
    l2_misses_coherence "%"
        "share of level-2 misses on lines that another CPU's write had invalidated"
    l1_misses_per_work "" "level-1 misses for each unit of work: request, message..."
    l2_misses_per_work "" "level-2 misses for each unit of work: request, message..."
    l3_misses_per_work "" "level-3 misses for each unit of work: request, message..."
    l2_coherence_misses_per_work ""
        "level-2 misses on lines that another CPU's write had invalidated, per unit of work; \
         needs classify_misses"
    l3_coherence_misses_per_work ""
        "level-3 misses on lines written under another last-level cache, per unit of work; \
         needs classify_misses"
    lines_from_other_caches_per_work ""
        "lines that one last-level cache supplied to another, per unit of work"
    simulated_seconds "s" "time that was measured, simulated or real"
    host_delay "us"
        "time for which the CPUs of a real world waited for those of the machine below, all together; of a guest \
         the mean while it played"
    cpu_taken_share "%"
        "share of the time of a real world's CPUs that others than the tasks of the run had, or the machine below"
};

/// Metrics in the order in which they were added, each name once: what several say is the same.
#[derive(Default)]
pub(super) struct Catalog {
    pub(super) list: Vec<MetricDescription>,
    names: BTreeSet<String>,
}

impl Catalog {
    pub(super) fn add(&mut self, metric: MetricDescription) {
        if self.names.insert(metric.name.clone()) {
            self.list.push(metric);
        }
    }
}

/// Every metric of all workloads, and those of scenarios with these names.
pub(super) fn metrics(scenarios: impl Iterator<Item = Names>) -> Catalog {
    let described_here = |(name, unit, what): &(&str, &str, &str)| MetricDescription {
        name: (*name).to_owned(),
        unit: (*unit).to_owned(),
        what: (*what).to_owned(),
    };
    let mut metrics = Catalog::default();
    for names in scenarios {
        let mut add = |phase: &str, described: Described| {
            let name = format!("{phase}{}", described.name);
            metrics.add(metric(Described { name, ..described }));
        };
        let all = described(&names);
        all.iter().cloned().for_each(|described| add("", described));
        for phase in &names.phases {
            let of_phase = all.iter().cloned();
            of_phase.for_each(|described| add(&format!("{phase}."), described));
        }
    }
    let general = METRICS.iter().map(described_here);
    general.for_each(|described| metrics.add(described));
    metrics
}

/// A figure as an experiment asks for it.
pub(super) fn metric(described: Described) -> MetricDescription {
    MetricDescription {
        name: described.name,
        unit: described.unit.to_owned(),
        what: described.what,
    }
}

fn rate_of(counter: &str) -> String {
    format!("{counter}_per_second")
}

/// What counters have counted, by name.
pub(super) type Totals = BTreeMap<String, u64>;

/// What was counted before the measurement, and until its end.
pub(super) struct Done {
    before: Totals,
    total: Totals,
}

impl Done {
    pub(super) fn new(before: Totals, total: Totals) -> Done {
        Done { before, total }
    }

    /// What `counter` counted in the measurement, if there is such a counter.
    fn of(&self, counter: &str) -> Option<u64> {
        let before = self.before.get(counter).copied().unwrap_or(0);
        let total = *self.total.get(counter)?;
        // Who began anew has counted what it has now.
        Some(total.checked_sub(before).unwrap_or(total))
    }

    /// What the scheduler counted in the measurement, by name.
    fn of_scheduler(&self) -> impl Iterator<Item = (&String, u64)> {
        let names = self.total.keys();
        let own = names.filter(|name| name.starts_with(OF_SCHEDULER));
        own.filter_map(|name| Some((name, self.of(name)?)))
    }
}

pub(super) fn histogram_descriptions() -> Vec<HistogramDescription> {
    vec![HistogramDescription {
        name: HISTOGRAM.to_owned(),
        along: "offset in the page of 4096 bytes".to_owned(),
        unit: "transactions".to_owned(),
        what: "bus transactions by the page offset of their address, as GATES counts them; needs page_offsets"
            .to_owned(),
    }]
}

pub(super) fn histograms<O: Observer>(kernel: &Kernel<O>) -> BTreeMap<String, Vec<(f64, f64)>> {
    let bins = kernel
        .counts()
        .and_then(Counts::histogram)
        .map(|histogram| histogram.bins());
    let point = |(bin, count): (usize, &u64)| ((bin * BIN) as f64, *count as f64);
    let points = bins.map(|bins| bins.iter().enumerate().map(point).collect());
    points
        .map(|points| (HISTOGRAM.to_owned(), points))
        .into_iter()
        .collect()
}

/// Collects the figures of a run.
struct Figures {
    seconds: f64,
    found: BTreeMap<String, f64>,
}

impl Figures {
    fn put(&mut self, name: &str, value: f64) {
        debug_assert!(METRICS.iter().any(|(metric, ..)| *metric == name), "{name}");
        if value.is_finite() {
            self.found.insert(name.to_owned(), value);
        }
    }

    fn put_rate(&mut self, name: &str, count: u64) {
        self.put(name, count as f64 / self.seconds);
    }

    fn put_share(&mut self, name: &str, part: u64, whole: u64) {
        self.put(name, 100.0 * part as f64 / whole as f64);
    }

    fn put_us(&mut self, name: &str, span: Duration, over: u64) {
        self.put(name, span.0 as f64 / 1e6 / over as f64);
    }
}

/// The meters for an experiment's metrics that are computed from records. What records do not
/// contain (walks, caches, user mode), the kernel counts.
pub(super) struct RunMeters {
    play: PlayMeter,
    locks: LockMeter,
}

impl RunMeters {
    /// Counts what happens at `from` or later in a scenario of these names.
    pub(super) fn starting_at(names: Names, from: Instant) -> RunMeters {
        RunMeters {
            play: PlayMeter::starting_at(names, from),
            locks: LockMeter::starting_at(from),
        }
    }

    /// The meter of the scenario.
    pub(super) fn play(&self) -> &PlayMeter {
        &self.play
    }

    /// What the lab's player has counted at `at`, which is in no record.
    pub(super) fn counted(&mut self, names: Option<&Names>, totals: &Totals, at: Instant) {
        let counters = names.into_iter().flat_map(|names| &names.counters);
        for (counter, name) in (0..).zip(counters) {
            let total = totals.get(name).copied().unwrap_or(0);
            self.play.see(at, &Record::Count { counter, total });
        }
    }

    /// The figures of the scenario.
    pub(super) fn played(
        mut self,
        names: &Names,
        done: &Done,
        end: Instant,
    ) -> BTreeMap<String, f64> {
        self.counted(Some(names), &done.total, end);
        self.play.figures(end)
    }
}

impl Observer for RunMeters {
    const DETAIL: bool = false;

    #[inline]
    fn see(&mut self, at: Instant, record: &Record) {
        self.play.see(at, record);
        self.locks.see(at, record);
    }
}

pub(super) fn figures<O: Observer>(
    kernel: &Kernel<O>,
    meters: &RunMeters,
    done: &Done,
    work: &str,
) -> BTreeMap<String, f64> {
    let seconds = kernel.measured().as_s_f64();
    let mut figures = Figures {
        seconds,
        found: BTreeMap::new(),
    };
    figures.put("simulated_seconds", seconds);
    for counter in ["requests", "messages", "bursts"] {
        if let Some(done) = done.of(counter) {
            figures.put_rate(&rate_of(counter), done);
        }
    }
    for (counter, counted) in done.of_scheduler() {
        let rate = counted as f64 / seconds;
        figures.found.insert(rate_of(counter), rate);
    }
    let work = done.of(work).unwrap_or(0);
    put_walks(&mut figures, kernel);
    let locks = kernel.run_queue_locks().map(|(lock, _)| lock);
    let locks: Vec<LockFigures> = locks.map(|lock| meters.locks.figures(lock)).collect();
    put_locks(&mut figures, &locks);
    put_cpus(&mut figures, kernel);
    put_events(&mut figures, &meters.play, kernel.now());
    let interrupts = &meters.play.events().interrupts;
    figures.put_rate(
        "card_interrupts_per_second",
        *interrupts.of(Interrupt::Network),
    );
    let datagrams = kernel.all_datagrams();
    figures.put_share("datagrams_lost_share", datagrams.dropped, datagrams.sent);
    if let Some(counts) = kernel.counts() {
        put_bus(&mut figures, counts, work);
        put_misses(&mut figures, counts);
        put_misses_per_work(&mut figures, counts, work);
    }
    figures.found
}

fn put_walks<O: Observer>(figures: &mut Figures, kernel: &Kernel<O>) {
    let (walks, accesses) = (kernel.walks(), kernel.accesses(Within::RunQueueWalk));
    figures.put_share(
        "walk_l2_miss_ratio",
        accesses.reached(3),
        accesses.reached(2),
    );
    figures.put("walk_length", walks.visits as f64 / walks.walks as f64);
    figures.put("walk_length_max", walks.longest as f64);
    figures.put_rate("walks_per_second", walks.walks);
}

fn put_locks(figures: &mut Figures, locks: &[LockFigures]) {
    let sum = |of: fn(&LockFigures) -> u64| locks.iter().map(of).sum::<u64>();
    let span = |of: fn(&LockFigures) -> Duration| locks.iter().map(of).sum::<Duration>();
    let longest = |of: fn(&LockFigures) -> Duration| locks.iter().map(of).max().unwrap_or_default();
    let (requests, contended) = (sum(|lock| lock.requests), sum(|lock| lock.contended));
    figures.put_rate("lock_requests_per_second", requests);
    figures.put_share("lock_contention", contended, requests);
    figures.put_us(
        "lock_hold_mean",
        span(|lock| lock.held),
        sum(|lock| lock.tenures),
    );
    figures.put_us("lock_hold_max", longest(|lock| lock.max_hold), 1);
    figures.put_us(
        "lock_wait_mean",
        span(|lock| lock.waited),
        sum(|lock| lock.waits),
    );
    figures.put_us("lock_wait_max", longest(|lock| lock.max_wait), 1);
}

fn put_cpus<O: Observer>(figures: &mut Figures, kernel: &Kernel<O>) {
    let spent = |mode| kernel.spent(mode).0;
    let all: u64 = Mode::ALL.into_iter().map(spent).sum();
    let busy = spent(Mode::User) + spent(Mode::System);
    figures.put_share("cpu_busy_share", busy, all);
    let interrupts = spent(Mode::Interrupt) + spent(Mode::Softirq);
    figures.put_share("cpu_interrupt_share", interrupts, all);
    figures.put_share("cpu_spin_share", spent(Mode::Spin), all);
    figures.put_share("cpu_idle_share", spent(Mode::Idle), all);
}

/// The figures of any world that are computed from records alone, for what happened from the first
/// time to the second.
pub(super) fn of_records(
    play: &PlayMeter,
    cpus: &CpuMeter,
    (from, end): (Instant, Instant),
) -> BTreeMap<String, f64> {
    let seconds = end.since(from).as_s_f64();
    let mut figures = Figures {
        seconds,
        found: BTreeMap::new(),
    };
    figures.put("simulated_seconds", seconds);
    // Without the right to record switches, nothing is known of them.
    if play.events().switches > 0 {
        put_events(&mut figures, play, end);
        let of = |span: fn(&CpuFigures) -> Duration| -> u64 {
            cpus.all(end).map(|(_, cpu)| span(&cpu).0).sum()
        };
        let (busy, idle) = (of(|cpu| cpu.busy), of(|cpu| cpu.idle));
        let interrupted = of(CpuFigures::interrupted);
        let all = busy + idle + interrupted;
        figures.put_share("cpu_busy_share", busy, all);
        figures.put_share("cpu_interrupt_share", interrupted, all);
        figures.put_share("cpu_idle_share", idle, all);
    }
    figures.found
}

fn put_events(figures: &mut Figures, play: &PlayMeter, end: Instant) {
    let runnable = |of_task: TaskFigures| (of_task.ran + of_task.waited).as_s_f64();
    let runnable: f64 = play.tasks(end).map(|(_, task)| runnable(task)).sum();
    figures.put("runnable_mean", runnable / figures.seconds);
    figures.put_rate("switches_per_second", play.events().switches);
    figures.put_rate("migrations_per_second", play.events().migrations);
    figures.put("recalculations", play.events().recalculations as f64);
}

fn put_bus(figures: &mut Figures, counts: &Counts, work: u64) {
    let (all, hot) = (
        counts.bus.transactions(),
        counts.transactions_at(HOT_OFFSETS),
    );
    figures.put_rate("bus_transactions_per_second", all);
    figures.put_rate("bus_hot_transactions_per_second", hot);
    figures.put("bus_transactions_per_request", all as f64 / work as f64);
    figures.put("bus_hot_transactions_per_request", hot as f64 / work as f64);
    figures.put_share("bus_hot_share", hot, all);
    figures.put(
        "bus_busy",
        100.0 * counts.bus.busy.as_s_f64() / figures.seconds,
    );
}

fn put_misses(figures: &mut Figures, counts: &Counts) {
    let kinds = counts.total(2).kinds;
    let all = kinds.cold + kinds.conflict + kinds.capacity + kinds.coherence;
    figures.put_share("l2_misses_cold", kinds.cold, all);
    figures.put_share("l2_misses_conflict", kinds.conflict, all);
    figures.put_share("l2_misses_capacity", kinds.capacity, all);
    figures.put_share("l2_misses_coherence", kinds.coherence, all);
}

fn put_misses_per_work(figures: &mut Figures, counts: &Counts, work: u64) {
    let mut put = |name: &str, count: u64| figures.put(name, count as f64 / work as f64);
    for level in 1..=counts.depth().min(3) {
        let total = counts.total(level as u8);
        put(
            &format!("l{level}_misses_per_work"),
            total.read_misses + total.write_misses,
        );
        if level > 1 && total.kinds.total() > 0 {
            let name = format!("l{level}_coherence_misses_per_work");
            put(&name, total.kinds.coherence);
        }
    }
    put("lines_from_other_caches_per_work", counts.bus.supplied);
}
