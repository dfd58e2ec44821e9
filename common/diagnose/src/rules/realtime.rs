//! Real-time tasks or threads of the kernel had the CPU.

use super::{owned, waited};
use crate::case::Case;
use crate::verdict::Finding;
use crate::words::{list, share};

/// Of those who ran where it waited, in thousandths.
const LEAST_BESIDE: u64 = 600;
/// Of the time that it wanted, in thousandths.
const LEAST_WAITED: u64 = 600;

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    let facts = case.facts;
    if case.waited < LEAST_WAITED || facts.is_realtime(case.id) {
        return None;
    }
    let realtime = |id| facts.is_realtime(id);
    // ksoftirqd does the work of interrupts, which is another rule; a thread of the kernel is as good
    // as any other, and waits for real-time tasks alone.
    let waits = !facts.is_kernel(case.id);
    let kernel = |id| waits && facts.is_kernel(id) && !facts.is_softirqd(id);
    let of_realtime = case.share_beside(realtime);
    let of_kernel = case.share_beside(|id| kernel(id) && !realtime(id));
    if of_realtime + of_kernel < LEAST_BESIDE {
        return None;
    }
    let most = of_realtime >= of_kernel;
    let who = list(
        &case.names_beside(|id| realtime(id) == most && (most || kernel(id))),
        3,
    );
    let (what, cures) = match most {
        true => (
            "real-time tasks",
            owned(&[
                "let the real-time task sleep, or give it a policy that shares (SCHED_OTHER, negative nice)",
                "keep it on CPUs of its own (cpuset, isolated CPUs)",
                "sched_rt_runtime_us limits all real-time tasks together; kernels from 6.12 serve fair \
             tasks by a deadline server instead",
            ]),
        ),
        false => (
            "threads of the kernel",
            owned(&[
                "see what the thread does (`perf top -t`, /proc/PID/stack): work of a device or a file \
             system is done for somebody",
                "move the device's interrupts or the workqueue (/sys/devices/virtual/workqueue/cpumask) \
             to another CPU",
            ]),
        ),
    };
    Some(Finding {
        cause: format!("{what} {who}"),
        says: format!("{} beside {what}: {who}", waited(case)),
        because: format!(
            "They had {} of the CPU while it waited there.",
            share(of_realtime + of_kernel)
        ),
        cures,
    })
}
