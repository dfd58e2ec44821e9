//! Folders: of results, with one writer at a time, and temporary ones.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::io::Errno;
use tempfile::TempDir;

use crate::Refused;
use crate::lock::Lock;
use crate::place::open_folder;

/// The lock of a folder, in it.
const LOCK: &str = ".warmq.lock";

/// A folder that no other process of ours writes to until this value is dropped.
#[derive(Debug)]
pub struct Folder {
    _lock: Arc<Lock>,
}

/// The locks of folders that are taken: an interrupted process leaves none of them.
static TAKEN: Mutex<Vec<Weak<Lock>>> = Mutex::new(Vec::new());

impl Folder {
    /// Takes the folder at `path`, which is made where it is missing.
    ///
    /// # Errors
    /// It cannot be made; another process writes to it.
    pub fn take(path: &Path) -> Result<Folder, Refused> {
        let opened = match open_folder(path) {
            Err(Refused::System(error))
                if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) =>
            {
                fs::create_dir_all(path)?;
                open_folder(path)
            }
            opened => opened,
        };
        let mut taken = taken();
        let _lock = Arc::new(Lock::take(&opened?, LOCK.as_ref())?);
        taken.push(Arc::downgrade(&_lock));
        Ok(Folder { _lock })
    }
}

/// Removes the locks of all folders, for a process that is about to end; see
/// [`forget_unfinished`](crate::forget_unfinished).
pub(crate) fn forget_taken() {
    let taken = taken();
    let locks = taken.iter().filter_map(Weak::upgrade);
    locks.for_each(|lock| lock.remove());
    std::mem::forget(taken);
}

fn taken() -> MutexGuard<'static, Vec<Weak<Lock>>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A temporary folder, whose name begins with `prefix`, that only its owner can look into.
///
/// # Errors
/// There is no room for one.
pub fn temporary_folder(prefix: &str) -> io::Result<TempDir> {
    let owner = Permissions::from_mode(0o700);
    let mut folder = tempfile::Builder::new();
    folder.prefix(prefix).permissions(owner).tempdir()
}
