//! The walk over the lines of a run queue, on this machine's own caches.
//!
//! Purpose: to do on real hardware what the simulated machine does, so that both stand side by
//! side. Nothing of the simulated kernel is known here.
//!
//! Key decision: which sets of the cache a line uses is found out by timing, because no address
//! that a program or a virtual machine can read shows them. What depends on what:
//!
//! - [`settings`], [`layout`] and [`geometry`] are arithmetic; [`arena`] is the memory and the ring
//!   of pointers through it, [`timing`] times a walk of it.
//! - [`latency`] measures what the levels take, on chains of its own; [`transfer`] what a line
//!   takes from one CPU to another; [`calls`] what a system call takes, [`mod@gaps`] what takes a
//!   CPU away.
//! - [`sets`] finds out which lines share a set, by questions alone; [`evict`] answers them on the
//!   real cache, with the latencies for a scale; [`placement`] puts both together and is what the
//!   rest knows of sets: found, or unknown.
//! - [`mod@measure`] walks blocks whose sets are known where that is possible; [`simulate`] does
//!   the same walk on simulated caches with the same placement. Where that is unknown, it does it
//!   twice, with the best and the worst that is possible, and says nothing in between.
//!
//! - [`visits`] is a walk over the lines of another program, as they lie in its pages: the same
//!   simulated caches, and the same timing on copies.
//! - [`fibers`] are fibers that run in turn, on plain and on colored stacks, and their lines as
//!   visits.
//!
//! Not here: counters of the hardware (virtual machines have none), and the choice of what to show.

// Elsewhere it is empty, so that the command, which needs it, can say so.
#![cfg(target_os = "linux")]

mod arena;
mod calls;
mod error;
mod evict;
mod fibers;
mod gaps;
mod geometry;
mod latency;
mod layout;
mod measure;
mod pages;
mod placement;
mod prober;
mod result;
mod sets;
mod settings;
mod simulate;
mod spread;
mod thread;
mod timing;
mod transfer;
mod translation;
mod visits;

pub use calls::system_call_ns;
pub use error::WalkError;
pub use fibers::{FiberRow, FiberSettings, measure_fibers};
pub use gaps::{Gap, Gaps, gaps};
pub use geometry::Geometry;
pub use latency::{LatencyReport, LevelLatency, measure_latencies};
pub use layout::{HOT_OFFSET, Layout, list_order};
pub use measure::{Progress, measure};
pub use pages::Backing;
pub use placement::{Known, Placement, Search};
pub use result::{WalkFacts, WalkReport, WalkRow};
pub use sets::Unknown;
pub use settings::WalkSettings;
pub use simulate::{SimulatedWalk, simulate_walk};
pub use spread::Spread;
pub use thread::allowed_cpus;
pub use transfer::transfer_ns;
pub use translation::Translation;
pub use visits::{SimulatedVisits, Visits, measure_visits};
