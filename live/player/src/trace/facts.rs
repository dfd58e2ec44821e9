//! Where a run was played: machine, kernel, scheduler.

use std::fs;

use warmq_record::RunningKernel;
use warmq_trace::{Header, Names};

/// The header of a trace. Facts that the system does not tell are empty.
pub fn header(world: &str, scheduler: &str, names: Names) -> Header {
    let kernel = RunningKernel::look();
    Header {
        world: world.to_owned(),
        machine: machine(),
        scheduler: scheduler.to_owned(),
        clock: "monotonic".to_owned(),
        hz: kernel.hz,
        preemption: kernel.preemption,
        kernel: kernel.release,
        names,
        // Whoever reads the trace knows the machine.
        ..Header::default()
    }
}

/// What the processor calls itself, and how many CPUs there are.
fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |line: &str| {
        Some(
            line.strip_prefix("model name")?
                .split_once(':')?
                .1
                .trim()
                .to_owned(),
        )
    };
    let model = info.lines().find_map(field);
    let cpus = info
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    format!("{}, {cpus} CPUs", model.as_deref().unwrap_or("a machine"))
}
