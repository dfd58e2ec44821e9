//! Whether the kernel groups tasks by session at all.

use std::fs;
use std::path::Path;

use warmq_record::running_scheduler;
use warmq_scenario::{Bound, Set};
use warmq_units::printable;

use super::Sessions;
use crate::groups::Mounts;
use crate::notes::Notes;

/// Where the kernel says whether autogroups are on, below the root of the file system.
const SWITCH: &str = "proc/sys/kernel/sched_autogroup_enabled";

/// Says why autogroups have no effect, if the scenario has some and they have none. `loads` is true
/// if a scheduler of sched_ext is loaded for the run.
pub fn say_if_without(sessions: &Sessions, bound: &Bound, loads: bool, notes: &Notes) {
    if sessions.list().is_empty() {
        return;
    }
    if let Some(why) = obstacle(Path::new("/"), &Mounts::read()) {
        notes.say("autogroups", &format!("they have no effect: {why}"));
    }
    let mut sets = bound.scenario().sets();
    if loads || running_scheduler() != "kernel" || sets.any(|set| matches!(set, Set::Scheduler(_)))
    {
        let why = "a scheduler of sched_ext sees their tasks in the root cgroup";
        notes.say("autogroups", why);
    }
}

/// Why the kernel does not group this process by its session (`task_wants_autogroup()` and
/// `sched_autogroup_enabled`).
fn obstacle(root: &Path, mounts: &Mounts) -> Option<String> {
    let Ok(switch) = fs::read_to_string(root.join(SWITCH)) else {
        return Some("this kernel has none (CONFIG_SCHED_AUTOGROUP)".to_owned());
    };
    if switch.trim() == "0" {
        let why = "they are switched off (sysctl kernel.sched_autogroup_enabled)";
        return Some(why.to_owned());
    }
    let cgroup = mounts.grouped_by()?;
    Some(format!(
        "they are for tasks of the root cgroup, and the player is in {}, which has the controller `cpu`",
        printable(&cgroup)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_autogroups_from_having_an_effect_is_named() {
        let root = tempfile::tempdir().expect("a folder");
        let switch = root.path().join(SWITCH);
        let nowhere = || Mounts::of("", "0::/\n");
        let told = |mounts| obstacle(root.path(), &mounts).unwrap_or_default();
        assert!(told(nowhere()).contains("CONFIG_SCHED_AUTOGROUP"));
        fs::create_dir_all(switch.parent().expect("a folder")).expect("made");
        fs::write(&switch, "0\n").expect("written");
        assert!(told(nowhere()).contains("switched off"));
        fs::write(&switch, "1\n").expect("written");
        assert_eq!(told(nowhere()), "");
        let cgroups = root.path().join("cg");
        let own = cgroups.join("user/shell");
        fs::create_dir_all(&own).expect("made");
        let mounts = || {
            let line = format!("cgroup2 {} cgroup2 rw 0 0\n", cgroups.display());
            Mounts::of(&line, "0::/user/shell\n")
        };
        // Without the controller `cpu` a cgroup is no group for the scheduler.
        assert_eq!(told(mounts()), "");
        fs::write(cgroups.join("user/cpu.weight"), "100\n").expect("written");
        let text = told(mounts());
        assert!(text.contains("cg/user,"), "{text}");
    }
}
