//! Where a measurement was made.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::error::BenchError;
use crate::thread;

/// What a measurement depends on and cannot change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Host {
    /// The CPUs that this program may use.
    pub cpus: Vec<u16>,
    /// The release of the kernel, as `uname -r` has it.
    pub kernel: String,
    /// The scheduler that was loaded into the kernel; `None` for the kernel's own.
    pub scheduler: Option<String>,
    /// A scheduler listens to hints.
    pub hints_heard: bool,
}

impl Host {
    /// As it is now.
    ///
    /// # Errors
    /// [`BenchError::System`] where the kernel does not tell the CPUs.
    pub fn now() -> Result<Host, BenchError> {
        let cpus = thread::allowed_cpus()?;
        let root = Path::new("/");
        Ok(Host {
            cpus: cpus.into_iter().map(|cpu| cpu.0).collect(),
            kernel: text(&root.join("proc/sys/kernel/osrelease")).unwrap_or_default(),
            scheduler: scheduler_below(root),
            hints_heard: warmq_hint::listening(),
        })
    }
}

/// The scheduler that was loaded into the kernel whose /sys lies in `root`. `None` where the kernel
/// runs its own, whether or not it could run another.
pub fn scheduler_below(root: &Path) -> Option<String> {
    let folder = root.join("sys/kernel/sched_ext");
    let enabled = text(&folder.join("state"))? == "enabled";
    let name =
        || text(&folder.join("root/ops")).unwrap_or_else(|| "a scheduler without a name".into());
    enabled.then(name)
}

fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}
