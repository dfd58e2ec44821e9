//! sched_ext in the laboratory: a compiled scheduler runs as it is loaded into a kernel.
//!
//! ```text
//! let source = Source::read(&bytes, profile)?;                 // an object, and what its loader does
//! let loaded = source.load("7.3", &facts, variables)?;         // set, fitted to a kernel
//! let scheduler = SchedExt::attach(&loaded, attach, ..)?;      // a Scheduler of the lab
//! ```
//!
//! [`SchedExt`] is the kernel's part (kernel/sched/ext of Linux 7.3): dispatch queues, direct
//! dispatch, the masks of idle CPUs, kicks, slices, and the order of callbacks. What the program
//! decides, its own instructions decide, run by lab/bpf-run; each of its accesses to memory goes
//! through the simulated caches.
//!
//! Rules stand once, as `async fn` of an `Execution`: the laboratory's never waits, and that of
//! [`interleaved`] is interrupted and waits for locks.
//!
//! Different from a kernel:
//! - A callback is one piece: nothing else happens meanwhile, and what it writes is seen when it
//!   begins. Spin locks never wait. ([`interleaved`], for races, is the part where neither holds.)
//! - `ops.init`, `ops.exit` and programs that can sleep take no time.
//! - A task that is taken from another CPU's run queue needs that one's lock: its line is paid for,
//!   and nobody waits for it.
//! - A program that is ejected ends the run, with its reason. (A kernel goes on without it.)
//! - What the verifier refuses runs here.

#![deny(clippy::float_arithmetic)]
#![warn(missing_docs)]

mod again;
mod arena;
mod attach;
mod call;
mod callbacks;
mod cgroups;
mod events;
mod execution;
mod expenses;
mod facts;
mod ground;
mod here;
mod idle;
pub mod interleaved;
mod kfuncs;
mod kicks;
mod layout;
mod lines;
mod lives;
mod load;
mod masks;
mod option;
mod overload;
mod path;
mod pick;
mod profile;
mod profiler;
mod queue;
mod realtime;
mod restart;
mod run_queue;
mod state;
mod tasks;
mod text;
mod tracing;
mod variables;
mod words;

pub use attach::NotAttached;
pub use callbacks::SchedExt;
pub use expenses::Expenses;
pub use facts::{Facts, Place};
pub use load::{Loaded, NotLoaded, Source, Value, Variable, offer};
pub use profile::Profile;
pub use profiler::{Entered, Profiler, Spent};
pub use tracing::AtEvent;
pub use warmq_bpf::is_object;
