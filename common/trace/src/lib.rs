//! Records of what happened on a machine: the vocabulary, and their digest.
//!
//! Purpose: one vocabulary for the simulator and for the recorder of real machines, so that the
//! same code computes every figure of both. A meter is fed records and cannot distinguish simulated
//! from recorded ones.
//!
//! - [`Record`] says what can happen, and an [`Observer`] is fed the records;
//! - [`Digest`] condenses a whole run into one number;
//! - [`Checker`] checks it against invariants that every machine obeys;
//! - [`Board`] says who runs, waits and sleeps meanwhile;
//! - [`mod@file`] writes a trace and reads it back;
//! - [`Perfetto`] writes one that the Perfetto UI shows;
//! - [`players`] names the processes that play scenarios;
//! - [`Table`] keeps something for each CPU, task or lock.
//!
//! ```
//! use warmq_trace::{Board, Doing, Record};
//! use warmq_units::{CpuId, Instant, TaskId};
//!
//! let (cpu, task) = (CpuId(0), TaskId(1));
//! let mut board = Board::of_a_run();
//! board.see(Instant(5), &Record::Wakeup { waker: cpu, task, target: cpu });
//! assert_eq!(board.doing(task), Doing::Waits(cpu));
//! let next = Some(task);
//! board.see(Instant(9), &Record::Switch { cpu, prev: None, prev_runnable: false, next });
//! assert_eq!(board.running(cpu), next);
//! ```

// Integers decide; floats only describe.
#![deny(clippy::float_arithmetic)]

mod allowed;
#[cfg(test)]
mod arbitrary;
mod board;
pub mod checker;
mod circumstance;
mod digest;
pub mod file;
mod groups;
mod header;
pub mod perfetto;
pub mod players;
mod quota;
mod record;
mod table;
mod who;
mod words;

pub use allowed::Allowed;
pub use board::{Block, Board, Doing, Ended, Stretch, Waking, Work};
pub use checker::{Breach, Checker, Promise, Queues, Violation};
pub use circumstance::{Cause, Context, Policy, State};
pub use digest::Digest;
pub use groups::{Group, Groups, Limit};
pub use header::{Account, Header, Names, OF_SCHEDULER, SpinlockNames};
pub use perfetto::Perfetto;
pub use quota::QuotaStat;
pub use record::{Comm, Interrupt, Observer, Record};
pub use table::{Id, Table};
pub use who::{Known, Who};
