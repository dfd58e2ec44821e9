//! Groups of tasks as a tree, and their CPU time.

mod pool;
mod tree;

pub(crate) use self::{pool::*, tree::*};
