//! Cache coloring as arithmetic: how many colors blocks need, and where the header of each goes.
//!
//! Blocks that are as large as a page or larger and begin (or end) with a few hot lines put all of
//! these lines into the same few sets of a cache. *Coloring* moves the hot lines of each block by a
//! number of lines, its color, so that they use other sets (Yamamura et al., USENIX 2002).
//!
//! Purpose: the paper's equations 1 and 3, once, for simulated kernels, for the measured walk and
//! for the library `warmq-color`. Key decision: integers only, no allocation besides
//! [`Spread`], no dependency, no operating system. It does not place anything: who owns the blocks
//! adds [`Coloring::offset`].

#![no_std]

extern crate alloc;

mod cache;
mod coloring;
mod equations;
mod spread;

pub use cache::{Cache, PAGE};
pub use coloring::{Blocks, Coloring, LAST_LEVEL};
pub use equations::{color_of, first_free_bit, needed_colors};
pub use spread::Spread;
