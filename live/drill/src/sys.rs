//! The few system calls that drills need.
#![allow(
    unsafe_code,
    reason = "system calls that the standard library does not have"
)]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

/// CPU time of the calling thread.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.expect("every kernel has this clock").into()
}

/// Confines a process to `cpus`; 0: the calling thread.
pub fn confine(pid: i32, cpus: &[usize]) {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu).expect("a CPU number below 1024");
    }
    // It may have ended, and a drill that takes CPUs offline may ask for one that is gone: then
    // nothing changes.
    let _ = sched_setaffinity(Pid::from_raw(pid), &set);
}

/// Writes a hint for a thread into the map of task storage that is pinned at `path`: 32 bytes that
/// begin with the hint, by a pidfd of the thread.
pub fn write_task_hint(path: &str, tid: i32, hint: u64) -> io::Result<()> {
    const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
    const BPF_OBJ_GET: libc::c_long = 7;
    let path = CString::new(path)?;
    // union bpf_attr of linux/bpf.h; what is not set is 0.
    let opened = bpf(BPF_OBJ_GET, &[path.as_ptr() as u64, 0])?;
    // SAFETY: no pointers.
    let pidfd = owned(unsafe { libc::syscall(libc::SYS_pidfd_open, tid, libc::PIDFD_THREAD) })?;
    let (key, value) = (pidfd.as_raw_fd(), [hint, 0, 0, 0]);
    let pointers = [
        std::ptr::from_ref(&key) as u64,
        std::ptr::from_ref(&value) as u64,
    ];
    let map = opened.as_raw_fd() as u64;
    bpf_status(BPF_MAP_UPDATE_ELEM, &[map, pointers[0], pointers[1], 0]).map(drop)
}

fn bpf_status(command: libc::c_long, attributes: &[u64]) -> io::Result<libc::c_long> {
    let size = size_of_val(attributes);
    // SAFETY: the kernel reads `size` bytes, and what they point to, which outlives the call.
    match unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), size) } {
        -1 => Err(io::Error::last_os_error()),
        status => Ok(status),
    }
}

fn bpf(command: libc::c_long, attributes: &[u64]) -> io::Result<OwnedFd> {
    bpf_status(command, attributes).and_then(owned)
}

fn owned(fd: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(fd) {
        // SAFETY: the kernel just made it, for the caller alone.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sends a signal to a process.
pub fn signal(pid: u32, signal: i32) {
    // SAFETY: no pointers.
    unsafe { libc::kill(pid as i32, signal) };
}

/// Makes a process that does `life` and ends. Returns its id to the caller.
pub fn fork(life: impl FnOnce()) -> io::Result<i32> {
    // SAFETY: what the child does (see members.rs) needs no lock that another thread may hold.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: no pointers; the child ends with the thread that made it, and runs no
            // destructors.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            life();
            unsafe { libc::_exit(0) }
        }
        pid => Ok(pid),
    }
}

/// Whether a child has ended; it is reaped.
pub fn has_ended(pid: i32) -> bool {
    // SAFETY: the kernel may write no status.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) != 0 }
}

/// Makes the calling thread a real-time one (SCHED_FIFO) with that priority, 1 to 99.
pub fn be_real_time(priority: i32) -> io::Result<()> {
    let param = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: `param` outlives the call.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &param) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Waits until every RCU reader of now is done (synchronize_rcu()).
pub fn await_readers() {
    // SAFETY: no pointers. MEMBARRIER_CMD_GLOBAL is 1.
    unsafe { libc::syscall(libc::SYS_membarrier, 1, 0, 0) };
}
