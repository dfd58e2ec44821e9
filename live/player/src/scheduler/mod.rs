//! Schedulers of sched_ext: loaded by starting their programs, unloaded by ending them.
//!
//! A program of sched_ext keeps its scheduler loaded for as long as it lives, and the kernel ends
//! the program's stay when it throws the scheduler out. So a scheduler is a child of the controller
//! here, and is killed with it. What its program says goes into a file in memory, whose last lines
//! tell why it did not stay.

mod counters;
mod find;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub use counters::{Counter, Counting};
pub use find::find;

use crate::error::PlayError;
use crate::sys::clock::now_ns;
use crate::sys::process::{self, End};
use crate::sys::{files, program};

/// Where sched_ext says what is loaded, below the root of the file system.
const FOLDER: &str = "sys/kernel/sched_ext";
const ENABLED: &str = "enabled";
const DISABLED: &str = "disabled";

/// How long a scheduler may take to come or to go, in seconds. 6 s were seen in an emulated guest
/// on a busy machine, and more than 10 s on one that builds and emulates two others.
const PATIENCE_S: u32 = 60;
/// Of what a program printed, so many lines are repeated, and so many bytes are read.
const LINES: usize = 5;
const LAST_BYTES: u64 = 8 << 10;

/// Lets a moment pass while a scheduler comes or goes.
///
/// # Errors
/// Why there is no point in waiting any longer.
pub type Pause<'p> = dyn FnMut() -> Result<(), PlayError> + 'p;

/// The schedulers of a run: at most one at a time. Dropped, it unloads the one that is there.
#[derive(Debug)]
pub struct Schedulers {
    folder: PathBuf,
    patience_s: u32,
    /// The name and the options of the one that a run begins with; none: the kernel's own.
    first: Option<(String, String)>,
    loaded: Option<Loaded>,
}

/// A scheduler whose program was started.
#[derive(Debug)]
struct Loaded {
    name: String,
    pid: i32,
    output: File,
    ended: Option<End>,
}

impl Schedulers {
    /// Those of the kernel whose files are below `root`. `first` is the name and the options of the
    /// one that the run begins with, if that is not the kernel's own.
    pub fn new(root: &Path, first: Option<(String, String)>) -> Schedulers {
        Schedulers {
            folder: root.join(FOLDER),
            patience_s: PATIENCE_S,
            first,
            loaded: None,
        }
    }

    /// How many seconds an exchange takes at most: one goes, is killed, and another comes.
    pub fn longest_s(&self) -> u32 {
        3 * self.patience_s
    }

    fn deadline(&self) -> u64 {
        now_ns() + u64::from(self.patience_s) * 1_000_000_000
    }

