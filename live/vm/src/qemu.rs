//! The process of the guest.
//!
//! Nothing of it is in the file system: the guest's files are in anonymous memory, its ports are
//! socket pairs, and the process gets both by inheritance. So nothing can be left behind.
#![allow(
    unsafe_code,
    reason = "what a child does between fork and exec (see `inherit`) is unsafe to say"
)]

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

use crate::VmError;
use crate::boots::Machine;
use crate::pack::find_on_host;

const PROGRAM: &str = "qemu-system-x86_64";

/// A running guest, killed when this is dropped.
pub(crate) struct Qemu {
    process: Child,
    /// The kernel's console.
    pub console: UnixStream,
    /// The messages of `/init`.
    pub control: UnixStream,
    pub stdout: UnixStream,
    pub stderr: UnixStream,
    /// QEMU's own commands.
    pub monitor: UnixStream,
    /// Where it goes on from, which it reads by a path of ours.
    _state: Option<File>,
}

/// Our end and the guest's end.
type Pair = (UnixStream, OwnedFd);

fn pair() -> Result<Pair, VmError> {
    let (ours, theirs) = UnixStream::pair().map_err(VmError::system("make a port of the guest"))?;
    Ok((ours, theirs.into()))
}

/// Where QEMU is.
pub(crate) fn program() -> Result<PathBuf, VmError> {
    find_on_host(PROGRAM.as_ref()).ok_or_else(|| {
        let what = format!("this machine has no {PROGRAM}");
        VmError::missing(what, "apt-get install qemu-system-x86")
    })
}

/// A file without a name, for the guest's files.
pub(crate) fn nameless_file() -> Result<File, VmError> {
    let file = memfd_create("warmq-initramfs", MemfdFlags::CLOEXEC);
    let refused = |error: rustix::io::Errno| VmError::system("reserve memory")(error.into());
    Ok(File::from(file.map_err(refused)?))
}

/// The path of one of our files for other processes, for as long as we have it.
pub(crate) fn path_of(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

impl Qemu {
    /// Starts the guest, or lets one go on from the state of an equal one.
    ///
    /// # Errors
    /// When QEMU is missing or cannot be started.
    pub(crate) fn start(
        machine: &Machine,
        initramfs: File,
        state: Option<File>,
    ) -> Result<Qemu, VmError> {
        let program = program()?;
        let ports = [pair()?, pair()?, pair()?, pair()?, pair()?];
        let theirs = ports.each_ref().map(|(_, theirs)| theirs.as_raw_fd());
        let mut command = Command::new(program);
        command
            .args([
                "-nodefaults",
                "-no-user-config",
                "-display",
                "none",
                "-no-reboot",
                // Its threads get names, by which the guest's CPUs are known.
                "-name",
                "warmq,debug-threads=on",
            ])
            .args(machine.hardware.options())
            .args(boot_options(machine, initramfs.as_raw_fd()))
            .args(port_options(theirs))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut inherited = vec![initramfs.into()];
        let [console, control, stdout, stderr, monitor] = ports.map(|(ours, theirs)| {
            inherited.push(theirs);
            ours
        });
        if let Some(state) = &state {
            command.args(["-incoming", &format!("exec:cat {}", path_of(state))]);
        }
        inherit(&mut command, inherited);
        let process = command
            .spawn()
            .map_err(VmError::system(format!("start {PROGRAM}")))?;
        // Dropping the command closes our copies of the guest's ends, so that we see when it dies.
        drop(command);
        Ok(Qemu {
            process,
            _state: state,
            console,
            control,
            stdout,
            stderr,
            monitor,
        })
    }

    /// Sends a guest that has booted its files. If it ends before it has all, whoever listens to it
    /// will notice.
    ///
    /// # Errors
    /// When there cannot be another thread.
    pub(crate) fn give(&self, mut files: File) -> Result<(), VmError> {
        let refused = || VmError::system("send the guest its files");
        let mut control = self.control.try_clone().map_err(refused())?;
        let send = move || {
            let sent = io::copy(&mut files, &mut control);
            let _ = sent.and_then(|_| control.write_all(b"\ngo\n"));
        };
        let started = thread::Builder::new().spawn(send);
        started.map(drop).map_err(refused())
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Ends the guest if it still runs, and returns QEMU's error messages.
    pub(crate) fn end(&mut self) -> String {
        let _ = self.process.kill();
        let said = self.process.stderr.take().map(io::read_to_string);
        let _ = self.process.wait();
        said.and_then(Result::ok).unwrap_or_default()
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Passes these files on to the child under their numbers, and lets it die with the thread that
/// started it.
fn inherit(command: &mut Command, files: Vec<OwnedFd>) {
    let parent = getpid();
    let between = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // If the parent has died already, the signal will not come.
        if getppid() != Some(parent) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        for file in &files {
            fcntl_setfd(file, FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls only: it takes no lock and allocates nothing.
    unsafe { command.pre_exec(between) };
}

fn boot_options(machine: &Machine, initramfs: i32) -> Vec<OsString> {
    let initramfs = format!("/proc/self/fd/{initramfs}");
    let image = machine.kernel.image.clone().into_os_string();
    vec![
        "-kernel".into(),
        image,
        "-initrd".into(),
        initramfs.into(),
        "-append".into(),
        machine.arguments.clone().into(),
    ]
}

/// The kernel's console is a serial port, because that works from its first message on. Everything
/// else goes through virtio ports, which pass bytes on unchanged and in large blocks.
fn port_options([console, control, stdout, stderr, monitor]: [i32; 5]) -> Vec<String> {
    let mut options = vec![
        "-chardev".to_owned(),
        format!("socket,id=console,fd={console}"),
        "-serial".to_owned(),
        "chardev:console".to_owned(),
        "-device".to_owned(),
        "virtio-serial-pci".to_owned(),
        "-chardev".to_owned(),
        format!("socket,id=monitor,fd={monitor}"),
        "-mon".to_owned(),
        "chardev=monitor,mode=readline".to_owned(),
        // Who goes on from a kept machine has random numbers of its own.
        "-device".to_owned(),
        "vmgenid,guid=auto".to_owned(),
    ];
    for (name, fd) in [("control", control), ("stdout", stdout), ("stderr", stderr)] {
        options.push("-chardev".to_owned());
        options.push(format!("socket,id={name},fd={fd}"));
        options.push("-device".to_owned());
        options.push(format!("virtserialport,chardev={name},name=warmq.{name}"));
    }
    options
}
