//! CPUs that come or go take some time for it, and until they are through the topology is not what it will be.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::stop::Stop;

/// How long they are waited for. A topology that turns out to be old is noticed, and costs another restart.
const PATIENCE: Duration = Duration::from_secs(5);
const GLANCE: Duration = Duration::from_millis(20);

/// Waits until no CPU comes or goes. True when it is time to stop instead.
pub fn wait(root: &Path, stop: &Stop) -> bool {
    let until = Instant::now() + PATIENCE;
    while !is_settled(root) && Instant::now() < until {
        if stop.within(GLANCE) {
            return true;
        }
    }
    false
}

/// Whether every CPU is where it is going to. Kernels without hotplug do not say, and have nothing to say.
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
