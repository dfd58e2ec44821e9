//! Raw reads and writes on descriptors.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::os::unix::fs::OpenOptionsExt;

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
    let fd = options.custom_flags(flags).open(path)?.into_raw_fd();
    // SAFETY: no pointers; the descriptor is this function's own.
    super::checked(unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_APPEND) })?;
    Ok(fd)
}

/// A file in memory, which goes with its last descriptor.
///
/// # Errors
/// No descriptor or no memory is left.
pub fn memory_file(name: &str) -> io::Result<File> {
    let name = CString::new(name)?;
    // SAFETY: the name ends with a zero byte.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    let fd = super::checked(fd)?;
    // SAFETY: the descriptor is new, and owned by nobody else.
    let file = unsafe { File::from_raw_fd(fd) };
    // Whoever writes to it appends.
    // SAFETY: no pointers.
    super::checked(unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_APPEND) })?;
    Ok(file)
}

/// Writes all of `bytes` to `fd`, a pipe or a file.
///
/// # Errors
/// What the kernel answers.
pub fn write_all(fd: i32, bytes: &[u8]) -> io::Result<()> {
    let mut left = bytes;
    while !left.is_empty() {
        // SAFETY: `left` is readable for its length.
        let written = unsafe { libc::write(fd, left.as_ptr().cast(), left.len()) };
        left = &left[progress(written)?..];
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
        let left = &mut bytes[filled..];
        // SAFETY: `left` is writable for its length.
        let read = unsafe { libc::read(fd, left.as_mut_ptr().cast(), left.len()) };
        filled += some(progress(read)?, read)?;
    }
    Ok(())
}

/// How many bytes a call moved; none if a signal came first.
pub(super) fn progress(answer: isize) -> io::Result<usize> {
    match usize::try_from(answer) {
        Ok(bytes) => Ok(bytes),
        Err(_) => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            error => Err(error),
        },
    }
}

/// `moved`, unless the other end is closed.
pub(super) fn some(moved: usize, answer: isize) -> io::Result<usize> {
    match answer {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(moved),
    }
}

/// A new pipe that holds about `bytes`: the end to read, the end to write, what it holds.
///
/// # Errors
/// No descriptor is left.
pub fn pipe(bytes: u64) -> io::Result<(i32, i32, u64)> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors.
    super::checked(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    let wanted = i32::try_from(bytes).unwrap_or(i32::MAX);
    // SAFETY: no pointers. A size that is refused leaves the pipe as it was.
    let holds = unsafe {
        libc::fcntl(ends[1], libc::F_SETPIPE_SZ, wanted);
        libc::fcntl(ends[1], libc::F_GETPIPE_SZ)
    };
    Ok((ends[0], ends[1], u64::try_from(holds).unwrap_or(0)))
}

/// Allows this process and its children `wanted` descriptors.
///
/// # Errors
/// How many are allowed, if that is less.
pub fn allow_descriptors(wanted: u64) -> Result<(), u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel fills in `limit`.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    if limit.rlim_cur >= wanted {
        return Ok(());
    }
    let most = limit.rlim_max;
    let raised = libc::rlimit {
        rlim_cur: wanted,
        rlim_max: most.max(wanted),
    };
    // SAFETY: the kernel reads `raised`.
    match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } {
        0 => Ok(()),
        _ if wanted <= most => Err(limit.rlim_cur),
        _ => Err(most),
    }
}
