//! What a kernel is: its release, how it was built and booted, what is set on its scheduler, and
//! who schedules.

mod config;
mod preemption;
mod sessions;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use self::config::Config;
pub use self::sessions::sessions_obstacle;

/// A kernel that runs here, or one that is about to run in a guest. Facts that nobody has are
/// empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunningKernel {
    /// Its release: `6.18.15-cloud-amd64`.
    pub release: String,
    /// Ticks a second.
    pub hz: String,
    /// Its preemption model: `none`, `voluntary`, `full`, `lazy`.
    pub preemption: String,
    /// Where that was found, in a few words; empty where it was not.
    pub preemption_from: &'static str,
    /// Where its files are; none for a kernel that does not run yet.
    root: Option<PathBuf>,
    config: Option<Config>,
}

/// The fact whether each session is a group of its own, for processes where this one is: `y` or
/// `n`.
const SESSIONS: &str = "sessions";
const AUTOGROUP: &str = "CONFIG_SCHED_AUTOGROUP";

impl RunningKernel {
    /// Looks at /proc, debugfs and the kernel's configuration.
    pub fn look() -> RunningKernel {
        RunningKernel::below(Path::new("/"))
    }

    /// The same of a file system that begins at `root`.
    pub fn below(root: &Path) -> RunningKernel {
        let release = text(root, "proc/sys/kernel/osrelease");
        let config = Config::below(root, &release);
        let (preemption, preemption_from) = preemption::below(root, config.as_ref());
        RunningKernel {
            hz: hz(config.as_ref()),
            preemption,
            preemption_from,
            release,
            root: Some(root.to_owned()),
            config,
        }
    }

    /// A kernel that a guest boots with `command_line`; its configuration is `config`, where that
    /// is known.
    pub fn booting(release: &str, config: Option<&str>, command_line: &str) -> RunningKernel {
        let config = config.map(Config::of);
        let (preemption, preemption_from) = preemption::of_boot(command_line, config.as_ref());
        RunningKernel {
            release: release.to_owned(),
            hz: hz(config.as_ref()),
            preemption,
            preemption_from,
            root: None,
            config,
        }
    }

    /// The fact that the kernel calls `name`: the text of a file (`/proc/...`), the value of an
    /// option of its configuration (`CONFIG_...`), or `sessions`. Empty if the kernel has no such
    /// thing, or has set nothing yet; none if nobody here can know.
    pub fn fact(&self, name: &str) -> Option<String> {
        let option = |name: &str| {
            let config = self.config.as_ref()?;
            Some(config.option(name).unwrap_or_default().to_owned())
        };
        let yes = |yes: bool| if yes { "y" } else { "n" }.to_owned();
        match (&self.root, name.strip_prefix('/')) {
            (Some(root), Some(path)) => file(root, path),
            (None, Some(_)) => Some(String::new()),
            (Some(root), None) if name == SESSIONS => Some(yes(sessions_obstacle(root).is_none())),
            (None, None) if name == SESSIONS => Some(yes(option(AUTOGROUP)? == "y")),
            (_, None) => option(name),
        }
    }
}

fn hz(config: Option<&Config>) -> String {
    let hz = config.and_then(|config| config.option("CONFIG_HZ"));
    hz.unwrap_or_default().to_owned()
}

/// The trimmed text of a file below `root`; empty where there is none.
fn text(root: &Path, path: &str) -> String {
    let text = fs::read_to_string(root.join(path)).unwrap_or_default();
    text.trim().to_owned()
}

/// The same; none where it cannot be read, or where all files of its folder are missing: then it is
/// not the kernel that lacks it.
fn file(root: &Path, path: &str) -> Option<String> {
    let path = root.join(path);
    match fs::read_to_string(&path) {
        Ok(text) => Some(text.trim().to_owned()),
        Err(why) if why.kind() == ErrorKind::NotFound && path.parent()?.is_dir() => {
            Some(String::new())
        }
        Err(_) => None,
    }
}

/// The sched_ext scheduler that is loaded, or the kernel's own.
pub fn running_scheduler() -> String {
    match text(Path::new("/"), "sys/kernel/sched_ext/root/ops").as_str() {
        "" => "kernel".to_owned(),
        loaded => loaded.to_owned(),
    }
}
