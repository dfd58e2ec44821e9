//! Descriptions of this machine that `warmq calibrate` wrote, in the user's folder.

use std::fs;
use std::path::{Path, PathBuf};

use warmq_machine::{CacheDescription, MachineDescription, read_toml};
use warmq_units::Cycles;

use crate::failure::Failure;
use crate::machines;

/// A description of this machine with measured costs.
pub struct Calibrated {
    /// When it was measured, as its file is called.
    pub when: String,
    /// It.
    pub machine: MachineDescription,
}

/// Where the descriptions are.
///
/// # Errors
/// When there is no folder for what is kept.
pub fn folder() -> Result<PathBuf, Failure> {
    Ok(warmq_vm::user_folder()?.join("machines"))
}

/// Where the costs of this machine come from, in a sentence.
pub fn sentence() -> String {
    let described = machines::described().ok();
    match described.and_then(|machine| newest(&machine)) {
        Some(calibrated) => format!(
            "Costs of this machine are those that `warmq calibrate` measured at {}.",
            calibrated.when
        ),
        None => "Costs of this machine are assumed: `warmq calibrate` measures them.".to_owned(),
    }
}

/// The newest description of `machine`, if there is one. Files that cannot be read, and those of
/// other machines, say nothing.
pub fn newest(machine: &MachineDescription) -> Option<Calibrated> {
    newest_in(&folder().ok()?, machine)
}

fn newest_in(folder: &Path, machine: &MachineDescription) -> Option<Calibrated> {
    let entries = fs::read_dir(folder).ok()?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    paths.iter().rev().find_map(|path| {
        let text = warmq_config::read_text(path).ok()?;
        let read = read_toml(&path.to_string_lossy(), &text).ok()?;
        let when = path.file_stem()?.to_string_lossy().into_owned();
        let machine = are_alike(&read, machine).then_some(read)?;
        Some(Calibrated { when, machine })
    })
}

/// Whether both are the same model with as many CPUs and the same caches.
fn are_alike(one: &MachineDescription, other: &MachineDescription) -> bool {
    let caches = |machine: &MachineDescription| -> Vec<CacheDescription> {
        let shape = |cache: &CacheDescription| CacheDescription {
            latency: Cycles(0),
            ..cache.clone()
        };
        machine.caches.iter().map(shape).collect()
    };
    (&one.title, &one.cpus, caches(one)) == (&other.title, &other.cpus, caches(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_this_machine_is_taken_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let shipped = |name: &str| {
            let text = warmq_machine::builtin(name).unwrap();
            read_toml(name, text).unwrap()
        };
        let keep = |when: &str, text: &str| fs::write(folder.path().join(when), text).unwrap();
        let mut here = shipped("tiny-2cpu");
        let other = shipped("p4").to_toml();
        assert!(newest_in(folder.path(), &here).is_none());
        here.memory.latency = warmq_units::Duration::from_ns(77);
        keep("2026-01-01-00-00.toml", &shipped("tiny-2cpu").to_toml());
        keep("2026-01-02-00-00.toml", &here.to_toml());
        keep("2026-01-03-00-00.toml", &other);
        keep("2026-01-04-00-00.toml", "half a fi");
        let newest = newest_in(folder.path(), &shipped("tiny-2cpu")).unwrap();
        assert_eq!((&*newest.when, newest.machine), ("2026-01-02-00-00", here));
    }
}
