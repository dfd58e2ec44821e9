//! Where a path leads: followed part by part, from one open folder to the next.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, PROC_SUPER_MAGIC, Stat};
use rustix::fs::{fstat, fstatfs, openat, readlinkat, statat};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use crate::Refused;

/// As many links as the kernel follows (MAXSYMLINKS in include/linux/namei.h).
const MOST_LINKS: usize = 40;
/// A folder that is only a place to look up names.
const LOOKUP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// How a stream is opened: what is there, to write at its end.
const STREAM: OFlags = OFlags::WRONLY
    .union(OFlags::APPEND)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// A name in an open folder.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub folder: Arc<OwnedFd>,
    pub name: OsString,
}

/// Where a path leads.
#[derive(Debug)]
pub(crate) enum Target {
    /// A regular file, or a name that nothing has yet.
    File(Place, Option<Stat>),
    /// Anything else that can be written to.
    Stream(File),
}

/// Where `path` leads.
///
/// # Errors
/// A folder is missing or refuses; what is there is a folder, or somebody else planted it.
pub(crate) fn find(path: &Path) -> Result<Target, Refused> {
    let mut walk = Walk::begin(path)?;
    while let Some(name) = walk.left.pop_front() {
        let last = walk.left.is_empty();
        let stat = match statat(&walk.folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) if last => return Ok(Target::File(walk.at(name), None)),
            Err(error) => return Err(error.into()),
        };
        if let Some(target) = walk.step(name, stat, last)? {
            return Ok(target);
        }
    }
    Err(Refused::IsFolder)
}

/// The folder at `path`, opened.
///
/// # Errors
/// It is missing, refuses or is none; somebody else planted it.
pub(crate) fn open_folder(path: &Path) -> Result<Arc<OwnedFd>, Refused> {
    let mut walk = Walk::begin(path)?;
    while let Some(name) = walk.left.pop_front() {
        let stat = statat(&walk.folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        walk.step(name, stat, false)?;
    }
    Ok(walk.folder)
}

struct Walk {
    folder: Arc<OwnedFd>,
    left: VecDeque<OsString>,
    links: usize,
}

impl Walk {
    fn begin(path: &Path) -> Result<Walk, Refused> {
        let mut walk = Walk {
            folder: Arc::new(openat(CWD, ".", LOOKUP, Mode::empty())?),
            left: VecDeque::new(),
            links: 0,
        };
        walk.goes_by(path)?;
        Ok(walk)
    }

    /// The parts of `path` come before those that are left.
    fn goes_by(&mut self, path: &Path) -> Result<(), Refused> {
        for part in path.components().rev() {
            match part {
                Component::Normal(name) => self.left.push_front(name.to_owned()),
                Component::ParentDir => self.left.push_front("..".into()),
                Component::RootDir => self.enter(OsStr::new("/"), OFlags::empty())?,
                Component::CurDir | Component::Prefix(_) => {}
            }
        }
        Ok(())
    }

    fn enter(&mut self, name: &OsStr, flags: OFlags) -> Result<(), Refused> {
        let folder = openat(&self.folder, name, LOOKUP | flags, Mode::empty())?;
        self.folder = Arc::new(folder);
        Ok(())
    }

    fn at(&self, name: OsString) -> Place {
        let folder = self.folder.clone();
        Place { folder, name }
    }

    /// Goes on through `name`; an answer if the path ends there.
    fn step(&mut self, name: OsString, stat: Stat, last: bool) -> Result<Option<Target>, Refused> {
        let kind = FileType::from_raw_mode(stat.st_mode);
        trusted(&fstat(&self.folder)?, &stat, &own_users())?;
        match kind {
            FileType::Symlink => self.follow(&name, last),
            FileType::Directory => self.enter(&name, OFlags::NOFOLLOW).map(|()| None),
            FileType::RegularFile if last => Ok(Some(Target::File(self.at(name), Some(stat)))),
            _ if last => {
                let stream = openat(
                    &self.folder,
                    &name,
                    STREAM | OFlags::NOFOLLOW,
                    Mode::empty(),
                );
                Ok(Some(Target::Stream(still_a_stream(stream?.into())?)))
            }
            _ => Err(Errno::NOTDIR.into()),
        }
    }

    fn follow(&mut self, name: &OsStr, last: bool) -> Result<Option<Target>, Refused> {
        // What looks like a link there is an object of the kernel's: an open descriptor, or a
        // folder.
        if fstatfs(&self.folder)?.f_type == PROC_SUPER_MAGIC {
            return match last {
                true => self.descriptor(name).map(Some),
                false => self.enter(name, OFlags::empty()).map(|()| None),
            };
        }
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Errno::LOOP.into());
        }
        let to = readlinkat(&self.folder, name, Vec::new())?;
        self.goes_by(Path::new(&OsString::from_vec(to.into_bytes())))?;
        Ok(None)
    }

    /// What `/dev/stdout` or `/proc/self/fd/7` is open for, a regular file as well: it goes on
    /// where it is, and nothing of it is cut.
    fn descriptor(&self, name: &OsStr) -> Result<Target, Refused> {
        let is_own =
            fstat(&self.folder)?.st_ino == statat(CWD, "/proc/self/fd", AtFlags::empty())?.st_ino;
        let own = match name.to_str().filter(|_| is_own) {
            // A descriptor of these has a place of its own, and so has a socket.
            Some("1") => Some(fcntl_dupfd_cloexec(std::io::stdout(), 0)?),
            Some("2") => Some(fcntl_dupfd_cloexec(std::io::stderr(), 0)?),
            _ => None,
        };
        let open = || openat(&self.folder, name, STREAM, Mode::empty());
        let file = File::from(own.map_or_else(open, Ok)?);
        match file.metadata()?.is_dir() {
            true => Err(Refused::IsFolder),
            false => Ok(Target::Stream(file)),
        }
    }
}

