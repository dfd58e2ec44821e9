//! Records of what happened on a machine: the vocabulary, and their digest.
//!
//! Purpose: one vocabulary, spoken by the simulator and by the recorder of real machines, so that
//! one code computes every figure of either. A meter is fed records and cannot tell whether they
//! are simulated.
//!
//! - [`Record`] says what can happen, [`Observer`] is told it;
//! - [`Digest`] makes one number of a whole run;
//! - [`Checker`] watches it for what no machine can do;
//! - [`mod@file`] writes a trace and reads it back;
//! - [`Perfetto`] writes one that the Perfetto UI shows;
//! - [`Table`] keeps something for each CPU, task or lock.

// Integers decide; floats only describe.
#![deny(clippy::float_arithmetic)]

#[cfg(test)]
mod arbitrary;
pub mod checker;
mod digest;
pub mod file;
mod perfetto;
mod record;
mod table;
mod words;

pub use checker::{Breach, Checker, Law, Violation};
pub use digest::Digest;
pub use perfetto::Perfetto;
pub use record::{Comm, Interrupt, Observer, Record};
pub use table::{Id, Table};
