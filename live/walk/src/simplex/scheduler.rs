//! Loads a `sched_ext` scheduler by its own command, and takes it out again.
#![allow(
    unsafe_code,
    reason = "what a child does between fork and exec must be promised to be harmless"
)]

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::unistd::Pid;

use crate::error::BenchError;

/// Where the kernel tells of its loadable scheduler.
const SCHED_EXT: &str = "/sys/kernel/sched_ext";
/// A scheduler that takes longer than this to load or to leave is given up.
const PATIENCE: Duration = Duration::from_secs(20);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// A command that loads a scheduler.
#[derive(Clone, Debug)]
pub struct Loader {
    command: String,
    folder: PathBuf,
}

/// A loaded scheduler. It leaves when this is dropped, or when this program ends in any way: its
/// process is sent SIGINT then.
#[derive(Debug)]
pub struct Loaded {
    child: Child,
    folder: PathBuf,
    last_words: Arc<Mutex<String>>,
}

impl Loader {
    /// Of `command`, a line for the shell.
    ///
    /// # Errors
    /// A kernel without `sched_ext`; one that has a scheduler loaded already.
    pub fn new(command: &str) -> Result<Loader, BenchError> {
        Loader::at(command, Path::new(SCHED_EXT))
    }

    fn at(command: &str, folder: &Path) -> Result<Loader, BenchError> {
        let fix = "boot Linux 6.12 or later with CONFIG_SCHED_CLASS_EXT, or leave --scheduler out";
        let loader = Loader {
            command: command.to_owned(),
            folder: folder.to_owned(),
        };
        match state(folder).as_deref() {
            None => Err(loader.cannot("load", "this kernel has no sched_ext", fix)),
            Some("disabled") => Ok(loader),
            Some(_) => {
                let fix = "stop the scheduler that is loaded, or leave --scheduler out";
                let name = ops(folder).unwrap_or_default();
                let what = format!("another scheduler is loaded already ({name})");
                Err(loader.cannot("load", what, fix))
            }
        }
    }

    /// Starts the command and waits until the kernel says that the scheduler is enabled.
    ///
    /// # Errors
    /// When the command cannot be started, ends, or takes too long.
    pub fn load(&self) -> Result<Loaded, BenchError> {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("exec {}", self.command)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        // SAFETY: prctl and sigaction are one system call each; they take no lock and allocate
        // nothing.
        unsafe { command.pre_exec(ends_by_interrupt) };
        let spawned = command.spawn();
        let mut child = spawned.map_err(|error| {
            self.cannot("start", error.to_string(), "install a shell called sh")
        })?;
        let last_words = Arc::new(Mutex::new(String::new()));
        if let Some(stderr) = child.stderr.take() {
            listen(stderr, Arc::clone(&last_words));
        }
        let mut loaded = Loaded {
            child,
            folder: self.folder.clone(),
            last_words,
        };
        let enabled = |loaded: &mut Loaded| loaded.says("enabled") || loaded.is_gone();
        let in_time = loaded.wait_until(enabled);
        if in_time && loaded.says("enabled") {
            return Ok(loaded);
        }
        let words = loaded.said();
        let fix = "try the command of --scheduler by hand";
        let what = match loaded.is_gone() {
            true => format!("it ended before it was enabled{words}"),
            false => format!("it was not enabled in {} s{words}", PATIENCE.as_secs()),
        };
        Err(self.cannot("load", what, fix))
    }

    fn cannot(&self, verb: &str, what: impl Into<String>, fix: &'static str) -> BenchError {
        BenchError::System {
            action: format!("{verb} '{}' (--scheduler)", self.command),
            source: io::Error::other(what.into()),
            fix,
        }
    }
}

impl Loaded {
    /// The name that the kernel knows it by.
    pub fn name(&self) -> Option<String> {
        ops(&self.folder)
    }

    /// Whether it is still there: the kernel ejects a scheduler that breaks its rules.
    pub fn is_enabled(&self) -> bool {
        self.says("enabled")
    }

    /// Ends it by SIGINT and waits until the kernel says that it is disabled.
    ///
    /// # Errors
    /// When it does not go, or had gone before.
    pub fn unload(mut self) -> Result<(), BenchError> {
        let ejected = !self.is_enabled();
        self.interrupt();
        let gone = self.wait_until(|it| it.is_gone() && it.says("disabled"));
        let what = match (ejected, gone) {
            (false, true) => return Ok(()),
            (true, _) => format!("the kernel had ejected it meanwhile{}", self.said()),
            (false, false) => format!("it did not leave after SIGINT{}", self.said()),
        };
        Err(BenchError::System {
            action: "measure with the scheduler of --scheduler".to_owned(),
            source: io::Error::other(what),
            fix: "look into the kernel's log (dmesg)",
        })
    }

