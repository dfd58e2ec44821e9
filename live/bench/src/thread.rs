//! A thread: its CPU, its clock, and how often it was disturbed.
#![allow(unsafe_code)]

use std::mem::{MaybeUninit, size_of};

use warmq_units::CpuId;

use crate::error::BenchError;

/// The thread stays on one CPU for as long as this lives; then it may go where it might before.
#[derive(Debug)]
pub struct Pinned {
    cpu: CpuId,
    before: Mask,
}

/// A set of CPUs as the kernel takes it: bit i of the words is CPU i.
type Mask = [u64; 128];

impl Pinned {
    /// Pins this thread to `cpu`, or to the last CPU it may run on.
    ///
    /// # Errors
    /// [`BenchError::Setting`] where the thread may not run on `cpu`.
    pub fn to(cpu: Option<CpuId>) -> Result<Pinned, BenchError> {
        let before = allowed()?;
        let last = before.iter().rposition(|word| *word != 0).unwrap_or(0);
        let last = CpuId((last * 64) as u16 + before[last].max(1).ilog2() as u16);
        let cpu = cpu.unwrap_or(last);
        let mut only: Mask = [0; 128];
        let word = only
            .get_mut(cpu.index() / 64)
            .filter(|_| is_in(cpu, &before));
        let Some(word) = word else {
            let mend = format!("write one of {}", members(&before));
            return Err(BenchError::setting(
                "cpu",
                cpu.0,
                "this program may not run there",
                mend,
            ));
        };
        *word = 1 << (cpu.index() % 64);
        allow(&only)?;
        Ok(Pinned { cpu, before })
    }

    /// The CPU.
    pub fn cpu(&self) -> CpuId {
        self.cpu
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The thread was allowed there a moment ago; should it no longer be, it stays pinned.
        let _ = allow(&self.before);
    }
}

/// The CPUs that this thread, and any thread that it starts, may use; at least one.
///
/// # Errors
/// [`BenchError::System`] where the kernel does not tell.
pub fn allowed_cpus() -> Result<Vec<CpuId>, BenchError> {
    let mask = allowed()?;
    Ok(cpus_in(&mask).collect())
}

/// Binds this thread to `cpu` for the rest of its life.
///
/// # Errors
/// [`BenchError::System`] where it may not run there.
pub fn bind(cpu: CpuId) -> Result<(), BenchError> {
    let mut only: Mask = [0; 128];
    only[cpu.index() / 64] = 1 << (cpu.index() % 64);
    allow(&only)
}

/// The CPU that this thread runs on, as it was a moment ago.
pub fn current_cpu() -> Option<CpuId> {
    // SAFETY: takes nothing and writes nothing of ours.
    let cpu = unsafe { libc::sched_getcpu() };
    u16::try_from(cpu).ok().map(CpuId)
}

fn is_in(cpu: CpuId, mask: &Mask) -> bool {
    mask.get(cpu.index() / 64)
        .is_some_and(|word| word >> (cpu.index() % 64) & 1 == 1)
}

fn members(mask: &Mask) -> String {
    let all = cpus_in(mask).map(|cpu| cpu.0.to_string());
    all.collect::<Vec<_>>().join(", ")
}

fn cpus_in(mask: &Mask) -> impl Iterator<Item = CpuId> {
    let all = (0..(mask.len() * 64) as u16).map(CpuId);
    all.filter(|cpu| is_in(*cpu, mask))
}

fn allowed() -> Result<Mask, BenchError> {
    let mut mask: Mask = [0; 128];
    // SAFETY: the kernel writes at most the size given into the mask, any bits are a valid Mask.
    let done = unsafe { libc::sched_getaffinity(0, size_of::<Mask>(), mask.as_mut_ptr().cast()) };
    let failed = || BenchError::last_system("ask for the allowed CPUs", "try as another user");
    if done == 0 { Ok(mask) } else { Err(failed()) }
}

fn allow(mask: &Mask) -> Result<(), BenchError> {
    // SAFETY: the kernel only reads the size given from the mask.
    let done = unsafe { libc::sched_setaffinity(0, size_of::<Mask>(), mask.as_ptr().cast()) };
    let failed = || BenchError::last_system("pin to a CPU", "name a CPU that is online");
    if done == 0 { Ok(()) } else { Err(failed()) }
}

/// CPU time that this thread has used, in nanoseconds. While another task has the CPU, it stands
/// still; time that a hypervisor takes away is in it.
pub fn cpu_time_ns() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the kernel fills the timespec; zeroed, it is valid even if the call fails.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How often another task took the CPU from this thread.
pub fn preemptions() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills the rusage; zeroed, it is valid even if the call fails.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_nivcsw as u64
}
