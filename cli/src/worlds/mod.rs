//! The worlds beside the laboratory: guests, and this machine. Both let `warmq-player` play, and
//! read the trace that it writes.

mod guest;
mod host;
pub mod kernels;
mod player;
pub mod programs;
mod scheduler;
mod tunables;

use std::sync::Arc;

use warmq_experiment::Engine;

/// `engine` with all worlds, and compiled schedulers by the names of their programs.
pub fn add(engine: Engine) -> Engine {
    engine
        .finding(programs::compiled)
        .with(Arc::new(guest::Guests::default()))
        .with(Arc::new(host::Host))
}
