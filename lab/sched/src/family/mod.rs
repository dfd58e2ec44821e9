//! What the schedulers of the Linux 2.4 family share: goodness, time slices, run lists, where a
//! task structure lies, and the search for an idle CPU.

pub(crate) mod goodness;
pub(crate) mod idle;
pub(crate) mod layout;
pub(crate) mod levels;
pub(crate) mod list;
pub(crate) mod slices;
pub(crate) mod state;
