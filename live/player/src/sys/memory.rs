//! Memory that all processes of a run share: mapped before they are forked, never unmapped.

use std::io;
use std::os::fd::IntoRawFd;
use std::ptr;

use rustix::event::{EventfdFlags, eventfd};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// What can lie in memory that several processes share.
///
/// # Safety
/// All-zero bytes must be a value of the type, it must hold no pointer of one process, and
/// everything in it that changes must be an atomic or be guarded by a lock of several processes.
pub unsafe trait Shared: Sync {}

// SAFETY: an atomic.
unsafe impl Shared for std::sync::atomic::AtomicI32 {}

/// `count` values of zero bytes that all processes forked from now on share. No page of it takes
/// memory until it is touched.
///
/// # Errors
/// The address space or the memory is used up.
pub fn shared<T: Shared>(count: usize) -> io::Result<&'static [T]> {
    let bytes = count.checked_mul(size_of::<T>());
    let bytes = bytes.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
    if bytes == 0 {
        return Ok(&[]);
    }
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::SHARED | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice touches no other memory. It has
    // room for `count` values, is aligned to a page, zero bytes are values of `T`, and nothing
    // unmaps it.
    unsafe {
        let start = mmap_anonymous(ptr::null_mut(), bytes, access, flags)?;
        Ok(std::slice::from_raw_parts(start.cast(), count))
    }
}

/// The page that everything is rounded to.
const PAGE: usize = 4096;

/// Maps the pages of `of` into this process, so that no later access faults. Kernels before 5.14
/// cannot, and each page faults once.
pub fn populate<T: Shared>(of: &[T]) {
    let bytes = size_of_val(of);
    if bytes == 0 {
        return;
    }
    let start = of.as_ptr().addr();
    let first = start / PAGE * PAGE;
    let length = (start + bytes).next_multiple_of(PAGE) - first;
    let first = of.as_ptr().with_addr(first).cast_mut().cast();
    // SAFETY: these are pages of a mapping that is never unmapped; populating changes no byte.
    let _ = unsafe { madvise(first, length, Advice::LinuxPopulateWrite) };
}

/// A file descriptor that counts, for one process to tell another (`eventfd(2)`).
///
/// # Errors
/// No descriptor is left.
pub fn event_fd() -> io::Result<i32> {
    let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    Ok(fd.into_raw_fd())
}

/// A file descriptor that becomes readable when process `pid` ends.
///
/// # Errors
/// There is no such process, or the kernel is older than 5.3.
pub fn pid_fd(pid: i32) -> io::Result<i32> {
    let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?.into_raw_fd())
}
