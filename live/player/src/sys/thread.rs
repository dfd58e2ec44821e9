//! Threads with a small stack, started without an allocation of ours.

use std::io;
use std::mem::MaybeUninit;

/// Starts a detached thread that calls `run` with `argument`.
///
/// # Errors
/// The limit of threads or of memory.
pub fn start(
    stack_bytes: usize,
    run: extern "C" fn(*mut libc::c_void) -> *mut libc::c_void,
    argument: usize,
) -> io::Result<()> {
    let mut attributes = MaybeUninit::uninit();
    let mut thread = MaybeUninit::uninit();
    // SAFETY: the attributes are initialised before they are used; `run` takes a number, which is
    // never followed as a pointer; the thread's handle is not used.
    let error = unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack_bytes);
        let detached = libc::PTHREAD_CREATE_DETACHED;
        libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), detached);
        let argument = std::ptr::without_provenance_mut(argument);
        let error = libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), run, argument);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        error
    };
    match error {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
