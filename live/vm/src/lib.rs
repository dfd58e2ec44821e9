//! Boots a kernel in QEMU without root and runs a command in it.
//!
//! Purpose: to test a scheduler in another kernel than this machine's, with any number of
//! last-level caches. Only instructions are emulated, neither caches nor their times, so a guest
//! shows *that* something works and how often, never how fast.
//!
//! Key decision: the guest lives in memory. Its files are an archive that the kernel unpacks at
//! boot, its streams are socket pairs: no disk, no network, no privilege, nothing to clean up.
//!
//! Not here: what is done with the output.
//!
//! - [`Cache`]: kernels from a Debian mirror, downloaded once. [`Kernel`]: one from a file.
//! - [`Guest`]: the machine, its files, and [`Guest::run`]. [`Boots`]: machines that have booted.
//! - [`Outcome`]: how it ended.

// Elsewhere it is empty, so that the command, which needs it, can say so.
#![cfg(target_os = "linux")]

mod agreement;
mod apt;
mod boots;
mod cache;
mod console;
mod delay;
mod embedded;
mod error;
mod fetch;
mod guest;
mod hardware;
mod initramfs;
mod input;
mod kernel;
mod listing;
mod outcome;
mod pack;
mod qemu;
mod release;
mod shared;
mod tree;
mod watch;

pub use boots::Boots;
pub use cache::{Cache, user_folder};
pub use error::VmError;
pub use fetch::Step;
pub use guest::{Guest, Stage, ready};
pub use hardware::Hardware;
pub use kernel::Kernel;
pub use outcome::{Ending, Outcome};
pub use pack::find_on_host as program_on_path;
pub use watch::Streams;
