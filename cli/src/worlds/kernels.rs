//! Real kernels, as the lab plays them: the one that runs here, and those of guests.

use std::path::Path;

use warmq_experiment::RealKernel;
use warmq_record::RunningKernel;
use warmq_vm::{Cache, Kernel};

/// The kernel that runs here.
pub fn running() -> RealKernel {
    real("this machine's", &RunningKernel::look())
}

/// The kernel that guests have by this name, if it is here: nothing is downloaded.
pub fn of_guest(name: &str) -> Option<RealKernel> {
    let kernel = match name.contains('/') {
        true => Kernel::from_file(Path::new(name), None).ok()?,
        false => Cache::usual().ok()?.find(name, &mut |_| {})?,
    };
    let config = kernel.config.as_deref().map(String::from_utf8_lossy);
    let booting = RunningKernel::booting(&kernel.release, config.as_deref(), "");
    Some(real("the guest's", &booting))
}

fn real(whose: &'static str, kernel: &RunningKernel) -> RealKernel {
    let facts = warmq_experiment::facts().into_iter();
    RealKernel {
        whose,
        release: kernel.release.clone(),
        preemption: kernel.preemption.clone(),
        preemption_from: kernel.preemption_from,
        facts: facts
            .filter_map(|name| Some((name, kernel.fact(name)?)))
            .collect(),
    }
}
