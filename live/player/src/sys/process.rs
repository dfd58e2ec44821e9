//! Processes: making, naming, ending and burying them.

use std::io;

use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, geteuid, getpid, set_child_subreaper,
    set_parent_process_death_signal, setpgid, setrlimit, setsid, waitpid,
};

use super::checked;
use super::clock::{now_ns, timespec};
use super::files::opened;

/// Which side of a fork this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The new process.
    Child,
    /// The old one, with the pid of the new one.
    Parent(i32),
}

/// Makes a copy of this process, with this thread alone.
///
/// The C library puts its own locks in order for the child, so that it may allocate. Locks of
/// ours must not be held by other threads; this program has none in private memory.
///
/// # Errors
/// The limit of processes or of memory.
pub fn fork() -> io::Result<Side> {
    // SAFETY: see above; the child runs ordinary code of this program.
    match checked(unsafe { libc::fork() })? {
        0 => Ok(Side::Child),
        pid => Ok(Side::Parent(pid)),
    }
}

/// Ends this process at once: no destructors, no flushing of what the parent had buffered.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: never returns, runs nothing.
    unsafe { libc::_exit(code) }
}

/// Ends this thread alone, even if it is the first of its process.
pub fn exit_thread() -> ! {
    // SAFETY: the system call ends the thread; nothing of its stack is used afterwards.
    unsafe {
        libc::syscall(libc::SYS_exit, 0);
    }
    exit_now(0)
}

/// The id of this thread.
pub fn tid() -> i32 {
    // SAFETY: no pointers.
    unsafe { libc::gettid() }
}

/// The id of this process.
pub fn pid() -> i32 {
    // SAFETY: no pointers.
    unsafe { libc::getpid() }
}

/// The id of the parent.
pub fn parent() -> i32 {
    // SAFETY: no pointers.
    unsafe { libc::getppid() }
}

/// Names this thread; the kernel keeps 15 bytes.
pub fn set_name(name: &str) {
    let mut bytes = [0_u8; 16];
    let length = name.len().min(15);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    // SAFETY: 16 bytes with a zero at the end.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, bytes.as_ptr());
    }
}

/// This process is killed when the thread that forked it ends, which was thread of process
/// `parent`.
pub fn die_with(parent_pid: i32) {
    // It may have ended before.
    if !signal_at_end_of(parent_pid, Signal::KILL) {
        exit_now(1);
    }
}

/// This process gets SIGTERM when the thread that started it ends, which is one of process
/// `parent`. False if that process is not the parent any more: it has ended before.
pub fn end_with(parent_pid: i32) -> bool {
    signal_at_end_of(parent_pid, Signal::TERM)
}

fn signal_at_end_of(parent_pid: i32, signal: Signal) -> bool {
    let _ = set_parent_process_death_signal(Some(signal));
    parent() == parent_pid
}

/// A thread of this process or of its children that computes for `us` microseconds under a
/// real-time policy without sleeping is killed with its process.
pub fn limit_real_time(us: u64) {
    let (current, maximum) = (Some(us), Some(us));
    // Only a limit that is lower already makes it fail.
    let _ = setrlimit(Resource::Rttime, Rlimit { current, maximum });
}

/// Orphans among the descendants of this process become its children.
pub fn adopt_orphans() {
    let _ = set_child_subreaper(Some(getpid()));
}

/// Puts process `pid` (0: this one) into process group `group` (0: its own).
pub fn set_group(pid: i32, group: i32) {
    // It fails only if the child has ended, or has done it itself.
    let _ = setpgid(Pid::from_raw(pid), Pid::from_raw(group));
}

/// Makes this process the leader of a session of its own, and of a process group.
///
/// # Errors
/// It leads a process group already.
pub fn new_session() -> io::Result<()> {
    setsid()?;
    Ok(())
}

/// Sends `signal` to process `pid`, or to the group `-pid`.
///
/// # Errors
/// There is no such process, or no right to do so.
pub fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: no pointers.
    checked(unsafe { libc::kill(pid, signal) }).map(|_| ())
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

impl End {
    fn of(status: WaitStatus) -> End {
        match status.terminating_signal() {
            Some(signal) => End::Signal(signal),
            None => End::Exit(status.exit_status().unwrap_or(-1)),
        }
    }
}

/// A child that was reaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaped {
    /// This one.
    One(i32, End),
    /// None has ended.
    NotYet,
    /// There are no children.
    NoChildren,
}

/// Reaps one child that has ended, without waiting.
pub fn reap() -> Reaped {
    reap_with(WaitOptions::NOHANG)
}

/// Reaps one child, once it has ended.
pub fn wait() -> Reaped {
    reap_with(WaitOptions::empty())
}

