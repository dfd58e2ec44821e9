//! Where the hierarchies of cgroups are mounted, and where in them this process is.

use std::fs;
use std::path::{Path, PathBuf};

/// A hierarchy, with this process's own group in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// True for cgroup v2.
    unified: bool,
    /// The folder of that group.
    pub own: PathBuf,
}

impl Mount {
    /// True for cgroup v2, false for one of v1.
    pub fn is_unified(&self) -> bool {
        self.unified
    }
}

/// All of them.
#[derive(Clone, Debug)]
pub struct Mounts {
    /// Where the file system begins.
    root: PathBuf,
    /// `/proc/self/mounts`
    mounts: String,
    /// `/proc/self/cgroup`
    own: String,
}

impl Mounts {
    /// Those of this process.
    pub fn read() -> Mounts {
        Mounts::below(Path::new("/"))
    }

    /// The same of a file system that begins at `root`.
    pub fn below(root: &Path) -> Mounts {
        let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        Mounts {
            root: root.to_owned(),
            mounts: text("proc/self/mounts"),
            own: text("proc/self/cgroup"),
        }
    }

    /// That with the controller `cpu`.
    pub fn cpu(&self) -> Option<Mount> {
        let unified = self.unified().filter(|mount| {
            let controllers = fs::read_to_string(mount.own.join("cgroup.controllers"));
            controllers.is_ok_and(|line| line.split_whitespace().any(|word| word == "cpu"))
        });
        unified.or_else(|| self.legacy("cpu"))
    }

    /// One that can freeze.
    pub fn freezer(&self) -> Option<Mount> {
        self.legacy("freezer").or_else(|| self.unified())
    }

    /// That with the controller `cpuset`, where that is one of v1.
    pub fn cpuset(&self) -> Option<Mount> {
        self.legacy("cpuset")
    }

    /// The cgroup by which the kernel's scheduler groups this process; none if that is the root's.
    /// Of cgroup v2 it is the nearest one, from the process's own upwards, that has the controller
    /// `cpu`.
    pub fn grouped_by(&self) -> Option<PathBuf> {
        if let Some(mount) = self.legacy("cpu") {
            // Of a hierarchy, only the root has this file; in a container it cannot be seen.
            let is_root = mount.own.join("release_agent").exists();
            return (!is_root).then_some(mount.own);
        }
        let top = below(&self.root, self.unified_folder()?);
        let own = self.unified()?.own;
        // What is mounted need not be the root of the hierarchy: that has no weight.
        let mut upwards = own
            .ancestors()
            .take_while(|folder| folder.starts_with(&top));
        let found = upwards.find(|folder| folder.join("cpu.weight").exists());
        found.map(Path::to_path_buf)
    }

    fn unified_folder(&self) -> Option<&str> {
        let mut lines = self.mounts.lines().map(fields);
        let found = lines.find(|(_, kind, _)| *kind == "cgroup2");
        found.map(|(folder, ..)| folder)
    }

    fn unified(&self) -> Option<Mount> {
        let folder = self.unified_folder()?;
        // `0::/PATH`
        let path = self.own.lines().find_map(|line| line.strip_prefix("0::"))?;
        Some(Mount {
            unified: true,
            own: below(&below(&self.root, folder), path),
        })
    }

    fn legacy(&self, controller: &str) -> Option<Mount> {
        let has = |list: &str| list.split(',').any(|known| known == controller);
        let mut lines = self.mounts.lines().map(fields);
        let (folder, ..) = lines.find(|(_, kind, options)| *kind == "cgroup" && has(options))?;
        // `NUMBER:CONTROLLERS:/PATH`
        let path = self.own.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            has(controllers).then_some(path)
        })?;
        Some(Mount {
            unified: false,
            own: below(&below(&self.root, folder), path),
        })
    }
}

/// Folder, kind and options of a mount.
fn fields(line: &str) -> (&str, &str, &str) {
    let mut words = line.split_whitespace().skip(1);
    let mut next = || words.next().unwrap_or_default();
    (next(), next(), next())
}

fn below(folder: &Path, path: &str) -> PathBuf {
    folder.join(path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchies_of_both_versions_are_found() {
        let mounts = Mounts {
            root: PathBuf::from("/"),
            mounts: "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n\
                     cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
                     cgroup /sys/fs/cgroup/freezer cgroup rw,freezer 0 0\n\
                     cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
                .to_owned(),
            own: "3:cpuset:/x\n2:cpu,cpuacct:/a/b\n1:freezer:/\n0::/user\n".to_owned(),
        };
        let own = |mount: Option<Mount>| mount.map(|mount| mount.own.display().to_string());
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
