//! Where our programs write.
//!
//! Purpose: every output of every program goes through here, so that one that runs as root replaces
//! and damages nothing but what it was asked to write.
//!
//! - [`Output`] is a file that is there whole or not at all, or a stream where the path leads to a
//!   device, a pipe or an open descriptor;
//! - [`Folder`] is a folder with one writer at a time;
//! - [`append`] opens a file that grows line by line;
//! - [`temporary_folder`] makes a folder that nobody else can look into;
//! - [`forget_unfinished`] removes what is unfinished before a process ends.
//!
//! The rules (docs/outputs.md says them to users):
//!
//! - Links are followed as a shell follows them, and a file beside the *target* is renamed to it.
//!   In a folder where everybody may make something (sticky, as /tmp) only what is ours, or the
//!   folder owner's, is touched and gone through: as with fs.protected_symlinks and
//!   fs.protected_regular of the kernel (may_follow_link() and may_create_in_sticky() in
//!   fs/namei.c), whatever these are set to, and folders too. To root, what belongs to the user who
//!   called sudo is ours.
//! - The folder is opened once, and all names are looked up in it, so that nobody can exchange it.

// Elsewhere it is empty, so that the command, which needs it, can say so.
#![cfg(target_os = "linux")]

mod folder;
mod lock;
mod mode;
mod output;
mod place;
mod refused;

pub use folder::{Folder, temporary_folder};
pub use output::{Access, Output, append, forget_unfinished};
pub use refused::Refused;
