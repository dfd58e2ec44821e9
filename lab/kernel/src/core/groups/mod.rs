//! Groups of tasks as a tree, and their CPU time.

pub(crate) mod pool;
pub(crate) mod tree;
