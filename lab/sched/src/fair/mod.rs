//! What CFS and EEVDF have in common: the tree of entities that wait, and the spans of scheduling
//! domains; and the domains by which O(1) and CFS balance.

pub(crate) mod domains;
pub(crate) mod spans;
pub(crate) mod tree;
