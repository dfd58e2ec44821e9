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
//! - [`Kernel`]: a kernel from a file.
//! - [`Guest`]: the machine, its files, and [`Guest::run`].
//! - [`Outcome`]: what came of it.

mod console;
mod error;
mod guest;
mod hardware;
mod initramfs;
mod kernel;
mod outcome;
mod pack;
mod qemu;
mod shared;
mod tree;
mod watch;

pub use error::VmError;
pub use guest::{Guest, Stage};
pub use kernel::Kernel;
pub use outcome::{Ending, Outcome};
pub use watch::Streams;
