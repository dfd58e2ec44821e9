//! What runs before the tasks of a scheduler: the classes of deadline and of real-time tasks, and
//! the deadline server, or before 6.12 the throttling, that gives the others a part of the CPU.
//!
//! Purpose: one form of these for the kernels' own schedulers and for compiled ones of sched_ext.
//! Arithmetic and queues, and which CPU a task goes to ([`Overload`]): who calls them has tasks,
//! clocks and timers.
//!
//! ```
//! use warmq_classes::{IdleTime, Reservation, Server};
//!
//! // 50 ms in each second for fair tasks, beside real-time tasks that never sleep.
//! let mut server = Server::new(Reservation {
//!     runtime: 50_000_000,
//!     period: 1_000_000_000,
//!     idle: IdleTime::default(),
//! });
//! server.start(0);
//! assert!(!server.serves(), "it waits for as long as it can");
//! assert_eq!(server.due(), Some(950_000_000), "the last moment at which 50 ms are left");
//! ```

// Integers decide; floats only describe.
#![deny(clippy::float_arithmetic)]

mod cbs;
mod entity;
mod overload;
mod rank;
mod server;
mod task;
mod throttle;
mod urgent;

pub use cbs::Joining;
pub use overload::Overload;
pub use rank::Rank;
pub use server::{IdleTime, Reservation, Server};
pub use task::TaskClass;
pub use throttle::Throttle;
pub use urgent::Urgent;
