//! The real programs, on this machine.
//!
//! Purpose: to do on real hardware what the simulated machine does, so that both stand side by
//! side. Nothing of the simulated kernel is known here.
//!
//! Not here: counters of the hardware (virtual machines have none), and the choice of what to show.
//!
//! - [`fragments`]: threads that never sleep and share data.
//! - [`chat`]: rooms of users who send messages through a server.
//! - [`simplex`]: CPU-bound work beside receivers of datagrams.
//! - [`compare`]: what the programs share: modes in turn, repetitions, what follows from them.
//! - [`measure`]: the walk, vanilla and colored in turn ([`WalkSettings`] to [`WalkReport`]).
//! - [`measure_latencies`]: what the levels take, for the simulated machine ([`LatencyReport`]).
//! - [`simulate_walk`]: the walk of a measured row on the simulated caches.
//! - [`Layout`], [`list_order`], [`needed_colors`]: the arithmetic, shared with the simulated walk.

pub mod chat;
pub mod compare;
mod error;
pub mod fragments;
pub mod simplex;
mod thread;
mod walk;

pub use compare::Spread;
pub use error::BenchError;
pub use walk::{
    Backing, Geometry, HOT_OFFSET, Known, LatencyReport, Layout, LevelLatency, Placement, Progress,
    Search, SimulatedWalk, Translation, Unknown, WalkFacts, WalkReport, WalkRow, WalkSettings,
    fit_by_size, list_order, measure, measure_latencies, needed_colors, simulate_walk,
};
