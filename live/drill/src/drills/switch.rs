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
    let cost = switch_cost::ratio();
    sys::signal(other.id(), libc::SIGINT);
    let _ = other.wait();
    Ok(format!("scx_bpfland {:.2}", cost?))
}

/// How often scx_warmq is loaded. Each time the kernel draws anew how it hashes the numbers of
/// dispatch queues (`rhashtable_init()`), and where ours collide a switch takes up to 50
/// instructions more.
const LOADS: u32 = 3;

/// The least of several loads.
fn ours() -> Result<f64, Failure> {
    (0..LOADS).try_fold(f64::INFINITY, |least, _| {
        let _scheduler = Scheduler::start(&[])?;
        Ok(least.min(switch_cost::ratio()?))
    })
}

fn cost() -> Result<Outcome, Failure> {
    let ours = ours()?;
    let beside = beside()?;
    wait_until(Duration::from_secs(10), || state() == "disabled");
    let own = switch_cost::ratio()?;
    must!(
        ours <= 4.2,
        "scx_warmq {ours:.2}, the kernel's own {own:.2}, {beside}"
    );
    Ok(Outcome::Holds(format!(
        "scx_warmq {ours:.2}, the kernel's own scheduler {own:.2}, {beside}"
    )))
}
