//! The real programs: the run-queue walk on this machine's own caches.
//!
//! Purpose: to do on real hardware what the simulated machine does, with the same addresses, so
//! that both stand side by side. Only `live/` asks the host anything; nothing of the simulated
//! kernel is known here.
//!
//! - [`measure`]: the walk, vanilla and colored in turn ([`WalkSettings`] to [`WalkReport`]).
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
mod result;
mod settings;
mod simulate;
mod statistics;
mod thread;
mod timing;
mod walk;

pub use error::BenchError;
pub use geometry::Geometry;
pub use latency::{LatencyReport, LevelLatency, Translation, measure_latencies};
pub use layout::{HOT_OFFSET, Layout, list_order, needed_colors};
pub use pages::Backing;
pub use result::{Known, WalkFacts, WalkReport, WalkRow};
pub use settings::WalkSettings;
pub use simulate::{SimulatedWalk, simulate_walk};
pub use statistics::Spread;
pub use walk::{Progress, measure};
