//! Clocks, in nanoseconds. `CLOCK_MONOTONIC` is read through the vDSO, without a system call.

use std::mem::MaybeUninit;

const NS_PER_S: u64 = 1_000_000_000;

/// `CLOCK_MONOTONIC`: the clock of a whole run, and of the recorder.
#[inline]
pub fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// CPU time of this thread.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// CPU time of all threads of process `pid`; none if there is no such process.
pub fn process_cpu_ns(pid: i32) -> Option<u64> {
    // As clock_getcpuclockid(3) makes it: the complement of the pid, and CPUCLOCK_SCHED.
    read((!pid << 3) | 2)
}

#[inline]
fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: `time` is a timespec to be filled in.
    let answer = unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) };
    if answer != 0 {
        return None;
    }
    // SAFETY: the call succeeded and filled it in.
    let time = unsafe { time.assume_init() };
    Some(time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64)
}

/// The resolution of timers: a tick where the kernel has no high-resolution timers.
pub fn resolution_ns() -> u64 {
    let mut time = timespec(0);
    // SAFETY: the kernel fills in `time`.
    unsafe {
        libc::clock_getres(libc::CLOCK_MONOTONIC, &raw mut time);
    }
    time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64
}

/// `ns` as the kernel wants it.
pub(super) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / NS_PER_S) as libc::time_t,
        tv_nsec: (ns % NS_PER_S) as libc::c_long,
    }
}

/// Sleeps for `ns`.
pub fn sleep_ns(ns: u64) {
    let mut left = timespec(ns);
    loop {
        let wanted = left;
        // SAFETY: both are valid timespecs; the kernel writes the rest of the time into `left`.
        let answer = unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &raw const wanted, &raw mut left)
        };
        if answer != libc::EINTR {
            return;
        }
    }
}

/// Sleeps until [`now_ns`] is `ns`; not at all if that is past. The kernel would put the task to
/// sleep even then, until an interrupt that comes some microseconds later (`do_nanosleep()`).
pub fn sleep_until_ns(ns: u64) {
    if now_ns() >= ns {
        return;
    }
    let until = timespec(ns);
    let absolute = libc::TIMER_ABSTIME;
    let clock = libc::CLOCK_MONOTONIC;
    loop {
        // SAFETY: `until` is a valid timespec; nothing is written back for an absolute time.
        let answer = unsafe {
            libc::clock_nanosleep(clock, absolute, &raw const until, std::ptr::null_mut())
        };
        if answer != libc::EINTR {
            return;
        }
    }
}
