//! What a recording of this machine is of.

use warmq_record::{RunningKernel, running_scheduler};
use warmq_trace::Header;

use crate::failure::Failure;
use crate::machines;

/// The header of its trace.
///
/// # Errors
/// /sys does not describe this machine.
pub fn header() -> Result<Header, Failure> {
    let machine = machines::host()?;
    let kernel = RunningKernel::look();
    Ok(Header {
        world: "host".to_owned(),
        kernel: kernel.release,
        scheduler: running_scheduler(),
        clock: "monotonic".to_owned(),
        hz: kernel.hz,
        preemption: kernel.preemption,
        places: machine.cpus.iter().map(|cpu| (cpu.core, cpu.llc)).collect(),
        nodes: machine.nodes_of_cpus(),
        hardware: machine.to_toml().lines().map(str::to_owned).collect(),
        machine: machine.title,
        ..Header::default()
    })
}
