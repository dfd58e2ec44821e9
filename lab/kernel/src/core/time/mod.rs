//! Events in their order, and timers.

pub(crate) mod timeline;
pub(crate) mod timer;
