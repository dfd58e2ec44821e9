//! The program of a scheduler, as a guest gets it.
//!
//! A scheduler of sched_ext is started by its program, which keeps it loaded for as long as it
//! lives. An object alone has none: it is packed with what its loader does (its profile, computed
//! for the guest's CPUs) into a file that the guest starts as a script of `warmq-attach`.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use warmq_experiment::Play;
use warmq_vm::Guest;

use super::guest::Refusal;
use super::programs::{self, file_name};

/// What starts compiled schedulers that are objects alone, and where a guest finds it.
const LOADER: &str = "warmq-attach";
const LOADER_IN_GUEST: &str = "/bin/warmq-attach";

/// The program of a scheduler for a guest.
pub struct Program {
    /// As it was found.
    pub file: PathBuf,
    /// If that is an object alone: in a file with what its loader does, for ours.
    packed: Option<NamedTempFile>,
}

impl Program {
    /// That of the scheduler `name`, for a kernel of a series; none of the kernel's own.
    ///
    /// # Errors
    /// It is not found, or it needs what our loader does not do.
    pub fn of(request: &Play<'_>, name: &str, series: &str) -> Result<Option<Program>, Refusal> {
        let found = programs::scheduler(name).map_err(Refusal::Program)?;
        let Some(file) = found else {
            return Ok(None);
        };
        let packed = request.packed(name, LOADER_IN_GUEST, series);
        let packed = packed.map_err(|error| Refusal::Program(error.what))?;
        let packed = packed.map(|bytes| temporary(&bytes, 0o755)).transpose()?;
        Ok(Some(Program { file, packed }))
    }

    /// Whether it has such options.
    ///
    /// # Errors
    /// An object has none.
    pub fn takes(&self, options: &str) -> Result<(), Refusal> {
        match self.packed.is_some() && !options.is_empty() {
            true => Err(Refusal::Program(format!(
                "{} is an object alone and has no options: set its variables, as in --scheduler \
                 FILE:NAME=VALUE",
                file_name(&self.file)
            ))),
            false => Ok(()),
        }
    }

    /// Puts it into a guest, there as `name`.
    ///
    /// # Errors
    /// Our loader is not found.
    pub fn give(&self, guest: Guest, name: &str) -> Result<Guest, Refusal> {
        let Some(packed) = &self.packed else {
            return Ok(guest.file_at(&self.file, name));
        };
        let loader = programs::ours(LOADER).map_err(Refusal::Program)?;
        let guest = guest.file_at(loader, LOADER_IN_GUEST);
        Ok(guest.file_at(packed.path(), name))
    }
}

/// A file of these bytes, for as long as it is kept.
///
/// # Errors
/// It cannot be written.
pub fn temporary(bytes: &[u8], mode: u32) -> std::io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .permissions(Permissions::from_mode(mode))
        .tempfile()?;
    file.write_all(bytes).map(|()| file)
}

/// Where a guest finds the program of a scheduler.
pub fn in_guest(program: &Path) -> String {
    format!("/bin/{}", file_name(program))
}