    /// Whether this process may load any.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), PlayError> {
        let refused = |why: &str, fix: &str| PlayError::Refused {
            what: "a scheduler cannot be loaded".to_owned(),
            why: why.to_owned(),
            fix: fix.to_owned(),
        };
        if !self.folder.exists() {
            let fix = "use one of Linux 6.12 or later with CONFIG_SCHED_CLASS_EXT";
            return Err(refused("this kernel has no sched_ext", fix));
        }
        if !process::is_root() {
            let why = "that needs CAP_BPF and CAP_SYS_ADMIN, and this is not root";
            return Err(refused(why, "play it as root"));
        }
        self.check_free()
    }

    /// That no other program's scheduler is loaded.
    fn check_free(&self) -> Result<(), PlayError> {
        if self.state() == DISABLED {
            return Ok(());
        }
        let other = fs::read_to_string(self.folder.join("root/ops")).unwrap_or_default();
        Err(PlayError::Refused {
            what: "a scheduler cannot be loaded".to_owned(),
            why: format!("another one is there: {} ({})", other.trim(), self.state()),
            fix: "end its program first".to_owned(),
        })
    }

    /// `enabled`, `disabled`, or something between them.
    fn state(&self) -> String {
        let state = fs::read_to_string(self.folder.join("state")).unwrap_or_default();
        state.trim().to_owned()
    }

    /// Loads the scheduler that the run begins with in place of the one that is there.
    ///
    /// # Errors
    /// As of [`load`](Schedulers::load) and [`unload`](Schedulers::unload).
    pub fn load_first(&mut self, pause: &mut Pause<'_>) -> Result<(), PlayError> {
        match self.first.clone() {
            Some((name, options)) => self.load(&name, &options, pause),
            None => self.unload(pause),
        }
    }

    /// Those of `wanted` that the scheduler that is there counts; none, if this run loaded none.
    pub fn counting(&self, wanted: &[Counter]) -> Option<Counting> {
        let loaded = self.loaded.as_ref()?;
        Some(Counting::of(loaded.pid, wanted))
    }

    /// Unloads the scheduler that is there and loads that of the program `name`, which gets
    /// `options`, separated by spaces.
    ///
    /// # Errors
    /// No such program; it does not stay, or does not come in time; what `pause` says.
    pub fn load(
        &mut self,
        name: &str,
        options: &str,
        pause: &mut Pause<'_>,
    ) -> Result<(), PlayError> {
        let file = find(name)?;
        self.unload(pause)?;
        self.check_free()?;
        let refused = |error: std::io::Error| {
            let what = format!("the program of the scheduler {name} cannot be started");
            PlayError::refused(what, &error, "look at the file")
        };
        let output = files::memory_file("scheduler").map_err(refused)?;
        let pid = program::start(&file, options.split_whitespace(), &output).map_err(refused)?;
        let (patience_s, deadline) = (self.patience_s, self.deadline());
        let loaded = self.loaded.insert(Loaded {
            name: name.to_owned(),
            pid,
            output,
            ended: None,
        });
        let state = self.folder.join("state");
        loop {
            // Whether it lives is asked first: one that was thrown out at once was enabled before.
            let ended = loaded.has_ended();
            if !ended && fs::read_to_string(&state).is_ok_and(|state| state.trim() == ENABLED) {
                return Ok(());
            }
            if ended || now_ns() >= deadline {
                let what = match ended {
                    true => "does not stay".to_owned(),
                    false => format!("is not there after {patience_s} s"),
                };
                return Err(loaded.failed(&what));
            }
            pause()?;
        }
    }

    /// Unloads the scheduler that this run has loaded, if there is one: the kernel's own takes
    /// over.
    ///
    /// # Errors
    /// It cannot be ended; what `pause` says.
    pub fn unload(&mut self, pause: &mut Pause<'_>) -> Result<(), PlayError> {
        for signal in [libc::SIGINT, libc::SIGKILL] {
            let Some(loaded) = &mut self.loaded else {
                return Ok(());
            };
            if !loaded.has_ended() {
                // It may end in between.
                let _ = process::kill(loaded.pid, signal);
            }
            let deadline = self.deadline();
            while now_ns() < deadline {
                let ended = self.loaded.as_mut().is_none_or(Loaded::has_ended);
                if ended && self.state() == DISABLED {
                    self.loaded = None;
                    return Ok(());
                }
                pause()?;
            }
        }
        match &self.loaded {
            Some(loaded) => Err(loaded.failed("cannot be unloaded")),
            None => Ok(()),
        }
    }

    /// Why the scheduler that was loaded is there no more, if that is so.
    pub fn thrown_out(&mut self) -> Option<PlayError> {
        let loaded = self.loaded.as_mut()?;
        loaded
            .has_ended()
            .then(|| loaded.thrown_out("was thrown out, or has ended"))
    }

    /// As [`thrown_out`](Schedulers::thrown_out), at the end of a run: also if the program lives on
    /// without its scheduler. Some load theirs again when a CPU has come or gone, and may.
    pub fn missing(&mut self, pause: &mut Pause<'_>) -> Option<PlayError> {
        let deadline = self.deadline();
        loop {
            let state = self.state();
            let loaded = self.loaded.as_mut()?;
            let ended = loaded.has_ended();
            if !ended && state == ENABLED {
                return None;
            }
            if ended || now_ns() >= deadline {
                return Some(loaded.thrown_out("was thrown out"));
            }
            if let Err(error) = pause() {
                return Some(error);
            }
        }
    }
}

impl Drop for Schedulers {
    fn drop(&mut self) {
        let _ = self.unload(&mut || {
            process::readable([-1], 5);
            Ok(())
        });
    }
}

impl Loaded {
    fn has_ended(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = process::bury_one(self.pid);
        }
        self.ended.is_some()
    }

    fn thrown_out(&self, what: &str) -> PlayError {
        PlayError::ThrownOut(self.failed(what).to_string())
    }

    fn failed(&self, what: &str) -> PlayError {
        let said = last_lines(&self.output);
        let ended = match self.ended {
            Some(End::Exit(code)) => format!("its program ended with status {code}"),
            Some(End::Signal(signal)) => format!("its program was ended by signal {signal}"),
            None => "its program lives".to_owned(),
        };
        PlayError::Refused {
            what: format!("the scheduler {} {what}", self.name),
            why: match said.is_empty() {
                true => format!("{ended} and said nothing"),
                false => format!("{ended} and said: {said}"),
            },
            fix: "try it alone, and look at the kernel's log".to_owned(),
        }
    }
}

/// The last lines of what a program said, in one.
fn last_lines(output: &File) -> String {
    let length = output.metadata().map_or(0, |file| file.len());
    let mut bytes = vec![0; length.min(LAST_BYTES) as usize];
    let from = length - bytes.len() as u64;
    let read = output.read_at(&mut bytes, from).unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines.collect();
    lines[lines.len().saturating_sub(LINES)..].join("; ")
}

#[cfg(test)]
mod tests;
