//! Other programs that a run starts.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::process::{die_with, pid};
use super::sched::Attributes;

/// Starts the program `file` in a process group of its own, as an ordinary task whatever this one
/// is, which SIGINT ends also where this one ignores it (as in `warmq ... &` of a script); it is
/// killed when the calling thread ends. What it says goes to `output`. The answer is its
/// process, which the caller reaps.
///
/// # Errors
/// It cannot be started.
pub fn start<'o>(
    file: &Path,
    options: impl Iterator<Item = &'o str>,
    output: &File,
) -> io::Result<i32> {
    let parent = pid();
    let mut command = Command::new(file);
    command
        .args(options)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?)
        .process_group(0);
    let prepare = move || {
        die_with(parent);
        // SAFETY: no handler is set.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
        Attributes::default().apply(0)
    };
    // SAFETY: between fork and exec it makes four system calls, and allocates nothing.
    unsafe { command.pre_exec(prepare) };
    let child = command.spawn()?;
    Ok(child.id() as i32)
}
