//! What CFS and EEVDF have in common: the tree of entities that wait, and the class of real-time
//! tasks that runs before them.

pub(crate) mod realtime;
pub(crate) mod tree;
