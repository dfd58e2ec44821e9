//! A hypervisor took its CPU away.

use crate::Cure;
use crate::case::Case;
use crate::verdict::Finding;
use crate::words::{share, span, thousandths};

/// In thousandths of the time that the task wanted its CPUs: a quarter.
const LEAST: u64 = 250;

const CURES: &[Cure] = &[
    Cure::new(
        "give the virtual machine CPUs of its own, or move it to a host that has less to do",
        "fewer machines share the host's CPUs",
    ),
    Cure::new(
        "run no more in it than the CPUs that it really has",
        "less runs at a time",
    ),
];

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    let stolen = case.tally.stolen;
    let of_all = thousandths(stolen, case.wanted);
    (of_all >= LEAST).then(|| Finding {
        cause: String::new(),
        says: format!(
            "{} wanted a CPU for {}, of which the hypervisor took {}",
            case.name(),
            span(case.wanted),
            span(stolen)
        ),
        because: format!(
            "That is {} of the time: the CPU stood still, whatever it ran, and no scheduler of this \
             machine could do better.",
            share(of_all)
        ),
        cures: CURES.to_vec(),
    })
}
