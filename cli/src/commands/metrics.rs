//! `warmq metrics`: what an experiment can measure.

use clap::Args;
use warmq_experiment::{Engine, HistogramDescription, MetricDescription, Simulator, Used};

use crate::failure::Failure;
use crate::{listing, machines, output};

/// List what an experiment can measure.
#[derive(Args, Debug)]
pub struct Arguments {
    /// A workload, whose own figures are listed as well: a name or a scenario's file.
    workload: Option<String>,
}

/// Lists every figure and every histogram.
///
/// # Errors
/// There is no such workload.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let engine = Engine::new(None);
    let schedulers = warmq_sched::SCHEDULERS.iter();
    let used = Used {
        workloads: arguments.workload.as_deref().into_iter().collect(),
        schedulers: schedulers.map(|scheduler| scheduler.name).collect(),
    };
    for name in &used.workloads {
        machines::found("workload", name, engine.workload(name))?;
    }
    let mut figures = listing::table();
    for MetricDescription { name, unit, what } in engine.metrics(&used) {
        figures.add_row([listing::name(name), unit.into(), what.into()]);
    }
    let mut histograms = listing::table();
    for HistogramDescription {
        name,
        along,
        unit,
        what,
    } in engine.histograms(&used)
    {
        let what = format!("{what}, along {along}");
        histograms.add_row([listing::name(name), unit.into(), what.into()]);
    }
    let (figures, histograms) = (figures.trim_fmt(), histograms.trim_fmt());
    output::print(&format!("Figures (metric = ...):\n{figures}\n"))?;
    output::print(&format!("Histograms (histogram = ...):\n{histograms}"))
}
