//! A tracing instance of our own: buffers and switches that nobody else uses.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::RecordError;
use crate::tracefs::{Folder, Tracefs};

/// Instances of ours are named after their process.
const PREFIX: &str = "warmq-";
/// How often removing is tried while the kernel still lets go of buffers.
const TRIES: u32 = 50;

/// An instance, which is removed when dropped.
///
/// Whoever made one holds a lock on its folder, so that one whose owner was killed differs from one
/// that is in use: process ids come back, locks end with their process.
pub(crate) struct Instance {
    folder: Folder,
    owner: u32,
    _lock: File,
    // Dropped last: the folder is reached through it.
    tracefs: Tracefs,
}

impl Instance {
    /// Makes one, and removes those whose owners are gone.
    ///
    /// # Errors
    /// What the system refused.
    pub fn make(tracefs: Tracefs) -> Result<Instance, RecordError> {
        let all = tracefs.folder("instances");
        sweep(&all)?;
        static MADE: AtomicU32 = AtomicU32::new(0);
        let owner = std::process::id();
        loop {
            let name = match MADE.fetch_add(1, Ordering::Relaxed) {
                0 => format!("{PREFIX}{owner}"),
                more => format!("{PREFIX}{owner}-{more}"),
            };
            match fs::create_dir(all.path(&name)) {
                Ok(()) => {}
                // Another process of that number, as of another container, has it.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(RecordError::of("make", &all.shown(&name))(error)),
            }
            let folder = all.folder(&name);
            // Whoever sweeps in this moment may find it unlocked, and remove it.
            if let Some(lock) = locked(&folder)? {
                return Ok(Instance {
                    folder,
                    owner,
                    _lock: lock,
                    tracefs,
                });
            }
        }
    }

    /// Its files.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The files that all instances share.
    pub fn shared(&self) -> Folder {
        self.tracefs.folder("")
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // A forked child has a copy of this value, but the instance is not its own.
        if std::process::id() == self.owner {
            remove(&self.folder);
        }
    }
}

/// The lock of a folder, or `None` if the folder is gone.
fn locked(folder: &Folder) -> Result<Option<File>, RecordError> {
    let file = match File::open(folder) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(RecordError::of("open", &folder.shown(""))(error)),
    };
    file.lock()
        .map_err(RecordError::of("lock", &folder.shown("")))?;
    Ok(folder.has("tracing_on").then_some(file))
}

/// Removes what killed recorders left behind: their tracing instances.
///
/// # Errors
/// As [`crate::Recorder::start`].
pub fn sweep_now() -> Result<(), RecordError> {
    sweep(&Tracefs::open()?.folder("instances"))
}

/// Removes the instances whose owners are gone.
fn sweep(all: &Folder) -> Result<(), RecordError> {
    for name in all.names()?.iter().filter(|name| name.starts_with(PREFIX)) {
        let folder = all.folder(name);
        // Another process may remove it at the same time.
        let Ok(file) = File::open(&folder) else {
            continue;
        };
        // The lock is held until it is gone: its owner may be about to take it.
        if file.try_lock().is_ok() {
            remove(&folder);
        }
    }
    Ok(())
}

/// Removes an instance. The kernel refuses while anybody reads its buffers, who may be about to
/// stop; one that stays is swept by the next start.
fn remove(folder: &Folder) {
    for _ in 0..TRIES {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            _ => return,
        }
    }
}
