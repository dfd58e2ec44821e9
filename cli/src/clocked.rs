//! Notes how long each run took, in real time.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use warmq_experiment::{Measured, Plan, RunError, Runner};

/// Hands everything on, and looks at the clock before and after each run.
pub struct Clocked<'a> {
    runner: &'a dyn Runner,
    took: Mutex<BTreeMap<Plan, Duration>>,
}

impl<'a> Clocked<'a> {
    /// Notes nothing yet.
    pub fn new(runner: &'a dyn Runner) -> Clocked<'a> {
        Clocked {
            runner,
            took: Mutex::default(),
        }
    }

    /// How long each plan took.
    pub fn into_took(self) -> BTreeMap<Plan, Duration> {
        self.took.into_inner().unwrap_or_default()
    }
}

impl Runner for Clocked<'_> {
    fn needs_quiet(&self, plan: &Plan) -> bool {
        self.runner.needs_quiet(plan)
    }

    fn simulate(&self, plan: &Plan) -> Result<Measured, RunError> {
        let began = Instant::now();
        let result = self.runner.simulate(plan);
        if let Ok(mut took) = self.took.lock() {
            took.insert(plan.clone(), began.elapsed());
        }
        result
    }
}
