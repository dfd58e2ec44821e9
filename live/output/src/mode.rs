//! Who may read a file that was written.

use std::fs::{self, File};

use rustix::fs::{Gid, Mode, Stat, Uid, fchmod, fchown};

/// Only the owner.
pub(crate) const PRIVATE: Mode = Mode::from_bits_retain(0o600);

/// Gives `file`, which only its owner may read, the owner and the mode that `old`, the file in its
/// place, had; of a new file the mode that the process gives to new files.
pub(crate) fn publish(file: &File, old: Option<&Stat>) {
    let permissions = Mode::RWXU | Mode::RWXG | Mode::RWXO;
    let mode = match old {
        Some(old) => {
            let (uid, gid) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
            // Only root may give files away; another keeps them, and then the group is theirs.
            let _ = fchown(file, Some(uid), Some(gid));
            Mode::from_raw_mode(old.st_mode) & permissions
        }
        None => Mode::from_bits_retain(0o666) & !umask(),
    };
    // On a file system without modes it stays as it is.
    let _ = fchmod(file, mode);
}

/// The process's umask. umask(2) returns it only by setting another one, for all threads.
fn umask() -> Mode {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let mask = line.and_then(|text| u32::from_str_radix(text.trim(), 8).ok());
    Mode::from_bits_retain(mask.unwrap_or(0o077))
}
