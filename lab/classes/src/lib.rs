//! What runs before the tasks of a scheduler: the class of real-time tasks, and the deadline
//! server that gives the others a part of the CPU all the same.
//!
//! Purpose: one form of both for the kernels' own schedulers and for compiled ones of sched_ext.
//! Arithmetic and queues only: who calls them has tasks, clocks and timers.

// Integers decide; floats only describe.
#![deny(clippy::float_arithmetic)]

mod realtime;
mod server;

pub use realtime::RealTime;
pub use server::{IdleTime, Reservation, Server};
