//! What CFS and EEVDF have in common: the tree of entities that wait, and the spans of scheduling
//! domains.

pub(crate) mod spans;
pub(crate) mod tree;
