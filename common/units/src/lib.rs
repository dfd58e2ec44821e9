//! The words that every part of WarmQ speaks: time, cycles, bytes, ids, and seeded randomness.
//!
//! All of them are integers with a type of their own, so that what must not be mixed cannot be.
//! Simulated time is counted in picoseconds: every clock from 1 MHz to 1 THz has a period that is
//! close to a whole number of them, and a `u64` holds more than 200 days.
//!
//! ```
//! use warmq_units::{Cycles, Duration, Hertz, Seed};
//!
//! let clock = Hertz::from_khz(2_000_000);
//! assert_eq!(clock.time_of(Cycles(3_000)), Duration::from_ns(1_500));
//!
//! // Streams of one seed do not disturb each other, and are the same on every machine.
//! let (mut once, mut again) = (Seed(7).stream("arrivals"), Seed(7).stream("arrivals"));
//! assert_eq!(once.below(1_000), again.below(1_000));
//! ```

// Integers decide; floats only describe.
#![deny(clippy::float_arithmetic)]

/// The version of the lines and documents of JSON that WarmQ writes (docs/outputs.md): it changes
/// when a key that was there has another meaning, another type or is gone.
pub const JSON_SCHEMA: u32 = 1;

mod cpu_set;
mod decimal;
mod distribution;
mod id;
mod named;
mod printable;
mod random;
mod release;
mod size;
mod time;

pub use cpu_set::CpuSet;
pub use decimal::{thousandths, times};
pub use id::{CpuId, LockId, TaskId};
pub use printable::{Printable, is_printable, printable};
pub use random::{Seed, Stream};
pub use release::Release;
pub use size::{Address, Bytes, ParseBytesError};
pub use time::{Cycles, Duration, Hertz, Instant, ParseDurationError};
