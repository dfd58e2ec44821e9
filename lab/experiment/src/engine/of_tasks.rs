//! Figures of each table of tasks that only the laboratory knows: CPU times by mode, and what the
//! scheduler says of its tasks.

use std::collections::BTreeMap;

use warmq_kernel::{CpuTime, Kernel, Statistic, TaskCpuTime};
use warmq_metrics::PlayMeter;
use warmq_sched::Said;
use warmq_trace::{Names, Observer};
use warmq_units::{Duration, TaskId};

use crate::simulator::{HistogramDescription, MetricDescription};

/// Name, unit and meaning of the figures of CPU time, which begin with the name of the table. Times
/// are those of `time -v`.
const TIMES: [(&str, &str, &str); 5] = [
    ("user", "s", "CPU time in user mode, as ticks sample it,"),
    ("system", "s", "CPU time in the kernel, as ticks sample it,"),
    (
        "cpu",
        "%",
        "CPU time as ticks sample it, over elapsed time,",
    ),
    ("user_exact", "s", "CPU time in user mode"),
    (
        "system_exact",
        "s",
        "CPU time in the kernel, without interrupts,",
    ),
];

/// What is known of a run of a scenario of these names under a scheduler that says this.
pub(super) fn described(names: &Names, all: &[Said]) -> Vec<MetricDescription> {
    let mut metrics = Vec::new();
    for task in &names.tasks {
        let mut add = |name: &str, unit: &str, what: &str| {
            metrics.push(MetricDescription {
                name: format!("{task}_{name}"),
                unit: unit.to_owned(),
                what: format!("{what} of {task}"),
            });
        };
        for (name, unit, what) in TIMES {
            add(name, unit, what);
        }
        for said in all {
            match said.unit {
                Some(unit) => add(said.name, unit, said.what),
                None => add(&format!("{}_per_second", said.name), "1/s", said.what),
            }
        }
    }
    metrics
}

/// The histograms of the same.
pub(super) fn histograms_described(names: &Names, all: &[Said]) -> Vec<HistogramDescription> {
    let mut histograms = Vec::new();
    for task in &names.tasks {
        for (said, unit) in all.iter().filter_map(|said| Some((said, said.unit?))) {
            let along = match unit {
                "" => said.name.to_owned(),
                unit => format!("{} in {unit}", said.name),
            };
            histograms.push(HistogramDescription {
                name: format!("{task}_{}", said.name),
                along,
                unit: "samples".to_owned(),
                what: format!("{} of {task}, sampled every 20 ms", said.what),
            });
        }
    }
    histograms
}

/// What happened in a run, by tables of tasks.
pub(super) struct OfTasks<'r, O: Observer> {
    pub(super) kernel: &'r Kernel<O>,
    pub(super) play: &'r PlayMeter,
    pub(super) names: &'r Names,
    /// What the scheduler says.
    pub(super) said: &'r [Said],
}

impl<O: Observer> OfTasks<'_, O> {
    fn tables(&self) -> impl Iterator<Item = (&String, Vec<TaskId>)> {
        let tables = self.names.tasks.iter().enumerate();
        let with_tasks =
            tables.map(|(table, name)| (name, self.play.tasks_of_table(table).collect()));
        with_tasks.filter(|(_, tasks): &(_, Vec<TaskId>)| !tasks.is_empty())
    }

    /// The figures that [`described`] describes.
    pub(super) fn figures(&self) -> BTreeMap<String, f64> {
        let mut figures = BTreeMap::new();
        for (name, tasks) in self.tables() {
            let mut put = |figure: &str, value: f64| {
                if value.is_finite() {
                    figures.insert(format!("{name}_{figure}"), value);
                }
            };
            for (figure, value) in self.times(&tasks) {
                put(figure, value);
            }
            for (number, said) in (0..).map(Statistic).zip(self.said) {
                match said.unit {
                    None => put(
                        &format!("{}_per_second", said.name),
                        self.rate(number, &tasks),
                    ),
                    Some(_) => put(said.name, mean(&self.samples(number, &tasks))),
                }
            }
        }
        figures
    }

    /// The histograms that [`histograms_described`] describes.
    pub(super) fn histograms(&self) -> BTreeMap<String, Vec<(f64, f64)>> {
        let mut histograms = BTreeMap::new();
        for (name, tasks) in self.tables() {
            for (number, said) in (0..).map(Statistic).zip(self.said) {
                let samples = self.samples(number, &tasks);
                if said.unit.is_some() && !samples.is_empty() {
                    let samples = samples.iter();
                    let bins = samples.map(|(value, seen)| (*value as f64, *seen as f64));
                    histograms.insert(format!("{name}_{}", said.name), bins.collect());
                }
            }
        }
        histograms
    }

    fn times(&self, tasks: &[TaskId]) -> [(&'static str, f64); 5] {
        let sum = |of: fn(TaskCpuTime) -> CpuTime| {
            let times = tasks.iter().filter_map(|task| self.kernel.task(*task));
            times.map(of).fold(CpuTime::default(), |mut sum, time| {
                sum += time;
                sum
            })
        };
        let (sampled, exact) = (sum(|time| time.sampled), sum(|time| time.exact));
        let tasks = tasks.iter();
        let figures = tasks.filter_map(|task| self.play.task(*task, self.kernel.now()));
        let elapsed: Duration = figures.map(|figures| figures.elapsed()).sum();
        let share = 100.0 * sampled.total().as_s_f64() / elapsed.as_s_f64();
        let values = [
            sampled.user.as_s_f64(),
            sampled.system.as_s_f64(),
            share,
            exact.user.as_s_f64(),
            exact.system.as_s_f64(),
        ];
        std::array::from_fn(|index| (TIMES[index].0, values[index]))
    }

    fn rate(&self, statistic: Statistic, tasks: &[TaskId]) -> f64 {
        let tasks = tasks.iter();
        let times = tasks.map(|task| self.kernel.statistic(statistic, *task).times);
        times.sum::<u64>() as f64 / self.kernel.measured().as_s_f64()
    }

    fn samples(&self, statistic: Statistic, tasks: &[TaskId]) -> BTreeMap<u64, u64> {
        let mut sum = BTreeMap::new();
        for task in tasks {
            for (value, seen) in self.kernel.statistic(statistic, *task).samples {
                *sum.entry(value).or_default() += seen;
            }
        }
        sum
    }
}

fn mean(samples: &BTreeMap<u64, u64>) -> f64 {
    let seen: u64 = samples.values().sum();
    let weighted: f64 = samples
        .iter()
        .map(|(value, seen)| *value as f64 * *seen as f64)
        .sum();
    weighted / seen as f64
}
