//! A process that removes the recorder's tracing instance when the recorder is killed.
//!
//! A process that is killed removes nothing, and its instance goes on recording into the kernel's
//! memory. So another one waits for its end: its standard input ends with the recorder, however
//! that dies. It is in a process group of its own, so that Ctrl-C does not reach it.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The kernel closes a killed recorder's files one after another: the pipe that shows its end may
/// come before those of its instance.
const TRIES: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(50);

/// The process that waits. Without it the next recording removes what was left.
pub struct Sweeper(Option<Child>);

impl Sweeper {
    /// Starts it, if it can be started.
    pub fn start() -> Sweeper {
        let program = std::env::current_exe().ok();
        let started = program.and_then(|program| {
            Command::new(program)
                .args(["watch", "--sweep"])
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .process_group(0)
                .spawn()
                .ok()
        });
        Sweeper(started)
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // There is nothing left to remove.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What that process does: waits until its standard input ends, then removes what was left.
pub fn sweep_when_left() {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    for _ in 0..TRIES {
        std::thread::sleep(BETWEEN);
        // Where there is no tracefs, nothing was left.
        if warmq_record::sweep_now().is_err() {
            return;
        }
    }
}
