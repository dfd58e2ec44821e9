//! The kernel's tracing file system: where it is, and its files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use crate::RecordError;

/// Where it is mounted, if it is: its own place, and the one of older systems.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// A mounted tracefs.
pub(crate) struct Tracefs {
    /// The path by which this process reaches it.
    root: PathBuf,
    /// The path that people know.
    shown: PathBuf,
    /// A mount of our own. It is attached nowhere, so nobody else sees it, and it ends with its
    /// descriptor.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Finds the one that is mounted, or mounts one for this process alone.
    ///
    /// # Errors
    /// When this process may not use it, or this kernel has none.
    pub fn open() -> Result<Tracefs, RecordError> {
        if cfg!(target_endian = "big") {
            let why = "only recordings of little-endian machines can be read";
            return Err(RecordError::refused(PLACES[0], why, "do not record"));
        }
        for place in PLACES.map(PathBuf::from) {
            match fs::read_dir(place.join("instances")) {
                Ok(_) => {
                    return Ok(Tracefs {
                        root: place.clone(),
                        shown: place,
                        _mount: None,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(RecordError::of("read", &place)(error)),
            }
        }
        let mount = mount().map_err(|why| {
            let fix = "run as root on a kernel with CONFIG_FTRACE, or without recording";
            RecordError::refused(PLACES[0], format!("cannot mount tracefs: {why}"), fix)
        })?;
        Ok(Tracefs {
            root: format!("/proc/self/fd/{}", mount.as_raw_fd()).into(),
            shown: PLACES[0].into(),
            _mount: Some(mount),
        })
    }

    /// A folder in it.
    pub fn folder(&self, path: &str) -> Folder {
        Folder {
            root: self.root.join(path),
            shown: self.shown.join(path),
        }
    }
}

/// A mount that is attached nowhere.
fn mount() -> rustix::io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(&context)?;
    rustix::mount::fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )
}

/// The text of a file. Some files of tracefs answer the first read only, so it must be a large one.
fn whole(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut text = Vec::new();
    let mut part = vec![0; 1 << 16];
    loop {
        match file.read(&mut part)? {
            0 => break,
            bytes => text.extend_from_slice(&part[..bytes]),
        }
    }
    String::from_utf8(text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// A folder of tracefs, whose errors name paths that people know.
#[derive(Clone, Debug, derive_more::AsRef)]
pub(crate) struct Folder {
    #[as_ref(Path)]
    root: PathBuf,
    shown: PathBuf,
}

impl Folder {
    /// The path by which this process reaches `name`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The path of `name` that people know.
    pub fn shown(&self, name: &str) -> PathBuf {
        self.shown.join(name)
    }

    /// A folder in this one.
    pub fn folder(&self, name: &str) -> Folder {
        Folder {
            root: self.path(name),
            shown: self.shown(name),
        }
    }

    /// True if it has a file or folder `name`.
    pub fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The text of a file.
    ///
    /// # Errors
    /// The system's answer.
    pub fn read(&self, name: &str) -> Result<String, RecordError> {
        whole(&self.path(name)).map_err(RecordError::of("read", &self.shown(name)))
    }

    /// Writes a setting.
    ///
    /// # Errors
    /// The system's answer.
    pub fn write(&self, name: &str, value: &str) -> Result<(), RecordError> {
        fs::write(self.path(name), value).map_err(RecordError::of("write", &self.shown(name)))
    }

    /// The names of the files and folders in it, in order.
    ///
    /// # Errors
    /// The system's answer.
    pub fn names(&self) -> Result<Vec<String>, RecordError> {
        let refused = |error| RecordError::of("read", &self.shown)(error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(refused)? {
            let name = entry.map_err(refused)?.file_name();
            names.extend(name.into_string());
        }
        names.sort();
        Ok(names)
    }
}
