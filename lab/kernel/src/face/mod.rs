//! What workloads and schedulers see of the engine: handles to the state, and the traits that they
//! implement. They know no path of the kernel.

pub(crate) mod boot;
pub(crate) mod context;
pub(crate) mod scheduler;
