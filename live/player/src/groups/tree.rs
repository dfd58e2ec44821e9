//! The groups of a run in one hierarchy.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use warmq_record::{Mount, QuotaStat, quota_in, throttled_in};
use warmq_units::{CpuSet, printable};

use crate::sys::process;

/// What the folders of a run begin with; the pid of its controller follows.
const PREFIX: &str = "warmq-";

/// The folders of a run.
#[derive(Clone, Debug)]
pub struct Tree {
    mount: Mount,
    guest: bool,
    /// Whether it has cpusets.
    cpusets: bool,
    /// `warmq-PID`
    name: String,
}

/// What the system refused, and where.
type Refused = (String, io::Error);

impl Tree {
    /// Of this process, which is the controller.
    pub fn new(mount: Mount, guest: bool, cpusets: bool) -> Tree {
        Tree {
            mount,
            guest,
            cpusets,
            name: format!("{PREFIX}{}", process::pid()),
        }
    }

    pub fn is_unified(&self) -> bool {
        self.mount.is_unified()
    }

    /// What a file is called in a unified hierarchy, or in one of its own.
    fn either(&self, unified: &'static str, own: &'static str) -> &'static str {
        if self.mount.is_unified() {
            unified
        } else {
            own
        }
    }

    /// The folder of a group, by the names from the top; of none, that of tasks without a group.
    fn folder(&self, path: &[&str]) -> PathBuf {
        let own = &self.mount.own;
        match (self.guest, path) {
            (false, path) => path
                .iter()
                .fold(own.join(&self.name), |folder, name| folder.join(name)),
            (true, []) => own.clone(),
            (true, [first, rest @ ..]) => {
                let top = own.join(format!("{}.{first}", self.name));
                rest.iter().fold(top, |folder, name| folder.join(name))
            }
        }
    }

    /// Makes the folder of tasks without a group, which is there already in a guest.
    pub fn make_top(&self) -> Result<(), Refused> {
        if self.guest {
            return self.enable(&self.mount.own);
        }
        let top = self.folder(&[]);
        self.make_folder(&top)?;
        self.enable(&self.mount.own)?;
        self.enable(&top)
    }

    /// Makes the folder of a group whose parent is there.
    pub fn make(&self, path: &[&str]) -> Result<(), Refused> {
        let folder = self.folder(path);
        self.make_folder(&folder)?;
        self.enable(&folder)
    }

    fn make_folder(&self, folder: &Path) -> Result<(), Refused> {
        let told = |error| (printable(folder).to_string(), error);
        fs::create_dir(folder).map_err(told)?;
        if self.mount.is_unified() {
            // Threads of one process may be in different groups.
            write(&folder.join("cgroup.type"), "threaded").map_err(told)?;
        } else if self.cpusets {
            inherit(folder).map_err(told)?;
        }
        Ok(())
    }

    /// Gives the groups below `folder` the controllers that they need, where this hierarchy has
    /// `cpu`.
    fn enable(&self, folder: &Path) -> Result<(), Refused> {
        let has = fs::read_to_string(folder.join("cgroup.controllers"));
        if !self.mount.is_unified() || !has.is_ok_and(|list| list.contains("cpu")) {
            return Ok(());
        }
        let file = folder.join("cgroup.subtree_control");
        let controllers = match self.cpusets {
            true => "+cpu +cpuset",
            false => "+cpu",
        };
        write(&file, controllers).map_err(|error| (printable(&file).to_string(), error))
    }

    /// Moves thread `tid` (0: the caller) into a group.
    pub fn join(&self, path: &[&str], tid: i32) -> io::Result<()> {
        let file = self.either("cgroup.threads", "tasks");
        write(&self.folder(path).join(file), &tid.to_string())
    }

    /// Moves the caller back to where the player was.
    pub fn leave(&self) -> io::Result<()> {
        let file = self.either("cgroup.threads", "tasks");
        write(&self.mount.own.join(file), "0")
    }

    /// A weight as the hierarchy has it.
    pub fn set_weight(&self, path: &[&str], weight: u64) -> io::Result<()> {
        let folder = self.folder(path);
        match self.mount.is_unified() {
            true => write(
                &folder.join("cpu.weight"),
                &weight.clamp(1, 10_000).to_string(),
            ),
            false => {
                let shares = weight.saturating_mul(1024) / 100;
                write(
                    &folder.join("cpu.shares"),
                    &shares.clamp(2, 1 << 18).to_string(),
                )
            }
        }
    }

    /// CPU time in each period, in microseconds.
    pub fn set_quota(&self, path: &[&str], quota_us: u64, period_us: u64) -> io::Result<()> {
        let folder = self.folder(path);
        match self.mount.is_unified() {
            true => write(&folder.join("cpu.max"), &format!("{quota_us} {period_us}")),
            false => {
                write(&folder.join("cpu.cfs_period_us"), &period_us.to_string())?;
                write(&folder.join("cpu.cfs_quota_us"), &quota_us.to_string())
            }
        }
    }

    /// What of quotas is kept, in microseconds.
    pub fn set_burst(&self, path: &[&str], burst_us: u64) -> io::Result<()> {
        let file = self.either("cpu.max.burst", "cpu.cfs_burst_us");
        write(&self.folder(path).join(file), &burst_us.to_string())
    }

    /// Whether a group is idle.
    pub fn set_idle(&self, path: &[&str], idle: bool) -> io::Result<()> {
        let text = if idle { "1" } else { "0" };
        write(&self.folder(path).join("cpu.idle"), text)
    }

    /// The CPUs of a group.
    pub fn set_cpus(&self, path: &[&str], cpus: &CpuSet) -> io::Result<()> {
        write(&self.folder(path).join("cpuset.cpus"), &cpus.to_string())
    }

    /// What the kernel has counted of a group's quota; none if there was none yet.
    pub fn quota(&self, path: &[&str]) -> Option<QuotaStat> {
        let stat = fs::read_to_string(self.folder(path).join("cpu.stat")).ok()?;
        quota_in(&stat).filter(|quota| quota.periods > 0)
    }

    /// For how long a group was throttled, in us.
    pub fn throttled_us(&self, path: &[&str]) -> u64 {
        let stat = fs::read_to_string(self.folder(path).join("cpu.stat"));
        throttled_in(&stat.unwrap_or_default())
    }

    /// Freezes or thaws a group.
    pub fn freeze(&self, path: &[&str], frozen: bool) -> io::Result<()> {
        let folder = self.folder(path);
        match (self.mount.is_unified(), frozen) {
            (true, _) => write(
                &folder.join("cgroup.freeze"),
                if frozen { "1" } else { "0" },
            ),
            (false, true) => write(&folder.join("freezer.state"), "FROZEN"),
            (false, false) => write(&folder.join("freezer.state"), "THAWED"),
        }
    }

    /// Removes the folders of groups, the deepest first, and that of tasks without one.
    pub fn remove(&self, deepest_first: &[Vec<&str>]) {
        let folders = deepest_first.iter().map(|path| self.folder(path));
        folders.for_each(|folder| remove(&folder));
        if !self.guest {
            remove(&self.folder(&[]));
        }
    }
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    fs::write(file, text)
}

