//! Recordings of kernels, whoever made them, as the records of `warmq_trace`.
//!
//! Purpose: people bring perf.data, trace.dat, traces of Perfetto, or text that tracefs, trace-cmd
//! or perf printed. Each format is read as what a kernel says ([`event`]); one model of the machine
//! ([`convert`]) makes records of it, the same for all of them and for WarmQ's own recorder.
//!
//! - [`Recorded`] opens a file by what is in it, and [`Records`] are its records;
//! - [`Touched`] is an address of data that a profile of perf has;
//! - [`Contents`] says what a recording has, so that nobody judges by what it has not;
//! - [`Recording`] is what WarmQ's own recorder keeps: the kernel's pages as they are;
//! - [`Tasks`] says which thread is which task.
#![deny(clippy::float_arithmetic)]

mod contents;
mod convert;
mod damage;
mod decode;
mod event;
mod foreign;
mod format;
mod input;
mod machine;
mod merge;
mod open;
mod order;
pub mod page;
mod paths;
mod perf;
mod perfetto;
pub mod recording;
mod records;
mod source;
mod tasks;
mod text;
mod trace_dat;
mod tracing_data;
mod unpack;

pub use contents::{Contents, Kind};
pub use convert::VECTORS;
pub use damage::Damage;
pub use foreign::Foreign;
pub use open::{Recorded, records_of};
pub use order::Order;
pub use perf::Touched;
pub use recording::{Damaged, Recording};
pub use records::{Records, Unreadable};
pub use tasks::Tasks;
