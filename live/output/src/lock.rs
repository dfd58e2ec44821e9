//! One writer at a time.
//!
//! A lock is an empty file beside what is written, locked by flock(2), so that it ends with its
//! process, however that dies. Nothing is ever written to it: it may be a file that somebody
//! planted.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::fs::{openat, statat, unlinkat};
use rustix::io::Errno;
use warmq_units::printable;

use crate::Refused;

/// A lock that is held until this value is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    folder: Arc<OwnedFd>,
    name: OsString,
    // Its lock ends with it.
    _file: File,
    process: u32,
}

impl Lock {
    /// Takes the lock `name` in `folder`.
    ///
    /// # Errors
    /// Another process holds it; the folder refuses.
    pub fn take(folder: &Arc<OwnedFd>, name: &OsStr) -> Result<Lock, Refused> {
        loop {
            let file = open(folder, name)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(Refused::Busy(holder(&file))),
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
            // Whoever held it may have removed its name before we had it.
            if is_at(&file, folder, name)? {
                return Ok(Lock {
                    folder: folder.clone(),
                    name: name.to_owned(),
                    _file: file,
                    process: std::process::id(),
                });
            }
        }
    }

    /// Removes its name, while it is held.
    pub fn remove(&self) {
        // A child that was forked has the lock of its parent.
        if self.process == std::process::id() {
            let _ = unlinkat(&self.folder, &self.name, AtFlags::empty());
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.remove();
    }
}

fn open(folder: &OwnedFd, name: &OsStr) -> Result<File, Refused> {
    let flags =
        OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let owner = Mode::RUSR | Mode::WUSR;
    loop {
        // Without O_CREAT the kernel opens what another user left in /tmp, too.
        match openat(folder, name, flags, owner) {
            Err(Errno::NOENT) => {}
            Err(Errno::LOOP) => return Err(planted(folder, name)?),
            opened => return Ok(opened?.into()),
        }
        match openat(folder, name, flags | OFlags::CREATE | OFlags::EXCL, owner) {
            Err(Errno::EXIST) => {}
            made => return Ok(made?.into()),
        }
    }
}

/// No lock of ours is a link.
fn planted(folder: &OwnedFd, name: &OsStr) -> Result<Refused, Refused> {
    let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let (what, uid) = ("a link (where its lock would be)", stat.st_uid);
    Ok(Refused::Planted { what, uid })
}

fn is_at(file: &File, folder: &OwnedFd, name: &OsStr) -> Result<bool, Refused> {
    let held = file.metadata()?;
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(Stat { st_dev, st_ino, .. }) => Ok((st_dev, st_ino) == (held.dev(), held.ino())),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Who holds the lock of `file`: `process 4711 (warmq)`.
fn holder(file: &File) -> Option<String> {
    let inode = file.metadata().ok()?.ino().to_string();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let pid = locks.lines().find_map(|line| pid_of(line, &inode))?;
    let comm = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    let comm = String::from_utf8_lossy(comm.trim_ascii_end()).into_owned();
    Some(format!("process {pid} ({})", printable(&comm)))
}

/// The process of a line of /proc/locks (`1: FLOCK  ADVISORY  WRITE 4711 08:02:13 0 EOF`), if it
/// holds a lock of this inode.
fn pid_of<'l>(line: &'l str, inode: &str) -> Option<&'l str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "FLOCK", _, _, pid, place, ..] = words[..] else {
        return None;
    };
    (place.rsplit(':').next() == Some(inode)).then_some(pid)
}

/// Removes files of ours whose names begin and end so. The lock is held, so that their writers are
/// dead.
pub(crate) fn sweep(folder: &OwnedFd, is_left: impl Fn(&[u8]) -> bool) {
    // A folder that cannot be listed keeps them.
    let listed = openat(
        folder,
        ".",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    );
    let Ok(entries) = listed.and_then(rustix::fs::Dir::new) else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        if is_left(name.to_bytes())
            && let Ok(stat) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
            && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && stat.st_uid == rustix::process::geteuid().as_raw()
        {
            let _ = unlinkat(folder, name, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_the_one_of_that_inode_who_does_not_wait() {
        let line = "1: FLOCK  ADVISORY  WRITE 4711 08:02:13 0 EOF";
        assert_eq!(pid_of(line, "13"), Some("4711"));
        assert_eq!(pid_of(line, "3"), None);
        assert_eq!(
            pid_of("1: -> FLOCK  ADVISORY  WRITE 4711 08:02:13 0 EOF", "13"),
            None
        );
        assert_eq!(
            pid_of("1: POSIX  ADVISORY  WRITE 4711 08:02:13 0 EOF", "13"),
            None
        );
    }
}
