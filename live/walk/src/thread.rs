//! A thread: its CPUs, its clock, and how often it was preempted.

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use warmq_units::CpuId;

use crate::error::WalkError;

/// The thread stays on one CPU for as long as this lives. After that it has its old affinity again.
#[derive(Debug)]
pub struct Pinned {
    cpu: CpuId,
    before: CpuSet,
}

impl Pinned {
    /// Pins this thread to `cpu`, or to the last CPU that it may run on.
    ///
    /// # Errors
    /// [`WalkError::Setting`] if the thread may not run on `cpu`.
    pub fn to(cpu: Option<CpuId>) -> Result<Pinned, WalkError> {
        let before = affinity()?;
        let allowed = cpus_in(&before);
        check_allowed("cpu", cpu, &allowed)?;
        let cpu = cpu.or(allowed.last().copied()).unwrap_or_default();
        bind(cpu)?;
        Ok(Pinned { cpu, before })
    }

    /// The CPU.
    pub fn cpu(&self) -> CpuId {
        self.cpu
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // If these CPUs are no longer allowed, the thread stays pinned.
        let _ = sched_setaffinity(THIS_THREAD, &self.before);
    }
}

/// Means the calling thread in calls about affinity.
const THIS_THREAD: Pid = Pid::from_raw(0);

/// Refuses a CPU, given in the setting `field`, that is not among `allowed`.
///
/// # Errors
/// [`WalkError::Setting`], with the CPUs that are allowed.
fn check_allowed(
    field: &'static str,
    cpu: Option<CpuId>,
    allowed: &[CpuId],
) -> Result<(), WalkError> {
    let Some(cpu) = cpu.filter(|cpu| !allowed.contains(cpu)) else {
        return Ok(());
    };
    let numbers = itertools::join(allowed.iter().map(|cpu| cpu.0), ", ");
    let help = format!("write one of {numbers}");
    let problem = "this program may not run on that CPU";
    Err(WalkError::setting(field, cpu.0, problem, help))
}

/// Binds this thread to `cpu`.
///
/// # Errors
/// [`WalkError::System`] if it may not run there.
fn bind(cpu: CpuId) -> Result<(), WalkError> {
    let mut only = CpuSet::new();
    only.set(cpu.index())
        .and_then(|()| sched_setaffinity(THIS_THREAD, &only))
        .map_err(|errno| {
            let action = format!("bind a thread to CPU {}", cpu.0);
            WalkError::system(action, errno, "name a CPU that is online")
        })
}

/// The CPUs on which this thread may run, in the order of their numbers.
///
/// # Errors
/// [`WalkError::System`] if the kernel does not say.
pub fn allowed_cpus() -> Result<Vec<CpuId>, WalkError> {
    affinity().map(|set| cpus_in(&set))
}

fn affinity() -> Result<CpuSet, WalkError> {
    sched_getaffinity(THIS_THREAD).map_err(|errno: Errno| {
        WalkError::system(
            "read the CPUs that are allowed",
            errno,
            "try as another user",
        )
    })
}

fn cpus_in(set: &CpuSet) -> Vec<CpuId> {
    (0..CpuSet::count())
        .filter(|cpu| set.is_set(*cpu).unwrap_or(false))
        .map(|cpu| CpuId(cpu as u16))
        .collect()
}

/// CPU time that this thread has used, in nanoseconds. It stands still while another task has the
/// CPU. It includes time that a hypervisor takes away.
pub fn cpu_time_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    // Every kernel has this clock.
    time.map_or(0, |time| std::time::Duration::from(time).as_nanos() as u64)
}

/// How often another task took the CPU from this thread.
pub fn preemptions() -> u64 {
    getrusage(UsageWho::RUSAGE_THREAD)
        .map_or(0, |usage| usage.involuntary_context_switches() as u64)
}