/// Sleeps until a signal ends this process.
pub fn sleep_for_good() -> ! {
    loop {
        readable([-1], -1);
    }
}

fn reap_with(options: WaitOptions) -> Reaped {
    match rustix::process::wait(options) {
        Ok(Some((pid, status))) => Reaped::One(pid.as_raw_nonzero().get(), End::of(status)),
        Ok(None) | Err(Errno::INTR) => Reaped::NotYet,
        Err(_) => Reaped::NoChildren,
    }
}

/// Reaps child `pid` if it has ended, without waiting. There is no such child: it has ended, and
/// nobody knows how.
pub fn bury_one(pid: i32) -> Option<End> {
    match waitpid(Pid::from_raw(pid), WaitOptions::NOHANG) {
        Ok(ended) => ended.map(|(_, status)| End::of(status)),
        Err(_) => Some(End::Exit(-1)),
    }
}

/// Whether this process has the rights of root.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// A descriptor that becomes readable when a child ends. The signal is blocked in this thread from
/// here on.
///
/// # Errors
/// No descriptor is left.
pub fn children_fd() -> io::Result<i32> {
    let set = signals(&[libc::SIGCHLD]);
    // SAFETY: the set is initialised.
    unsafe {
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        checked(libc::signalfd(
            -1,
            &raw const set,
            libc::SFD_NONBLOCK | libc::SFD_CLOEXEC,
        ))
    }
}

/// Unblocks what [`children_fd`] blocked; for children.
pub fn unblock_signals() {
    let set = signals(&[libc::SIGCHLD]);
    // SAFETY: the set is initialised.
    unsafe {
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
    }
}

fn signals(numbers: &[i32]) -> libc::sigset_t {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: the set is emptied first, which initialises it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for number in numbers {
            libc::sigaddset(set.as_mut_ptr(), *number);
        }
        set.assume_init()
    }
}

/// Calls `handler` at each of `numbers`. It may call only what is safe in a signal handler.
pub fn on_signals(numbers: &[i32], handler: extern "C" fn(i32)) {
    for number in numbers {
        let mut action = libc::sigaction {
            sa_sigaction: handler as *const () as usize,
            sa_mask: signals(&[]),
            sa_flags: 0,
            sa_restorer: None,
        };
        // SAFETY: the action is complete, and the handler lives as long as the program.
        unsafe {
            libc::sigaction(*number, &raw mut action, std::ptr::null_mut());
        }
    }
}

/// A write to a closed pipe or socket is an error, not a signal.
pub fn ignore_broken_pipes() {
    // SAFETY: no handler.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
    }
}

fn for_reading(fd: i32) -> libc::pollfd {
    libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    }
}

/// Which of `fds` can be read, waiting at most `ms` (-1: for ever).
pub fn readable<const N: usize>(fds: [i32; N], ms: i32) -> [bool; N] {
    let mut polled = fds.map(for_reading);
    // SAFETY: an array of N entries.
    unsafe {
        libc::poll(polled.as_mut_ptr(), N as libc::nfds_t, ms);
    }
    polled.map(|poll| poll.revents != 0)
}

/// Waits until one of `fds` can be read (those below 0 are left out), or until `until_ns` of the
/// monotonic clock. It may return early: look again.
pub fn readable_until<const N: usize>(fds: [i32; N], until_ns: Option<u64>) {
    let mut polled = fds.map(for_reading);
    let left = until_ns.map(|until| timespec(until.saturating_sub(now_ns())));
    let left = left.map(|left| libc::timespec {
        tv_sec: left.tv_sec,
        tv_nsec: left.tv_nsec,
    });
    let left = left.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: an array of N entries; `left` is null or a timespec, and no mask is given.
    unsafe {
        libc::ppoll(
            polled.as_mut_ptr(),
            N as libc::nfds_t,
            left,
            std::ptr::null(),
        );
    }
}

/// Reads away what `fd` has, without waiting: it must be non-blocking.
pub fn drain(fd: i32) {
    let mut bytes = [0_u8; 1024];
    while rustix::io::read(opened(fd), &mut bytes).is_ok_and(|got| got > 0) {}
}

/// Makes the event descriptor `fd` readable.
pub fn notify(fd: i32) {
    let _ = rustix::io::write(opened(fd), &1_u64.to_ne_bytes());
}

/// Writes `text` to standard error. May be called in a signal handler.
pub fn complain(text: &str) {
    let _ = rustix::io::write(opened(libc::STDERR_FILENO), text.as_bytes());
}

/// Sends SIGALRM to this process after `seconds`; 0: not any more.
pub fn alarm(seconds: u32) {
    // SAFETY: no pointers.
    unsafe {
        libc::alarm(seconds);
    }
}
