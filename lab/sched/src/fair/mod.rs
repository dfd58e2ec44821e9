//! What CFS and EEVDF have in common: the tree of entities that wait, the class of real-time tasks
//! that runs before them, and the spans of scheduling domains.

pub(crate) mod realtime;
pub(crate) mod server;
pub(crate) mod spans;
pub(crate) mod tree;
