//! CPU-bound tasks: the plainest load there is.

use warmq_config::{Chosen, Setting};
use warmq_kernel::{Boot, Task, TaskSpec, Workload};
use warmq_machine::OutOfMemory;
use warmq_units::Cycles;

use crate::counter::{Counter, Counters};

pub(crate) fn settings() -> Vec<Setting> {
    vec![
        Setting::count("tasks", (1, 100_000), 8, "tasks").says("how many tasks", "ours"),
        Setting::count("burst", (1, 1_000_000_000), 500_000, "cycles").says(
            "work between two points at which a task counts its progress",
            "ours",
        ),
    ]
}

pub(crate) struct Spin {
    tasks: u64,
    burst: Cycles,
    bursts: Counter,
}

impl Spin {
    pub(crate) fn new(chosen: &Chosen, counters: &Counters) -> Spin {
        Spin {
            tasks: chosen.count("tasks"),
            burst: Cycles(chosen.count("burst")),
            bursts: counters.counter("bursts"),
        }
    }
}

impl Workload for Spin {
    fn start(&self, boot: &mut Boot<'_>) -> Result<(), OutOfMemory> {
        for number in 0..self.tasks {
            let (burst, bursts) = (self.burst, self.bursts.clone());
            let mm = boot.mm();
            let spec = TaskSpec::new(&format!("spin{number}"), Some(mm));
            boot.task(spec, move |task: Task| async move {
                loop {
                    task.compute(burst).await;
                    bursts.add(1);
                }
            })?;
        }
        Ok(())
    }
}
