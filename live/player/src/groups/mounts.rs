//! Where the hierarchies of cgroups are mounted, and where in them the player is.

use std::fs;
use std::path::PathBuf;

/// A hierarchy, with the player's own group in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// True for cgroup v2.
    unified: bool,
    /// The folder of the player's group.
    pub own: PathBuf,
}

impl Mount {
    /// True for cgroup v2, false for one of v1.
    pub fn is_unified(&self) -> bool {
        self.unified
    }
}

/// All of them.
pub struct Mounts {
    /// `/proc/self/mounts`
    mounts: String,
    /// `/proc/self/cgroup`
    own: String,
}

impl Mounts {
    /// Those of this process.
    pub fn read() -> Mounts {
        Mounts {
            mounts: fs::read_to_string("/proc/self/mounts").unwrap_or_default(),
            own: fs::read_to_string("/proc/self/cgroup").unwrap_or_default(),
        }
    }

    /// That with the controller `cpu`.
    pub fn cpu(&self) -> Option<Mount> {
        let unified = self.unified().filter(|mount| {
            let controllers = fs::read_to_string(mount.own.join("cgroup.controllers"));
            controllers.is_ok_and(|it| it.split_whitespace().any(|it| it == "cpu"))
        });
        unified.or_else(|| self.legacy("cpu"))
    }

    /// One that can freeze.
    pub fn freezer(&self) -> Option<Mount> {
        self.legacy("freezer").or_else(|| self.unified())
    }

    fn unified(&self) -> Option<Mount> {
        let mut lines = self.mounts.lines().map(fields);
        let (folder, ..) = lines.find(|(_, kind, _)| *kind == "cgroup2")?;
        // `0::/PATH`
        let path = self.own.lines().find_map(|line| line.strip_prefix("0::"))?;
        Some(Mount {
            unified: true,
            own: below(folder, path),
        })
    }

    fn legacy(&self, controller: &str) -> Option<Mount> {
        let has = |list: &str| list.split(',').any(|it| it == controller);
        let mut lines = self.mounts.lines().map(fields);
        let (folder, ..) = lines.find(|(_, kind, options)| *kind == "cgroup" && has(options))?;
        // `NUMBER:CONTROLLERS:/PATH`
        let path = self.own.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            has(controllers).then_some(path)
        })?;
        Some(Mount {
            unified: false,
            own: below(folder, path),
        })
    }
}

/// Folder, kind and options of a mount.
fn fields(line: &str) -> (&str, &str, &str) {
    let mut words = line.split_whitespace().skip(1);
    let mut next = || words.next().unwrap_or_default();
    (next(), next(), next())
}

fn below(folder: &str, path: &str) -> PathBuf {
    PathBuf::from(folder).join(path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchies_of_both_versions_are_found() {
        let mounts = Mounts {
            mounts: "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n\
                     cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
                     cgroup /sys/fs/cgroup/freezer cgroup rw,freezer 0 0\n\
                     cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
                .to_owned(),
            own: "3:cpuset:/x\n2:cpu,cpuacct:/a/b\n1:freezer:/\n0::/user\n".to_owned(),
        };
        let own = |mount: Option<Mount>| mount.map(|it| it.own.display().to_string());
        assert_eq!(
            own(mounts.legacy("cpu")),
            Some("/sys/fs/cgroup/cpu,cpuacct/a/b".to_owned())
        );
        assert_eq!(
            own(mounts.freezer()),
            Some("/sys/fs/cgroup/freezer/".to_owned())
        );
        assert_eq!(
            own(mounts.unified()),
            Some("/sys/fs/cgroup/unified/user".to_owned())
        );
        assert_eq!(mounts.legacy("memory"), None);
    }
}
