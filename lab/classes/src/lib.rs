//! What runs before the tasks of a scheduler: the class of real-time tasks, and the deadline
//! server that gives the others a part of the CPU all the same.
//!
//! Purpose: one form of both for the kernels' own schedulers and for compiled ones of sched_ext.
//! Arithmetic and queues only: who calls them has tasks, clocks and timers.

// Integers decide; floats only describe.
#![deny(clippy::float_arithmetic)]

mod overload;
mod realtime;
mod server;

pub use overload::{NO_PRIORITY, Waiter, looks_elsewhere, lowest, pulls, to_pull};
pub use realtime::RealTime;
pub use server::{IdleTime, Reservation, Server};