/// Gives a cpuset of v1, which has nothing at first, what the one around it has: nobody could join
/// it otherwise.
fn inherit(folder: &Path) -> io::Result<()> {
    let around = folder.parent().unwrap_or(folder);
    ["cpuset.cpus", "cpuset.mems"].iter().try_for_each(|name| {
        let text = fs::read_to_string(around.join(name))?;
        write(&folder.join(name), text.trim())
    })
}

/// Removes a group's folder. The kernel may need a moment after the last task has died.
fn remove(folder: &Path) {
    for _ in 0..100 {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                sleep(Duration::from_millis(10))
            }
            _ => return,
        }
    }
}

/// Removes what runs left behind whose controllers were killed together with their crews, with the
/// tasks in it: those of a frozen group cannot die before it is thawed.
pub fn sweep(mount: &Mount) {
    for entry in fs::read_dir(&mount.own).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let digits = name.strip_prefix(PREFIX).unwrap_or_default();
        let pid = digits.split('.').next().unwrap_or_default();
        let dead = pid
            .parse::<u32>()
            .is_ok_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
        if dead {
            end_all(&entry.path());
        }
    }
}

/// Thaws a group and all below it, kills their tasks, and removes them.
fn end_all(folder: &Path) {
    // Of these files a hierarchy has the one or the other, or none.
    let _ = write_if_there(&folder.join("freezer.state"), "THAWED");
    let _ = write_if_there(&folder.join("cgroup.freeze"), "0");
    for list in ["cgroup.threads", "tasks"] {
        let tasks = fs::read_to_string(folder.join(list)).unwrap_or_default();
        for task in tasks.lines().filter_map(|line| line.parse().ok()) {
            let _ = process::kill(task, libc::SIGKILL);
        }
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            end_all(&entry.path());
        }
    }
    remove(folder);
}

fn write_if_there(file: &Path, text: &str) -> io::Result<()> {
    match file.exists() {
        true => write(file, text),
        false => Ok(()),
    }
}
