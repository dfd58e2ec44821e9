//! `warmq metrics`: what an experiment can measure.

use warmq_experiment::{Engine, HistogramDescription, MetricDescription, Simulator};

use crate::failure::Failure;
use crate::{listing, output};

/// Lists every figure and every histogram.
pub fn run() -> Result<(), Failure> {
    let engine = Engine::new(None);
    let mut figures = listing::table();
    for MetricDescription { name, unit, what } in engine.metrics() {
        figures.add_row([listing::name(name), unit.into(), what.into()]);
    }
    let mut histograms = listing::table();
    for HistogramDescription {
        name,
        along,
        unit,
        what,
    } in engine.histograms()
    {
        let what = format!("{what}, along {along}");
        histograms.add_row([listing::name(name), unit.into(), what.into()]);
    }
    let (figures, histograms) = (figures.trim_fmt(), histograms.trim_fmt());
    output::print(&format!("Figures (metric = ...):\n{figures}\n"))?;
    output::print(&format!("Histograms (histogram = ...):\n{histograms}"))
}