    fn says(&self, expected: &str) -> bool {
        state(&self.folder).as_deref() == Some(expected)
    }

    fn is_gone(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)) | Err(_))
    }

    fn interrupt(&mut self) {
        if !self.is_gone() {
            // Not waited for yet, so that the number is still this child's.
            let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT);
        }
    }

    fn wait_until(&mut self, mut reached: impl FnMut(&mut Loaded) -> bool) -> bool {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if reached(self) {
                return true;
            }
            thread::sleep(BETWEEN_LOOKS);
        }
        false
    }

    /// What it said last, to be put behind a sentence.
    fn said(&self) -> String {
        match self.last_words.lock() {
            Ok(words) if !words.is_empty() => format!("; it said: {words}"),
            _ => String::new(),
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.interrupt();
        if !self.wait_until(Loaded::is_gone) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Of the child, before it becomes the command: SIGINT ends it, and comes when we die. A shell
/// script starts background jobs with SIGINT ignored, which children inherit.
fn ends_by_interrupt() -> io::Result<()> {
    // SAFETY: no handler is installed, the default is restored.
    unsafe { signal(Signal::SIGINT, SigHandler::SigDfl)? };
    Ok(set_pdeathsig(Signal::SIGINT)?)
}

/// Keeps the last line that the command wrote, and lets it write on.
fn listen(stderr: ChildStderr, last_words: Arc<Mutex<String>>) {
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if let Ok(mut words) = last_words.lock()
                && !line.trim().is_empty()
            {
                *words = line.trim().to_owned();
            }
        }
    });
}

fn state(folder: &Path) -> Option<String> {
    let text = fs::read_to_string(folder.join("state")).ok()?;
    Some(text.trim().to_owned())
}

fn ops(folder: &Path) -> Option<String> {
    let text = fs::read_to_string(folder.join("root/ops")).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder like the kernel's, in which scripts play the scheduler.
    fn folder(name: &str) -> PathBuf {
        let unique = format!("warmq-simplex-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(unique);
        fs::create_dir_all(folder.join("root")).unwrap();
        fs::write(folder.join("state"), "disabled\n").unwrap();
        folder
    }

    fn script(folder: &Path, text: &str) -> Loader {
        let path = folder.join("script.sh");
        fs::write(
            &path,
            text.replace("STATE", &folder.join("state").display().to_string()),
        )
        .unwrap();
        Loader::at(&format!("sh '{}'", path.display()), folder).unwrap()
    }

    const FINE: &str = "trap 'echo disabled > STATE; exit 0' INT
echo enabled > STATE
while :; do sleep 0.05; done";

    #[test]
    fn a_scheduler_comes_and_goes() {
        let folder = folder("fine");
        let loaded = script(&folder, FINE).load().unwrap();
        fs::write(folder.join("root/ops"), "trial\n").unwrap();
        assert!(loaded.is_enabled());
        assert_eq!(loaded.name().as_deref(), Some("trial"));
        loaded.unload().unwrap();
        assert_eq!(state(&folder).as_deref(), Some("disabled"));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn one_that_is_forgotten_goes_too() {
        let folder = folder("forgotten");
        drop(script(&folder, FINE).load().unwrap());
        assert_eq!(state(&folder).as_deref(), Some("disabled"));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn one_that_cannot_load_is_quoted() {
        let folder = folder("broken");
        let error = script(&folder, "echo 'no such map' >&2; sleep 0.2; exit 1").load();
        let text = error.unwrap_err().to_string();
        assert!(
            text.contains("no such map") && text.contains("by hand"),
            "{text}"
        );
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn one_that_was_ejected_does_not_count() {
        let folder = folder("ejected");
        let loaded = script(&folder, FINE).load().unwrap();
        fs::write(folder.join("state"), "disabled\n").unwrap();
        let text = loaded.unload().unwrap_err().to_string();
        assert!(text.contains("ejected"), "{text}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_kernel_that_cannot_or_is_taken_is_told_of_with_the_mend() {
        let folder = folder("taken");
        fs::write(folder.join("state"), "enabled\n").unwrap();
        fs::write(folder.join("root/ops"), "bpfland\n").unwrap();
        let text = Loader::at("x", &folder).unwrap_err().to_string();
        assert!(
            text.contains("bpfland") && text.contains("stop the scheduler"),
            "{text}"
        );
        fs::remove_dir_all(&folder).unwrap();
        let text = Loader::at("x", &folder).unwrap_err().to_string();
        assert!(text.contains("CONFIG_SCHED_CLASS_EXT"), "{text}");
    }
}
