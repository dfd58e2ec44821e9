//! Policies, nice values, slices and CPUs of threads.

use std::io;
use std::num::NonZeroU64;

use rustix::process::Pid;
use rustix::thread::{
    CpuSet as Mask, sched_getaffinity, sched_getcpu, sched_setaffinity, set_current_timer_slack,
};

use warmq_trace::Policy;
use warmq_units::{CpuId, CpuSet};

use super::{checked, checked_long};

/// How a thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// The policy.
    pub policy: Policy,
    /// The nice value; used by fair policies.
    pub nice: i8,
    /// The priority of FIFO and RR, 1 to 99; 0 otherwise.
    pub priority: u8,
    /// The slice that a fair task asks for in nanoseconds; 0: the kernel's own.
    pub slice_ns: u64,
    /// What SCHED_DEADLINE asks for; all 0 otherwise.
    pub deadline: DeadlineNs,
}

/// The times of a task of SCHED_DEADLINE in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeadlineNs {
    /// CPU time in a period.
    pub runtime: u64,
    /// Until when it is due.
    pub deadline: u64,
    /// From one period to the next.
    pub period: u64,
}

impl Default for Attributes {
    fn default() -> Attributes {
        Attributes::USUAL
    }
}

impl Attributes {
    /// Those of a task that asks for nothing.
    pub const USUAL: Attributes = Attributes {
        policy: Policy::Other,
        nice: 0,
        priority: 0,
        slice_ns: 0,
        deadline: DeadlineNs {
            runtime: 0,
            deadline: 0,
            period: 0,
        },
    };

    /// True if the policy is one of the fair class, which has nice values and slices.
    pub fn is_fair(&self) -> bool {
        matches!(self.policy, Policy::Other | Policy::Batch | Policy::Idle)
    }

    /// Takes over the policy of `wanted`, with its priority or its times.
    pub fn take_policy_of(&mut self, wanted: &Attributes) {
        self.policy = wanted.policy;
        self.priority = wanted.priority;
        self.deadline = wanted.deadline;
    }

    /// Applies them to thread `tid`; 0 is the caller.
    ///
    /// # Errors
    /// No right to do so, or no such thread.
    pub fn apply(&self, tid: i32) -> io::Result<()> {
        let fair = self.is_fair();
        let mut attributes = empty();
        attributes.sched_policy = self.policy as u32;
        attributes.sched_nice = if fair { self.nice.into() } else { 0 };
        attributes.sched_priority = if fair { 0 } else { self.priority.into() };
        attributes.sched_runtime = if fair { self.slice_ns } else { 0 };
        if self.policy == Policy::Deadline {
            attributes.sched_runtime = self.deadline.runtime;
            attributes.sched_deadline = self.deadline.deadline;
            attributes.sched_period = self.deadline.period;
            // Else it could start no task (sched_fork(): EAGAIN).
            attributes.sched_flags = libc::SCHED_FLAG_RESET_ON_FORK as u64;
        }
        // SAFETY: the structure is complete and says its size.
        let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw mut attributes, 0) };
        checked_long(answer).map(|_| ())
    }

    /// Those of thread `tid`; 0 is the caller. Kernels before 6.12 say no slice.
    ///
    /// # Errors
    /// There is no such thread.
    pub fn of(tid: i32) -> io::Result<Attributes> {
        let mut attributes = empty();
        let size = attributes.size;
        // SAFETY: the kernel fills in at most `size` bytes.
        let answer =
            unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attributes, size, 0) };
        checked_long(answer)?;
        let policy = Policy::ALL
            .iter()
            .find(|policy| **policy as u32 == attributes.sched_policy);
        let policy = policy.copied().unwrap_or(Policy::Other);
        let priority = attributes.sched_priority as u8;
        let read = Attributes {
            policy,
            nice: attributes.sched_nice as i8,
            priority,
            ..Attributes::default()
        };
        let deadline = DeadlineNs {
            runtime: attributes.sched_runtime,
            deadline: attributes.sched_deadline,
            period: attributes.sched_period,
        };
        Ok(match read.policy {
            Policy::Deadline => Attributes { deadline, ..read },
            _ if read.is_fair() => Attributes {
                slice_ns: attributes.sched_runtime,
                ..read
            },
            _ => read,
        })
    }
}

