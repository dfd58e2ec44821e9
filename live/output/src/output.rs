//! Files that are there whole or not at all, and streams.

use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{Access as May, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::fs::{accessat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use crate::Refused;
use crate::folder::forget_taken;
use crate::lock::{Lock, sweep};
use crate::mode::{self, PRIVATE};
use crate::place::{self, Place, Target};

/// How the names of unfinished files end.
const UNFINISHED: &[u8] = b".unfinished";
/// Of a long name only so many bytes are in the names beside it, which may have 255 (NAME_MAX).
const MOST_OF_A_NAME: usize = 200;

/// Files that are being written, under their preliminary names. Whoever makes or removes such a
/// file, or its lock, holds this meanwhile: an interrupted process leaves none of them.
static ALL: Mutex<Vec<Arc<Unfinished>>> = Mutex::new(Vec::new());

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whoever could read the file in its place; of a new one, whoever the umask lets.
    Usual,
    /// Its owner: it shows what others do on this machine.
    Private,
}

/// What is written to a path: a file that has its name only once it is finished, and that leaves
/// nothing if it is dropped before; or a stream.
#[derive(Debug)]
pub struct Output {
    to: To,
}

#[derive(Debug)]
enum To {
    Stream,
    File {
        unfinished: Arc<Unfinished>,
        old: Option<Stat>,
        access: Access,
    },
}

impl Output {
    /// Begins what is to be at `path`, and hands out what to write to.
    ///
    /// # Errors
    /// The folder refuses; another process writes it; see [`Refused`].
    pub fn begin(path: &Path, access: Access) -> Result<(Output, File), Refused> {
        let (place, old) = match place::find(path)? {
            Target::Stream(file) => return Ok((Output { to: To::Stream }, file)),
            Target::File(place, old) => (place, old),
        };
        if old.is_some() {
            // A rename would replace a file that its owner wants to keep, too.
            accessat(&*place.folder, &place.name, May::WRITE_OK, AtFlags::EACCESS)?;
        }
        let (unfinished, file) = Unfinished::begin(place)?;
        let to = To::File {
            unfinished,
            old,
            access,
        };
        Ok((Output { to }, file))
    }

    /// Gives the file, which was `written` to its end, its name.
    ///
    /// # Errors
    /// It cannot be written to its end.
    pub fn finish(self, written: &File) -> Result<(), Refused> {
        let To::File {
            unfinished,
            old,
            access,
        } = &self.to
        else {
            return Ok(());
        };
        if *access == Access::Usual {
            mode::publish(written, old.as_ref());
        }
        written.sync_all()?;
        unfinished.take_name()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let To::File { unfinished, .. } = std::mem::replace(&mut self.to, To::Stream) {
            let mut all = all();
            unfinished.forget();
            all.retain(|other| !Arc::ptr_eq(other, &unfinished));
            drop(unfinished); // and its lock with it
        }
    }
}

/// A file under its preliminary name, beside the target.
#[derive(Debug)]
struct Unfinished {
    target: Place,
    name: OsString,
    lock: Lock,
    process: u32,
}

impl Unfinished {
    fn begin(target: Place) -> Result<(Arc<Unfinished>, File), Refused> {
        let mut all = all();
        let lock = Lock::take(&target.folder, &beside(&target, b".lock"))?;
        let (before, after) = (beside(&target, b"."), UNFINISHED);
        sweep(&target.folder, |name| {
            let middle = name
                .strip_prefix(before.as_bytes())
                .and_then(|rest| rest.strip_suffix(after));
            middle.is_some_and(|hex| hex.len() == 16 && hex.iter().all(u8::is_ascii_hexdigit))
        });
        let random = format!(".{:016x}", random());
        let name = beside(&target, &[random.as_bytes(), after].concat());
        let new =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(&target.folder, &name, new, PRIVATE)?);
        let process = std::process::id();
        let unfinished = Arc::new(Unfinished {
            target,
            name,
            lock,
            process,
        });
        all.push(unfinished.clone());
        Ok((unfinished, file))
    }

    fn take_name(&self) -> Result<(), Refused> {
        let Place { folder, name } = &self.target;
        match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => {
                return Err(Refused::Changed);
            }
            Ok(_) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        renameat(folder, &self.name, folder, name)?;
        synced(&self.target)
    }

    /// Removes it, unless it has its name, or belongs to the parent of this process.
    fn forget(&self) {
        if self.process == std::process::id() {
            let _ = unlinkat(&self.target.folder, &self.name, AtFlags::empty());
        }
    }
}

/// The name of a file that goes with `target`: `.NAME` and `end`.
fn beside(target: &Place, end: &[u8]) -> OsString {
    let name = target.name.as_bytes();
    let name = &name[..name.len().min(MOST_OF_A_NAME)];
    OsString::from_vec([b".", name, end].concat())
}

/// A number that nobody can guess: SipHash of nothing, by keys of the operating system's.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Has the folder of `place` written out. Where it cannot be opened or synced, as on some file
/// systems, that is not known to be needed.
fn synced(place: &Place) -> Result<(), Refused> {
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(opened) = openat(&place.folder, ".", folder, Mode::empty()) else {
        return Ok(());
    };
    match rustix::fs::fsync(opened) {
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Opens `path` to be written to at its end, and makes it where it is missing.
///
/// # Errors
/// The folder or the file refuses; see [`Refused`].
pub fn append(path: &Path) -> Result<File, Refused> {
    let place = match place::find(path)? {
        Target::Stream(file) => return Ok(file),
        Target::File(place, _) => place,
    };
    let flags =
        OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(
        &place.folder,
        &place.name,
        flags,
        Mode::from_bits_retain(0o666),
    )?;
    Ok(file.into())
}

/// Removes all that is unfinished, and the locks of folders, for a process that is about to end by
/// itself: whoever would begin or finish a file after that waits for the end of the process.
pub fn forget_unfinished() {
    forget_taken();
    let all = all();
    for unfinished in all.iter() {
        unfinished.forget();
        unfinished.lock.remove();
    }
    std::mem::forget(all);
}

fn all() -> MutexGuard<'static, Vec<Arc<Unfinished>>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}
