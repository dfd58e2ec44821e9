//! Events in their order, and timers.

mod timeline;
mod timer;

pub use self::timeline::*;
pub(crate) use self::timer::*;