/// Nobody may exchange a pipe for a file between our look and our opening.
fn still_a_stream(file: File) -> Result<File, Refused> {
    match file.metadata()?.is_file() {
        true => Err(Refused::Changed),
        false => Ok(file),
    }
}

/// The users for whom this process writes: its own, and who called it by sudo.
fn own_users() -> Vec<u32> {
    let own = rustix::process::geteuid();
    let caller = std::env::var("SUDO_UID").ok().filter(|_| own.is_root());
    let caller = caller.and_then(|uid| uid.parse().ok());
    caller.into_iter().chain([own.as_raw()]).collect()
}

/// Refuses what is `found` in `folder`, where everybody may make something, unless one of the users
/// `own`, or the folder's owner, made it.
fn trusted(folder: &Stat, found: &Stat, own: &[u32]) -> Result<(), Refused> {
    let everybodys = Mode::SVTX | Mode::WOTH;
    let open_to_all = Mode::from_raw_mode(folder.st_mode).contains(everybodys);
    let uid = found.st_uid;
    if !open_to_all || uid == folder.st_uid || own.contains(&uid) {
        return Ok(());
    }
    let what = match FileType::from_raw_mode(found.st_mode) {
        FileType::Symlink => "a link",
        FileType::RegularFile => "a file",
        FileType::Directory => "a folder",
        _ => "a pipe or device",
    };
    Err(Refused::Planted { what, uid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ours_is_touched_where_everybody_may_make_something() {
        let mut folder = rustix::fs::stat("/").unwrap();
        let mut found = folder;
        let mut answer = |mode: u32, owner, maker, own: &[u32]| {
            (folder.st_mode, folder.st_uid, found.st_uid) = (0o040_000 | mode, owner, maker);
            found.st_mode = 0o120_777;
            trusted(&folder, &found, own).is_ok()
        };
        assert!(!answer(0o1777, 0, 1000, &[0]), "a user's link, for root");
        assert!(!answer(0o1777, 0, 1000, &[1001]), "another user's link");
        assert!(
            answer(0o1777, 0, 1000, &[1000, 0]),
            "of the user who called sudo"
        );
        assert!(answer(0o1777, 0, 0, &[1000]), "the folder owner's link");
        assert!(answer(0o1777, 0, 1000, &[1000]), "one's own");
        assert!(
            answer(0o755, 0, 1000, &[0]),
            "nobody else can make links there"
        );
        assert!(
            answer(0o777, 0, 1000, &[0]),
            "who opens a folder so lets others replace all in it"
        );
    }
}
