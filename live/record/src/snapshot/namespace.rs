//! The cgroup namespace that /proc is read from.
//!
//! A container has one of its own. There the kernel writes the cgroups of all other tasks with `..`
//! from its own cgroup on, which says neither what they are in nor where their weights are.

use std::fs::{self, File};
use std::os::fd::AsFd;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Reads cgroups as process 1 does, from now on, in this thread and those that it starts. The
/// answer is what will be missing.
pub fn see_all_groups() -> Option<String> {
    let first = fs::read_to_string("/proc/1/cgroup").unwrap_or_default();
    if !is_seen_from_below(&first) {
        return None;
    }
    let joined = File::open("/proc/1/ns/cgroup").and_then(|namespace| {
        let kind = Some(LinkNameSpaceType::ControlGroup);
        move_into_link_name_space(namespace.as_fd(), kind).map_err(Into::into)
    });
    let why = joined.err()?;
    Some(format!(
        "the cgroups of other containers with their weights and quotas: this container has a cgroup \
         namespace of its own ({why}; give it CAP_SYS_ADMIN and CAP_SYS_PTRACE)"
    ))
}

/// Whether the cgroup of process 1 lies outside of what this process has as the root.
fn is_seen_from_below(cgroup: &str) -> bool {
    cgroup.lines().any(|line| line.contains(":/.."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_sees_the_first_process_outside_of_its_root() {
        for (cgroup, expected) in [
            ("0::/init.scope\n", false),
            ("0::/\n", false),
            ("", false),
            ("0::/../../../init.scope\n", true),
            ("2:cpu,cpuacct:/..\n0::/\n", true),
        ] {
            assert_eq!(is_seen_from_below(cgroup), expected, "{cgroup}");
        }
    }
}
