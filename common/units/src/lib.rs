//! The words that every part of WarmQ speaks: time, cycles, bytes, ids, and seeded randomness.
//!
//! All of them are integers with a type of their own, so that what must not be mixed cannot be.
//! Simulated time is counted in picoseconds: every clock from 1 MHz to 1 THz has a period that is
//! close to a whole number of them, and a `u64` holds more than 200 days.

// Integers decide; floats only describe.
#![deny(clippy::float_arithmetic)]

mod cpu_set;
mod decimal;
mod distribution;
mod id;
mod printable;
mod random;
mod size;
mod time;

pub use cpu_set::CpuSet;
pub use decimal::{thousandths, times};
pub use id::{CpuId, LockId, TaskId};
pub use printable::{Printable, is_printable, printable};
pub use random::{Seed, Stream};
pub use size::{Address, Bytes, ParseBytesError};
pub use time::{Cycles, Duration, Hertz, Instant, ParseDurationError};
