//! There are more tasks than the CPUs can serve at once.

use super::{got, waited};
use crate::Cure;
use crate::case::Case;
use crate::verdict::Finding;
use crate::words::count;

/// So many tasks wanted each of its CPUs on average, in thousandths.
const LEAST_TASKS: u64 = 3_500;

const CURES: &[Cure] = &[
    Cure::new(
        "run fewer tasks at a time, or on more CPUs",
        "no work: each has its turn sooner",
    ),
    Cure::new(
        "give those that somebody waits for more weight (nice, cpu.weight), or a shorter slice",
        "the others wait longer",
    ),
];

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    if !case.waited_long || case.starves {
        return None;
    }
    let cpus = case.where_it_waited();
    let tasks: u64 = cpus.iter().map(|cpu| case.facts.dues.tasks_on(*cpu)).sum();
    let each = tasks / (cpus.len() as u64).max(1);
    if each < LEAST_TASKS {
        return None;
    }
    Some(Finding {
        cause: String::new(),
        says: format!(
            "{}: {} tasks want each CPU at any time",
            waited(case),
            count((each + 500) / 1_000)
        ),
        because: format!("It had its turn as the others had: {}.", got(case)),
        cures: CURES.to_vec(),
    })
}
