//! The maps that scx_warmq pins in /sys/fs/bpf, where other programs find them.
//!
//! slots, labels and hints hold what programs and administrators said. They stay when the scheduler
//! stops, and the next one uses them, because a thread that named its data once does not do so
//! again. `scx_warmq unpin` removes them. state and settings are for programs that look at a
//! running scheduler; they are removed when it stops.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use libbpf_rs::{MapCore, MapHandle, MapMut, OpenMapMut};
use nix::unistd::Uid;
use warmq_hint::abi;

use crate::bpf_skel::{BpfSkel, OpenBpfSkel};
use crate::say;

warmq_units::named! {
    /// A pinned map.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Pin {
        /// Where programs put pointers to their slots.
        Slots = "slots",
        /// What administrators said about threads.
        Labels = "labels",
        /// What threads said about themselves.
        Hints = "hints",
        /// The counters and tables of a running scheduler.
        State = "state",
        /// What it was started with.
        Settings = "settings",
    }
}

impl Pin {
    /// Its file.
    pub fn path(self) -> PathBuf {
        Path::new(abi::pins()).join(self.name())
    }

    /// Its mode, where a group of users may have access or nobody but root.
    fn mode(self, group: bool) -> u32 {
        match self {
            Pin::Slots if group => 0o660,
            Pin::State | Pin::Settings if group => 0o640,
            _ => 0o600,
        }
    }
}

/// A pin that cannot be made, read or removed.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", warmq_units::printable(path))]
pub struct PinError {
    path: PathBuf,
    problem: String,
}

impl PinError {
    fn new(path: PathBuf, problem: impl ToString) -> PinError {
        PinError {
            path,
            problem: problem.to_string(),
        }
    }
}

/// Makes the program use the maps that earlier schedulers pinned, where they still fit. Call it
/// before the program is loaded.
pub fn inherit(program: &mut OpenBpfSkel<'_>, task_hints: Option<&Path>) -> Result<(), PinError> {
    make_folder()?;
    let maps = &mut program.maps;
    if let Some(path) = task_hints {
        must_be_ours(path.parent().unwrap_or(path))?;
        must_be_no_link(path)?;
        let wrong = |error| PinError::new(path.to_owned(), error);
        maps.task_hints.set_pin_path(path).map_err(wrong)?;
    }
    inherit_one(Pin::Slots, &mut maps.slots)?;
    inherit_one(Pin::Labels, &mut maps.labels)?;
    inherit_one(Pin::Hints, &mut maps.hints)
}

/// libbpf uses the map that is pinned at this path; if there is none, it pins the new map there.
fn inherit_one(pin: Pin, map: &mut OpenMapMut<'_>) -> Result<(), PinError> {
    if let Ok(old) = MapHandle::from_pinned_path(pin.path())
        && !fits(&old, map)
    {
        remove(pin)?;
    }
    map.set_pin_path(pin.path())
        .map_err(|error| PinError::new(pin.path(), error))
}

fn fits(old: &MapHandle, map: &OpenMapMut<'_>) -> bool {
    old.map_type() == map.map_type()
        && old.key_size() == map.key_size()
        && old.value_size() == map.value_size()
        && old
            .info()
            .is_ok_and(|info| info.info.map_flags == map.map_flags())
}

/// Sets the modes of the inherited pins; `group` is the Unix group that has access. Call it when
/// the program is loaded.
pub fn open_inherited(group: Option<u32>, task_hints: Option<&Path>) -> Result<(), PinError> {
    [Pin::Slots, Pin::Labels, Pin::Hints]
        .into_iter()
        .try_for_each(|pin| set_access(pin, group))?;
    // Who may write to the one may write to the other.
    let mode = Pin::Slots.mode(group.is_some());
    task_hints.map_or(Ok(()), |path| set_access_to(path, group, mode))
}

/// The pins of state and settings, removed when this is dropped.
#[derive(Debug)]
pub struct Published(());

impl Drop for Published {
    fn drop(&mut self) {
        for pin in [Pin::State, Pin::Settings] {
            if let Err(error) = remove(pin) {
                say::error(&format!("scx_warmq: cannot remove {error}"));
            }
        }
    }
}

/// Lets others look at a program. Call it when the program schedules: one that the kernel refuses
/// must not replace the pins of the one that runs.
pub fn publish(program: &mut BpfSkel<'_>, group: Option<u32>) -> Result<Published, PinError> {
    let published = Published(());
    pin_anew(Pin::State, &mut program.maps.bss)?;
    pin_anew(Pin::Settings, &mut program.maps.rodata)?;
    set_access(Pin::State, group)?;
    set_access(Pin::Settings, group)?;
    Ok(published)
}

