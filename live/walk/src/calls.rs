//! What the shortest call of the kernel takes.

use nix::unistd::getppid;

use crate::error::WalkError;
use crate::thread::{self, Pinned};

/// Calls of a batch, some 100 us.
const BATCH: u32 = 500;
/// Batches: one in many is not disturbed.
const BATCHES: u32 = 2_000;

/// The ns that a system call takes which does nothing, getppid(), on the CPU of this thread: in the
/// batch that was disturbed least, and in the median one.
///
/// # Errors
/// When the thread cannot be pinned.
pub fn system_call_ns() -> Result<(f64, f64), WalkError> {
    let _pinned = Pinned::to(None)?;
    let batch = || {
        let began = thread::cpu_time_ns();
        for _ in 0..BATCH {
            std::hint::black_box(getppid());
        }
        (thread::cpu_time_ns() - began) as f64 / f64::from(BATCH)
    };
    let mut batches: Vec<f64> = (0..BATCHES).map(|_| batch()).collect();
    batches.sort_by(f64::total_cmp);
    Ok((batches[0], batches[batches.len() / 2]))
}
