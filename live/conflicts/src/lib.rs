//! Which hot addresses of a process share the sets of which cache level, without counters.
//!
//! Purpose: to find the conflict that `warmq-color` cures, in programs as they are and on virtual
//! machines, which have no counters. Nothing of the process is stopped, traced or changed.
//!
//! Key decision: addresses are facts, sets are not always. Where the place in a page chooses the
//! set, what is held is one number; where physical addresses or a hashed index choose, it is a
//! range, and physical addresses that can be read give an estimate within.
//!
//! - [`Process`] is what /proc says: threads with their stack pointers, and [`Mapping`]s;
//!   `memory` finds control blocks and the tops of stacks that no thread is in, `unguarded` those
//!   that lie side by side in one mapping.
//! - [`Blocks`](UserBlocks), [`symbol`] and [`samples`] are addresses that the user names;
//!   [`hit_lines`] are those lines that samples hit.
//! - A [`Layout`] is addresses of one kind; [`Held`] is what a cache [`Level`] holds of them, and
//!   [`Frames`] are the physical pages behind them.
//!
//! Not here: how long visits take (`live/walk`), and what is shown (the command).

// Elsewhere it is empty, so that the command, which needs it, can say so.
#![cfg(target_os = "linux")]

mod blocks;
mod error;
mod held;
mod layout;
mod maps;
mod memory;
mod physical;
mod process;
mod samples;
mod symbol;
mod unguarded;

pub use blocks::{UserBlocks, UserSymbol};
pub use error::ConflictsError;
pub use held::{Held, Level, levels};
pub use layout::{Kind, Layout};
pub use maps::Mapping;
pub use physical::Frames;
pub use process::{Process, Thread};
pub use samples::{hit_lines, samples};
pub use symbol::symbol;
pub use warmq_coloring::PAGE;
