//! Raw reads and writes on descriptors.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{BorrowedFd, IntoRawFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::{MemfdFlags, OFlags, fcntl_setfl, memfd_create};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Opens the file or device at `path` for appending; a file that is not there is made, and only its
/// owner may read it.
///
/// # Errors
/// What the kernel answers; a pipe that nobody reads.
pub fn open_to_write(path: &str) -> io::Result<i32> {
    // To open a pipe without a reader, or some devices, would wait.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    let file = options.custom_flags(flags).open(path)?;
    fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(file.into_raw_fd())
}

/// A file in memory, which goes with its last descriptor.
///
/// # Errors
/// No descriptor or no memory is left.
pub fn memory_file(name: &str) -> io::Result<File> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC)?;
    // Whoever writes to it appends.
    fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(file.into())
}

/// `fd`, which one of the functions here and in `sockets` made.
pub(super) fn opened(fd: i32) -> BorrowedFd<'static> {
    // SAFETY: a run closes none of its descriptors before its process ends.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// Writes all of `bytes` to `fd`, a pipe or a file.
///
/// # Errors
/// What the kernel answers.
pub fn write_all(fd: i32, bytes: &[u8]) -> io::Result<()> {
    let mut left = bytes;
    while !left.is_empty() {
        left = &left[progress(rustix::io::write(opened(fd), left))?..];
    }
    Ok(())
}

/// Fills `bytes` from `fd`, a pipe.
///
/// # Errors
/// What the kernel answers; `UnexpectedEof` at the pipe's end.
pub fn read_all(fd: i32, bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        filled += received(rustix::io::read(opened(fd), &mut bytes[filled..]))?;
    }
    Ok(())
}

/// How many bytes a call moved; none if a signal came first.
pub(super) fn progress(moved: rustix::io::Result<usize>) -> io::Result<usize> {
    match moved {
        Err(Errno::INTR) => Ok(0),
        moved => Ok(moved?),
    }
}

/// How many bytes were received, unless the other end is closed; none if a signal came first.
pub(super) fn received(moved: rustix::io::Result<usize>) -> io::Result<usize> {
    match moved {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        moved => progress(moved),
    }
}

/// A new pipe that holds about `bytes`: the end to read, the end to write, what it holds.
///
/// # Errors
/// No descriptor is left.
pub fn pipe(bytes: u64) -> io::Result<(i32, i32, u64)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    // A size that is refused leaves the pipe as it was.
    let _ = fcntl_setpipe_size(&write, bytes.min(i32::MAX as u64) as usize);
    let holds = fcntl_getpipe_size(&write).unwrap_or(0);
    Ok((read.into_raw_fd(), write.into_raw_fd(), holds as u64))
}

/// Allows this process and its children `wanted` descriptors.
///
/// # Errors
/// How many are allowed, if that is less.
pub fn allow_descriptors(wanted: u64) -> Result<(), u64> {
    let limit = getrlimit(Resource::Nofile);
    // No limit is one that no number exceeds.
    let (now, most) = (
        limit.current.unwrap_or(u64::MAX),
        limit.maximum.unwrap_or(u64::MAX),
    );
    if now >= wanted {
        return Ok(());
    }
    let raised = Rlimit {
        current: Some(wanted),
        maximum: limit.maximum.map(|most| most.max(wanted)),
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => Ok(()),
        Err(_) if wanted <= most => Err(now),
        Err(_) => Err(most),
    }
}
