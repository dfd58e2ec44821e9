//! scx_warmq as a drill sees it: a process that it starts and stops, and figures.

use std::fs::{self, File};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::must;
use crate::report::Failure;
use crate::sys;
use crate::workers::wait_until;

/// How long loading may take. The verifier is slow in an emulated guest.
const LOADING: Duration = Duration::from_secs(60);

/// The kernel's state of sched_ext: `enabled`, `disabled`...
pub fn state() -> String {
    fs::read_to_string("/sys/kernel/sched_ext/state")
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// The file for its messages. A pipe that nobody reads would block it.
const SAID: &str = "/tmp/scx_warmq.said";

/// A running scx_warmq; stopped when it is dropped.
pub struct Scheduler {
    child: Child,
}

impl Scheduler {
    /// Starts it and waits until it schedules.
    pub fn start(options: &[&str]) -> Result<Scheduler, Failure> {
        let said = File::create(SAID).map_err(|error| Failure(format!("{SAID}: {error}")))?;
        let child = Command::new("scx_warmq")
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            .spawn()
            .map_err(|error| Failure(format!("scx_warmq cannot be started: {error}")))?;
        let mut scheduler = Scheduler { child };
        let exited = |child: &mut Child| child.try_wait().ok().flatten().is_some();
        wait_until(LOADING, || {
            state() == "enabled" || exited(&mut scheduler.child)
        });
        if exited(&mut scheduler.child) || state() != "enabled" {
            return Err(Failure(format!(
                "it does not load: {}",
                scheduler.complaint()
            )));
        }
        wait_until(Duration::from_secs(5), || figures().is_ok());
        Ok(scheduler)
    }

    /// What it wrote on its standard error; ends it if it still runs.
    pub fn complaint(&mut self) -> String {
        let _ = self.child.kill();
        let lines = self.said();
        let dump = lines
            .lines()
            .find_map(|line| line.split_once(" is in "))
            .map(|(_, path)| path);
        let dump = dump.and_then(|path| fs::read_to_string(path.trim()).ok());
        format!("{lines}{}", dump.unwrap_or_default())
    }

    /// What it has written on its standard error so far.
    pub fn said(&self) -> String {
        let said = fs::read(SAID).unwrap_or_default();
        String::from_utf8_lossy(&said).into_owned()
    }

    /// Whether the process still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().ok().flatten().is_none()
    }

    /// Fails unless it still schedules.
    pub fn still_there(&mut self) -> Result<(), Failure> {
        must!(
            self.runs() && state() == "enabled",
            "it is gone; sched_ext is {}: {}",
            state(),
            self.complaint()
        );
        Ok(())
    }

    /// Waits for it to end by itself.
    pub fn wait(&mut self) -> Option<ExitStatus> {
        wait_until(Duration::from_secs(20), || {
            self.child.try_wait().ok().flatten().is_some()
        });
        self.child.try_wait().ok().flatten()
    }

    /// Sends a signal and waits for the end.
    pub fn end(&mut self, signal: i32) -> Option<ExitStatus> {
        sys::signal(self.child.id(), signal);
        self.wait()
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        if self.runs() && self.end(libc::SIGINT).is_none() {
            let _ = self.child.kill();
        }
        wait_until(Duration::from_secs(10), || state() != "enabled");
    }
}

/// The output of `scx_warmq --stats-json`.
pub struct Figures(Value);

/// Asks the running scheduler.
pub fn figures() -> Result<Figures, Failure> {
    let output = Command::new("scx_warmq").arg("--stats-json").output();
    let output = output.map_err(|error| Failure(format!("scx_warmq --stats-json: {error}")))?;
    if !output.status.success() {
        return Err(Failure(format!(
            "scx_warmq --stats-json: {}",
            String::from_utf8_lossy(&output.stderr)
        )));
    }
    let value = serde_json::from_slice(&output.stdout)
        .map_err(|error| Failure(format!("--stats-json: {error}")))?;
    Ok(Figures(value))
}

impl Figures {
    /// How many members each group of the process `tgid` has (0: of everybody).
    pub fn groups(&self, tgid: u32) -> Vec<u64> {
        let all = self.0["groups"].as_array().map_or(&[][..], |groups| groups);
        let of_process = all
            .iter()
            .filter(|group| tgid == 0 || group["tgid"].as_u64() == Some(u64::from(tgid)));
        of_process
            .filter_map(|group| group["members"].as_u64())
            .collect()
    }
}
