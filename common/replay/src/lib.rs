//! What a trace recorded, as a scenario that can be played again under another scheduler or on
//! another machine.
//!
//! Purpose: [`Taker`] goes through records once and keeps of each task when it computed, for how
//! long, what it waited for and whom it woke. [`Taken::scenario`] writes that as a scenario in
//! TOML, which is one like any other: it can be read, changed and run. [`Meter`] measures the same
//! of a recording and of its replay, so that they stand beside each other.
//!
//! Key decision: who woke whom is all that a trace shows of how tasks depend on each other. So
//! whoever woke a task posts, at the same point of its own computing, to an object that the other
//! waits for. When that happens, how long tasks wait for a CPU and who preempts whom, is left to
//! the scheduler that plays it. What arrives from outside the machine, and timers, keep their
//! times. A task that several others wake does for each of them what it did for it, in the order in
//! which they come.
//!
//! Tasks that ask and answer each other are the one case in which more is known than who was woken:
//! an answer that found the asker awake is not recorded, but was there before the next question
//! (`loops.rs`). Other dependences that never made a task sleep (a lock that was free) are not in a
//! trace, and not in the scenario. Not here: how a scenario is read or played.

// Integers decide; floats only describe.
#![deny(clippy::float_arithmetic)]

mod cpu;
mod differs;
mod loops;
mod meter;
mod missing;
mod row;
mod scenario;
mod taken;
mod taker;
mod task;
#[cfg(test)]
mod tests;

pub use differs::{Difference, Figure};
pub use meter::{Figures, Line, Meter, beside};
pub use missing::Missing;
pub use scenario::Shape;
pub use taken::Taken;
pub use taker::Taker;
