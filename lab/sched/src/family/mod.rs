//! What the schedulers of the Linux 2.4 family share: goodness, time slices, run lists, where
//! structures lie, and the search for a CPU.

pub(crate) mod directory;
pub(crate) mod globals;
pub(crate) mod goodness;
pub(crate) mod idle;
pub(crate) mod layout;
pub(crate) mod levels;
pub(crate) mod list;
pub(crate) mod scheduler;
pub(crate) mod slices;
pub(crate) mod state;

pub(crate) use state::settings;
