//! Hotplug: while a CPU goes online or offline, the topology is not yet what it will be.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::stop::Stop;

/// How long to wait. If the topology still changes later, the scheduler restarts once more.
const PATIENCE: Duration = Duration::from_secs(5);
const GLANCE: Duration = Duration::from_millis(20);

/// Waits until no CPU is going online or offline. True if it is time to stop instead.
pub fn wait(root: &Path, stop: &Stop) -> bool {
    let until = Instant::now() + PATIENCE;
    while !is_settled(root) && Instant::now() < until {
        if stop.within(GLANCE) {
            return true;
        }
    }
    false
}

/// Whether every CPU has reached its target state. Kernels without hotplug have no such files, and
/// no such states.
fn is_settled(root: &Path) -> bool {
    let cpus = fs::read_dir(root.join("sys/devices/system/cpu"));
    let mut folders = cpus.into_iter().flatten().flatten();
    folders.all(|folder| {
        let says = |file: &str| fs::read_to_string(folder.path().join("hotplug").join(file)).ok();
        says("state") == says("target")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_on_its_way_is_waited_for() {
        let root = tempfile::tempdir().expect("a folder");
        let cpu = |name: &str, state: &str, target: &str| {
            let folder = root
                .path()
                .join("sys/devices/system/cpu")
                .join(name)
                .join("hotplug");
            fs::create_dir_all(&folder).expect("it is made");
            fs::write(folder.join("state"), state).expect("it is written");
            fs::write(folder.join("target"), target).expect("it is written");
        };
        assert!(is_settled(root.path()), "no CPU says anything");
        cpu("cpu0", "241\n", "241\n");
        cpu("cpu1", "0\n", "0\n");
        assert!(is_settled(root.path()));
        cpu("cpu1", "239\n", "0\n");
        assert!(!is_settled(root.path()));
    }
}
