//! Colored stacks for fibers and threads, and colored arenas: hot lines that share no cache sets.
//!
//! A fiber that is switched to touches the top of its stack. Stacks begin at pages, so that the
//! tops of all stacks lie in the same few sets of a cache: of a level 1 with 64 sets and 8 ways,
//! eight fibers use up what they can reach, and all others miss. The same is true of anything that
//! keeps a hot header at the same place of page-aligned blocks. The cure is old (Yamamura et al.,
//! USENIX 2002): give each block a *color*, and move its header by so many lines.
//!
//! - [`Pool`]: stacks for fibers, with guard pages. Feature `corosensei` makes a [`Stack`] one of
//!   that crate's; `warmq_color.hpp` is the same for Boost.Context.
//! - [`Arena`]: blocks of a page or more that begin with a hot header, by [`Id`].
//! - [`threads`]: threads whose stacks and control blocks are colored; for programs that cannot be
//!   changed, `libwarmq_color_threads.so` does the same.
//! - [`coloring`]: equations 1 and 3, without an operating system.
//! - [`machine::caches`]: the data caches of this machine.
//!
//! It has no dependency but [`coloring`], which is ours and has none. `docs/coloring.md` says what
//! it gains, where the gain ends, and what it costs.

// Stacks are mapped as Linux does it; elsewhere the crate is empty.
#![cfg(target_os = "linux")]

pub mod arena;
mod error;
pub mod machine;
mod pool;
mod system;
pub mod threads;

#[cfg(feature = "corosensei")]
mod corosensei;

pub use arena::{Arena, Id};
pub use error::Error;
pub use pool::{Options, Pool, Stack};
pub use warmq_coloring as coloring;
