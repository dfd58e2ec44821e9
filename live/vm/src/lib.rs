//! Boots a kernel in QEMU without root and runs a command in it.
//!
//! Purpose: a kernel that this machine does not run, with as many last-level caches as wanted, to
//! try a scheduler in. What is emulated are instructions: there are no caches in it and no true
//! time, so a guest shows *that* something works and how often, never how fast.
//!
//! Key decision: the guest lives in memory. Its files are an archive that the kernel unpacks at
//! boot, its streams are socket pairs: no disk, no network, no privilege, nothing to clean up.
//!
//! Not here: what is done with the output.
//!
//! - [`Cache`]: kernels from a Debian mirror, downloaded once. [`Kernel`]: one from a file.
//! - [`Guest`]: the machine, its files, and [`Guest::run`].
//! - [`Outcome`]: what came of it.

mod apt;
mod cache;
mod console;
mod embedded;
mod error;
mod fetch;
mod guest;
mod hardware;
mod initramfs;
mod kernel;
mod listing;
mod outcome;
mod pack;
mod qemu;
mod release;
mod shared;
mod tree;
mod watch;

pub use cache::Cache;
pub use error::VmError;
pub use fetch::Step;
pub use guest::{Guest, Stage, ready};
pub use hardware::Hardware;
pub use kernel::Kernel;
pub use outcome::{Ending, Outcome};
pub use pack::find_on_host as program_on_path;
pub use watch::Streams;
