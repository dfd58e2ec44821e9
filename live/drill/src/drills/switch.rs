//! The cost of a switch, counted in instructions.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::must;
use crate::report::{Drill, Failure, Outcome};
use crate::scheduler::{Scheduler, state};
use crate::switch_cost;
use crate::sys;
use crate::workers::wait_until;

pub const DRILLS: &[Drill] = &[Drill {
    name: "switch/cost",
    law: "with a switch, a write and a read of a pipe take at most 4.2 times as long as without",
    run: cost,
}];

fn measured() -> Result<f64, Failure> {
    switch_cost::ratio().map_err(|error| Failure(error.to_string()))
}

/// The same under scx_bpfland, if the guest has it.
fn beside() -> Result<String, Failure> {
    let started = Command::new("scx_bpfland")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut other) = started else {
        return Ok("scx_bpfland is not in this guest".to_owned());
    };
    wait_until(Duration::from_secs(60), || state() == "enabled");
    let cost = measured();
    sys::signal(other.id(), libc::SIGINT);
    let _ = other.wait();
    Ok(format!("scx_bpfland {:.2}", cost?))
}

fn cost() -> Result<Outcome, Failure> {
    let ours = {
        let _scheduler = Scheduler::start(&[])?;
        measured()?
    };
    let beside = beside()?;
    wait_until(Duration::from_secs(10), || state() == "disabled");
    let own = measured()?;
    must!(
        ours <= 4.2,
        "scx_warmq {ours:.2}, the kernel's own {own:.2}, {beside}"
    );
    Ok(Outcome::Holds(format!(
        "scx_warmq {ours:.2}, the kernel's own scheduler {own:.2}, {beside}"
    )))
}
