//! A simulator that also notes how long each run took, in real time.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use warmq_experiment::{
    HistogramDescription, Measured, MetricDescription, Part, PartError, Plan, RunError, Setting,
    Simulator, Used,
};

/// Hands everything on, and looks at the clock before and after each run.
pub struct Clocked<'a> {
    simulator: &'a dyn Simulator,
    took: Mutex<BTreeMap<Plan, Duration>>,
}

impl<'a> Clocked<'a> {
    /// Notes nothing yet.
    pub fn new(simulator: &'a dyn Simulator) -> Clocked<'a> {
        Clocked {
            simulator,
            took: Mutex::default(),
        }
    }

    /// How long each plan took.
    pub fn into_took(self) -> BTreeMap<Plan, Duration> {
        self.took.into_inner().unwrap_or_default()
    }
}

impl Simulator for Clocked<'_> {
    fn names(&self, part: Part) -> Vec<String> {
        self.simulator.names(part)
    }

    fn settings(&self, part: Part, name: &str) -> Result<Vec<Setting>, PartError> {
        self.simulator.settings(part, name)
    }

    fn takes(&self, world: &str, part: Part, name: &str) -> Result<(), String> {
        self.simulator.takes(world, part, name)
    }

    fn metrics(&self, used: &Used<'_>) -> Vec<MetricDescription> {
        self.simulator.metrics(used)
    }

    fn needs_quiet(&self, plan: &Plan) -> bool {
        self.simulator.needs_quiet(plan)
    }

    fn histograms(&self, used: &Used<'_>) -> Vec<HistogramDescription> {
        self.simulator.histograms(used)
    }

    fn simulate(&self, plan: &Plan) -> Result<Measured, RunError> {
        let began = Instant::now();
        let result = self.simulator.simulate(plan);
        if let Ok(mut took) = self.took.lock() {
            took.insert(plan.clone(), began.elapsed());
        }
        result
    }
}