/// `struct sched_attr` with what utilization is clamped to, since Linux 5.3.
#[repr(C)]
struct ClampAttributes {
    usual: libc::sched_attr,
    util_min: u32,
    util_max: u32,
}

/// Nothing else of the attributes changes.
const KEEP: u64 = (libc::SCHED_FLAG_KEEP_POLICY | libc::SCHED_FLAG_KEEP_PARAMS) as u64;

/// Sets as what utilization thread `tid` counts at least, and at most, as far as that is given; 0
/// is the caller.
///
/// # Errors
/// The kernel clamps none (EOPNOTSUPP), the bounds cross (EINVAL), or there is no such thread.
pub fn set_uclamp(tid: i32, min: Option<u16>, max: Option<u16>) -> io::Result<()> {
    let flag = |bound: Option<u16>, flag: i32| bound.map_or(0, |_| flag as u64);
    let clamps =
        flag(min, libc::SCHED_FLAG_UTIL_CLAMP_MIN) | flag(max, libc::SCHED_FLAG_UTIL_CLAMP_MAX);
    if clamps == 0 {
        return Ok(());
    }
    let mut attributes = ClampAttributes {
        usual: empty(),
        util_min: min.unwrap_or(0).into(),
        util_max: max.unwrap_or(0).into(),
    };
    attributes.usual.size = size_of::<ClampAttributes>() as u32;
    attributes.usual.sched_flags = KEEP | clamps;
    // SAFETY: the structure is complete and says its size.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw mut attributes, 0) };
    checked_long(answer).map(|_| ())
}

fn empty() -> libc::sched_attr {
    libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    }
}

/// Sets the nice value of thread `tid`; 0 is the caller.
///
/// # Errors
/// No right to lower it, or no such thread.
pub fn set_nice(tid: i32, nice: i8) -> io::Result<()> {
    // SAFETY: no pointers.
    let answer = unsafe { libc::setpriority(libc::PRIO_PROCESS, tid as libc::id_t, nice.into()) };
    checked(answer).map(|_| ())
}

/// Binds thread `tid` to `cpus`; 0 is the caller.
///
/// # Errors
/// None of them is online and allowed, or there is no such thread.
pub fn set_affinity(tid: i32, cpus: &CpuSet) -> io::Result<()> {
    let mut mask = Mask::new();
    let cpus = cpus.iter().map(CpuId::index);
    cpus.filter(|cpu| *cpu < Mask::MAX_CPU)
        .for_each(|cpu| mask.set(cpu));
    Ok(sched_setaffinity(Pid::from_raw(tid), &mask)?)
}

/// The CPUs that the caller may use.
pub fn allowed() -> CpuSet {
    let mask = sched_getaffinity(None).unwrap_or_default();
    let cpus = (0..Mask::MAX_CPU).filter(|cpu| mask.is_set(*cpu));
    cpus.map(|cpu| CpuId(cpu as u16)).collect()
}

/// The CPU that the caller runs on.
pub fn cpu() -> CpuId {
    CpuId(sched_getcpu() as u16)
}

/// Lets this thread's timers fire when they are due: by default the kernel may delay each by 50 us.
pub fn sharp_timers() {
    const LEAST_NS: NonZeroU64 = NonZeroU64::MIN;
    let _ = set_current_timer_slack(Some(LEAST_NS));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_that_the_kernel_takes_is_the_one_that_it_says() {
        let asked = Attributes {
            policy: Policy::Deadline,
            deadline: DeadlineNs {
                runtime: 1_000_000,
                deadline: 50_000_000,
                period: 100_000_000,
            },
            ..Attributes::default()
        };
        let of_a_thread = move || asked.apply(0).map(|()| Attributes::of(0));
        match std::thread::spawn(of_a_thread).join().expect("a thread") {
            Ok(now) => assert_eq!(now.expect("its attributes"), asked),
            // No right to it, or other deadlines have the CPUs.
            Err(error) => {
                let refused = error.raw_os_error();
                assert!(
                    [Some(libc::EPERM), Some(libc::EBUSY)].contains(&refused),
                    "{error}"
                );
            }
        }
    }
}