fn pin_anew(pin: Pin, map: &mut MapMut<'_>) -> Result<(), PinError> {
    remove(pin)?;
    map.pin(pin.path())
        .map_err(|error| PinError::new(pin.path(), error))
}

/// Closes it to all but its owner first, so that no other group has the mode that is meant for one.
fn set_access(pin: Pin, group: Option<u32>) -> Result<(), PinError> {
    set_access_to(&pin.path(), group, pin.mode(group.is_some()))
}

fn set_access_to(path: &Path, group: Option<u32>, mode: u32) -> Result<(), PinError> {
    let wrong = |error: io::Error| PinError::new(path.to_owned(), error);
    let set = |mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    set(0o600).map_err(wrong)?;
    chown(path, None, Some(group.unwrap_or(0))).map_err(wrong)?;
    set(mode).map_err(wrong)
}

fn make_folder() -> Result<(), PinError> {
    let wrong = |error: io::Error| PinError::new(abi::pins().into(), error);
    match fs::DirBuilder::new().mode(0o755).create(abi::pins()) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(wrong(error)),
        _ => {}
    }
    must_be_ours(Path::new(abi::pins()))?;
    // Whatever the umask is: others must be able to enter it.
    fs::set_permissions(abi::pins(), fs::Permissions::from_mode(0o755)).map_err(wrong)
}

/// Fails unless a folder is the user's who runs this (root), is no symbolic link, and nobody else
/// can write there, so that what lies in it is what root put there. (In one with the sticky bit
/// nobody can replace what is another's.)
fn must_be_ours(folder: &Path) -> Result<(), PinError> {
    let wrong = |problem: String| Err(PinError::new(folder.to_owned(), problem));
    let found = match fs::symlink_metadata(folder) {
        Ok(found) => found,
        Err(error) => return wrong(error.to_string()),
    };
    let (mode, owner) = (found.mode(), found.uid());
    if !found.is_dir() {
        return wrong("it is not a folder; remove it".to_owned());
    }
    if owner != Uid::effective().as_raw() {
        return wrong(format!("it is user {owner}'s, and not root's; remove it"));
    }
    if mode & 0o022 != 0 && mode & 0o1000 == 0 {
        return wrong(format!(
            "others can write there (mode {:o}); run: chmod go-w {}",
            mode & 0o7777,
            warmq_units::printable(folder)
        ));
    }
    Ok(())
}

fn must_be_no_link(file: &Path) -> Result<(), PinError> {
    match fs::symlink_metadata(file) {
        Ok(found) if found.is_symlink() => Err(PinError::new(
            file.to_owned(),
            "it is a symbolic link; name the file that it leads to",
        )),
        _ => Ok(()),
    }
}

fn remove(pin: Pin) -> Result<bool, PinError> {
    match fs::remove_file(pin.path()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(PinError::new(pin.path(), error)),
    }
}

/// Removes all of it. Returns how many there were.
pub fn remove_all() -> Result<usize, PinError> {
    if fs::symlink_metadata(abi::pins()).is_ok() {
        must_be_ours(Path::new(abi::pins()))?;
    }
    let mut removed = 0;
    for pin in Pin::ALL {
        removed += usize::from(remove(pin)?);
    }
    match fs::remove_dir(abi::pins()) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(PinError::new(abi::pins().into(), error))
        }
        _ => Ok(removed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_everybodys() {
        let modes = Pin::ALL.map(|pin| (pin.name(), pin.mode(false), pin.mode(true)));
        let expected = [
            ("slots", 0o600, 0o660),
            ("labels", 0o600, 0o600),
            ("hints", 0o600, 0o600),
            ("state", 0o600, 0o640),
            ("settings", 0o600, 0o640),
        ];
        assert_eq!(modes, expected);
    }

    #[test]
    fn a_folder_where_others_can_write_or_a_link_is_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let (inner, link) = (folder.path().join("pins"), folder.path().join("link"));
        fs::create_dir(&inner).expect("it is made");
        std::os::unix::fs::symlink(&inner, &link).expect("it is made");
        let set = |mode| fs::set_permissions(&inner, fs::Permissions::from_mode(mode));
        for (mode, may) in [
            (0o755, true),
            (0o775, false),
            (0o757, false),
            (0o1777, true),
        ] {
            set(mode).expect("it is set");
            assert_eq!(must_be_ours(&inner).is_ok(), may, "{mode:o}");
        }
        for wrong in [&link, &folder.path().join("nothing")] {
            assert!(must_be_ours(wrong).is_err(), "{wrong:?}");
        }
        assert!(must_be_no_link(&link).is_err() && must_be_no_link(&inner).is_ok());
    }

    #[test]
    fn programs_look_for_slots_where_they_are() {
        assert_eq!(Pin::Slots.path(), Path::new(abi::slots()));
    }
}
