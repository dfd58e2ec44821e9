//! One run, and many of them in a few numbers.

use serde::Serialize;

use super::spread::Spread;
use super::usage::Usage;

/// What one run took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time on the clock in ns.
    pub elapsed_ns: u64,
    /// What was done, in the program's own unit.
    pub work: u64,
    /// CPU time and switches.
    pub usage: Usage,
}

impl Sample {
    /// Time on the clock in seconds.
    pub fn elapsed_s(&self) -> f64 {
        self.elapsed_ns as f64 / 1e9
    }

    /// Work per second.
    pub fn rate(&self) -> f64 {
        // A clock that has not moved is a clock of 1 ns.
        self.work as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}

/// The runs of one mode: median and spread of all that was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Runs.
    pub repetitions: u32,
    /// Time on the clock in seconds.
    pub elapsed_s: Spread,
    /// Work per second.
    pub work_per_s: Spread,
    /// CPU time in seconds, in the program and in the kernel.
    pub cpu_s: Spread,
    /// CPU time in the kernel in seconds.
    pub system_s: Spread,
    /// Switches because a thread waited.
    pub voluntary_switches: Spread,
    /// Switches because another task took the CPU.
    pub involuntary_switches: Spread,
}

impl Summary {
    /// Of all runs of one mode. `None` for none.
    pub fn of(samples: &[Sample]) -> Option<Summary> {
        let spread = |value: &dyn Fn(&Sample) -> f64| {
            let values: Vec<f64> = samples.iter().map(value).collect();
            Spread::of(&values)
        };
        Some(Summary {
            repetitions: samples.len() as u32,
            elapsed_s: spread(&Sample::elapsed_s)?,
            work_per_s: spread(&Sample::rate)?,
            cpu_s: spread(&|it| it.usage.cpu_ns() as f64 / 1e9)?,
            system_s: spread(&|it| it.usage.system_ns as f64 / 1e9)?,
            voluntary_switches: spread(&|it| it.usage.voluntary as f64)?,
            involuntary_switches: spread(&|it| it.usage.involuntary as f64)?,
        })
    }
}
