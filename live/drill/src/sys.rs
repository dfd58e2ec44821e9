//! The few system calls that drills need.
#![allow(
    unsafe_code,
    reason = "system calls that the standard library does not have"
)]

use std::time::Duration;

/// CPU time of the calling thread.
pub fn cpu_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` outlives the call, which only writes it.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Confines the calling thread to `cpus`.
pub fn run_on(cpus: &[usize]) {
    // SAFETY: a cpu_set_t is plain data; CPU_SET checks nothing, and drills know their CPUs.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for cpu in cpus {
            libc::CPU_SET(*cpu, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// Gives the calling thread a nice value.
pub fn nice(value: i32) {
    // SAFETY: no pointers.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, tid() as u32, value) };
}

/// The calling thread's id.
pub fn tid() -> i32 {
    // SAFETY: no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// The scheduler's answer to a thread whose new fragment lives elsewhere; see warmq.h.
const BELONGS_ELSEWHERE: i32 = 2;

/// Names the calling thread's fragment, as `warmq.h` does; `None`: none. Returns whether a scheduler listens.
pub fn hint(fragment: Option<(u32, u32)>) -> bool {
    let packed = fragment.map_or(0, |(app, fragment)| {
        (u64::from(app) << 32 | u64::from(fragment)) + 1
    });
    // SAFETY: an option that the kernel does not know is refused without a look at the arguments.
    let answer = unsafe { libc::prctl(0x5741_5251, packed, 0, 0, 0) };
    if answer == BELONGS_ELSEWHERE {
        std::thread::yield_now();
    }
    answer >= 0
}

/// Sends a signal to a process.
pub fn signal(pid: u32, signal: i32) {
    // SAFETY: no pointers.
    unsafe { libc::kill(pid as i32, signal) };
}

/// The CPU that the calling thread is on.
pub fn current_cpu() -> i32 {
    // SAFETY: no arguments.
    unsafe { libc::sched_getcpu() }
}
