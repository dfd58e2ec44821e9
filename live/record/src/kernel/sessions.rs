//! Whether the kernel groups tasks by session at all.

use std::fs;
use std::path::Path;

use warmq_units::printable;

use crate::mounts::Mounts;

/// Where the kernel says whether autogroups are on, below the root of the file system.
const SWITCH: &str = "proc/sys/kernel/sched_autogroup_enabled";

/// Why the kernel does not group this process by its session (`task_wants_autogroup()` and
/// `sched_autogroup_enabled`), as the file system below `root` says.
pub fn sessions_obstacle(root: &Path) -> Option<String> {
    let Ok(switch) = fs::read_to_string(root.join(SWITCH)) else {
        return Some("this kernel has none (CONFIG_SCHED_AUTOGROUP)".to_owned());
    };
    if switch.trim() == "0" {
        let why = "they are switched off (sysctl kernel.sched_autogroup_enabled)";
        return Some(why.to_owned());
    }
    let cgroup = Mounts::below(root).grouped_by()?;
    Some(format!(
        "they are for tasks of the root cgroup, and this process is in {}, which has the controller `cpu`",
        printable(&cgroup)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_autogroups_from_having_an_effect_is_named() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        let why = || sessions_obstacle(root.path()).unwrap_or_default();
        assert!(why().contains("CONFIG_SCHED_AUTOGROUP"));
        write(SWITCH, "0\n");
        assert!(why().contains("switched off"));
        write(SWITCH, "1\n");
        assert_eq!(why(), "");
        write("proc/self/mounts", "cgroup2 /cg cgroup2 rw 0 0\n");
        write("proc/self/cgroup", "0::/user/shell\n");
        // Without the controller `cpu` a cgroup is no group for the scheduler.
        assert_eq!(why(), "");
        write("cg/user/cpu.weight", "100\n");
        assert!(why().contains("cg/user,"), "{}", why());
    }
}
