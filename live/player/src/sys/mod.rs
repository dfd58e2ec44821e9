//! The system calls that a run needs, each behind a function that cannot be misused.

#![allow(
    unsafe_code,
    reason = "system calls, and memory that several processes share"
)]

pub mod bpf;
pub mod clock;
pub mod files;
pub mod futex;
pub mod ipc;
pub mod memory;
pub mod process;
pub mod program;
pub mod sched;
pub mod sockets;
pub mod spinlock;
pub mod thread;

use std::io;

/// The result of a system call that answers with -1 and `errno`.
pub(crate) fn checked(answer: libc::c_int) -> io::Result<libc::c_int> {
    match answer {
        -1 => Err(io::Error::last_os_error()),
        answer => Ok(answer),
    }
}

/// As [`checked`], of a raw system call.
pub(crate) fn checked_long(answer: libc::c_long) -> io::Result<libc::c_long> {
    match answer {
        -1 => Err(io::Error::last_os_error()),
        answer => Ok(answer),
    }
}
