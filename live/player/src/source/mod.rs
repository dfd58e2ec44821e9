//! Sources: datagrams from outside the machine, sent here by processes of the player over loopback.
//!
//! One thread sends for all sources that do not say on which CPUs their datagrams arrive, and one
//! for each place that sources name. Each datagram is sent when it is due, whether or not the one
//! before was late: lateness does not lower the rate. A thread spins if it has a CPU that nobody
//! else may use; else it sleeps until a datagram is due, or an answer is there.

mod sender;
mod thread;
mod threads;

use std::sync::atomic::{AtomicU32, AtomicU64};

pub use thread::work;
pub use threads::{SenderThread, plan};

use crate::sys::memory::Shared;

/// The first bytes of a datagram: its number and the time of its sending, both little-endian.
pub type Stamp = [u8; 16];

/// What changes say of a source. Zero bytes: nothing yet. Only the controller writes.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Orders {
    /// Not zero while it is to leave out what is due.
    pub stopped: AtomicU32,
    /// How often its rate was set.
    pub turn: AtomicU32,
    /// When that was last, in nanoseconds of the monotonic clock.
    pub since_ns: AtomicU64,
    /// From one burst to the next since then, in picoseconds.
    pub gap: AtomicU64,
}

// SAFETY: atomics only.
#[allow(unsafe_code, reason = "it lies in memory that processes share")]
unsafe impl Shared for Orders {}
