//! Clocks, in nanoseconds. `CLOCK_MONOTONIC` is read through the vDSO, without a system call.

use std::mem::MaybeUninit;

use rustix::io::retry_on_intr;
use rustix::thread::{NanosleepRelativeResult, clock_nanosleep_absolute, clock_nanosleep_relative};
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

const NS_PER_S: u64 = 1_000_000_000;

/// `CLOCK_MONOTONIC`: the clock of a whole run, and of the recorder.
#[inline]
pub fn now_ns() -> u64 {
    ns(clock_gettime(ClockId::Monotonic))
}

/// CPU time of this thread.
pub fn thread_cpu_ns() -> u64 {
    ns(clock_gettime(ClockId::ThreadCPUTime))
}

/// CPU time of all threads of process `pid`; none if there is no such process.
pub fn process_cpu_ns(pid: i32) -> Option<u64> {
    // As clock_getcpuclockid(3) makes it: the complement of the pid, and CPUCLOCK_SCHED.
    let clock = (!pid << 3) | 2;
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
    ns(clock_getres(ClockId::Monotonic))
}

#[inline]
fn ns(time: Timespec) -> u64 {
    time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64
}

/// `ns` as the kernel wants it.
pub(super) fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / NS_PER_S) as i64,
        tv_nsec: (ns % NS_PER_S) as i64,
    }
}

/// Sleeps for `ns`.
pub fn sleep_ns(ns: u64) {
    let mut left = timespec(ns);
    while let NanosleepRelativeResult::Interrupted(rest) =
        clock_nanosleep_relative(ClockId::Monotonic, &left)
    {
        left = rest;
    }
}

/// Sleeps until [`now_ns`] is `ns`; not at all if that is past. The kernel would put the task to
/// sleep even then, until an interrupt that comes some microseconds later (`do_nanosleep()`).
pub fn sleep_until_ns(ns: u64) {
    if now_ns() < ns {
        let until = timespec(ns);
        let _ = retry_on_intr(|| clock_nanosleep_absolute(ClockId::Monotonic, &until));
    }
}
