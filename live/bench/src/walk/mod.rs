//! The walk over the lines of a run queue, on this machine's own caches.
//!
//! Key decision: which sets of the cache a page uses is found out by measuring, because what a
//! virtual machine takes for a physical address says nothing of that. The simulated walk then
//! visits the same sets as the measured one.

mod arena;
mod evict;
mod geometry;
mod groups;
mod latency;
mod layout;
mod measure;
mod pages;
mod placement;
mod prober;
mod result;
mod settings;
mod simulate;
mod timing;
mod translation;

pub use geometry::Geometry;
pub use latency::{LatencyReport, LevelLatency, measure_latencies};
pub use layout::{HOT_OFFSET, Layout, list_order, needed_colors};
pub use measure::{Progress, measure};
pub use pages::Backing;
pub use result::{Known, WalkFacts, WalkReport, WalkRow};
pub use settings::WalkSettings;
pub use simulate::{SimulatedWalk, simulate_walk};
pub use translation::Translation;
