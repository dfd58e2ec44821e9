//! What workloads and schedulers see of the engine: handles to the state, and the traits that they
//! implement. They know no path of the kernel.

mod alarm;
mod boot;
mod context;
mod scheduler;

pub use self::{alarm::*, boot::*, context::*, scheduler::*};
