//! The real programs: the run-queue walk on this machine's own caches.
//!
//! Purpose: to do on real hardware what the simulated machine does, with the same addresses, so
//! that both stand side by side. Nothing of the simulated kernel is known here.
//!
//! Key decision: which sets of the cache a page uses is found out by measuring, because what a
//! virtual machine takes for a physical address says nothing of that. The simulated walk then
//! visits the same sets as the measured one.
//!
//! Not here: counters of the hardware (virtual machines have none), and the choice of what to show.
//!
//! - [`measure`]: the walk, vanilla and colored in turn ([`WalkSettings`] to [`WalkReport`]).
//! - [`measure_latencies`]: what the levels take, for the simulated machine ([`LatencyReport`]).
//! - [`simulate_walk`]: the walk of a measured row on the simulated caches.
//! - [`Layout`], [`list_order`], [`needed_colors`]: the arithmetic, shared with the simulated walk.

mod arena;
mod error;
mod evict;
mod geometry;
mod groups;
mod latency;
mod layout;
mod pages;
mod placement;
mod prober;
mod result;
mod settings;
pub mod simplex;
mod simulate;
mod statistics;
mod thread;
mod timing;
mod translation;
mod walk;

pub use error::BenchError;
pub use geometry::Geometry;
pub use latency::{LatencyReport, LevelLatency, measure_latencies};
pub use layout::{HOT_OFFSET, Layout, list_order, needed_colors};
pub use pages::Backing;
pub use result::{Known, WalkFacts, WalkReport, WalkRow};
pub use settings::WalkSettings;
pub use simulate::{SimulatedWalk, simulate_walk};
pub use statistics::Spread;
pub use translation::Translation;
pub use walk::{Progress, measure};
