//! What a running kernel says (tracefs, or BPF in `live/record-bpf`), as the same records as the
//! lab gives.
//!
//! Purpose: to record a real run so that the same meters compute its figures as those of a
//! simulated one.
//!
//! Key decision: the kernel's pages are kept as they are, with the formats that the kernel printed
//! beside them, and are read only after the run. So recording costs one copy of a page now and
//! then, a recording can be saved and read on another machine, and the reader can be tested and
//! fuzzed without a kernel.
//!
//! Not here: why a task sleeps, which no tracepoint says ([`warmq_trace::Cause::Unknown`]), and
//! what a scenario's player does.
//!
//! - [`Recorder`] records; it has a tracing instance of its own and disturbs no other user of
//!   tracefs. [`Wanted`] says what.
//! - [`Gatherer`] makes a recording of events that another recorder wrote.
//! - [`Recording`] is the result of either; [`Recording::records`] reads it.
//! - [`Tasks`] says which thread is which task.
//! - [`Snapshot`] says what no event has of tasks: groups, nice values, policies, affinity.
//! - [`RunningKernel`] says what kernel that is, and [`Mounts`] in which cgroups this process is.
//! - [`sweep_now`] removes what killed recorders left behind.
//!
//! Only little-endian machines are supported.

// Elsewhere it is empty, so that the command, which needs it, can say so.
#![cfg(target_os = "linux")]

mod beside;
mod error;
mod events;
mod gather;
mod instance;
mod kernel;
mod lines;
mod mounts;
mod proc;
mod reader;
mod recorder;
mod snapshot;
mod tracefs;
mod trips;
mod wall;

pub use error::RecordError;
pub use events::Wanted;
pub use gather::Gatherer;
pub use instance::sweep_now;
pub use kernel::{RunningKernel, running_scheduler, sessions_obstacle};
pub use mounts::{Mount, Mounts};
pub use proc::busy_ns;
pub use reader::prefer_this_thread;
pub use recorder::Recorder;
pub use snapshot::{QuotaStat, Snapshot, quota_in, see_all_groups, throttled_in};
pub use trips::{EVENTS_A_TRIP, trip_ns};
pub use wall::{cpu_time_ns, monotonic_ns};
pub use warmq_recordings::{Recording, Tasks, VECTORS};
