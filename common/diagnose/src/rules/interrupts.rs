//! Interrupts and softirqs had the CPU.

use crate::Cure;
use crate::case::Case;
use crate::verdict::Finding;
use crate::words::{share, span, thousandths};

/// Of the time that the task wanted its CPUs, in thousandths: a quarter. Less is what a busy
/// network card takes, and is charged to nobody.
const LEAST: u64 = 250;

const CURES: &[Cure] = &[
    Cure::new(
        "spread the interrupts of the device over CPUs (/proc/irq/N/smp_affinity, RSS, RPS)",
        "other CPUs are interrupted, and packets of one flow touch more caches",
    ),
    Cure::new(
        "let the card wait for more packets before it interrupts (ethtool -C)",
        "each packet comes later by that wait",
    ),
    Cure::new(
        "bind the task to a CPU that serves no interrupts",
        "it cannot use the other CPUs",
    ),
];

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    let facts = case.facts;
    if facts.cpus_take_turns() {
        return None;
    }
    // ksoftirqd itself waits for what softirqs do on the way out of interrupts.
    let deferred = case.beside(|id| facts.is_softirqd(id) && id != case.id);
    let taken = case.tally.interrupted + deferred;
    let of_all = thousandths(taken, case.wanted);
    if of_all < LEAST {
        return None;
    }
    let cpus: Vec<String> = case
        .where_it_waited()
        .iter()
        .map(|cpu| cpu.0.to_string())
        .collect();
    Some(Finding {
        cause: format!("CPUs {}", cpus.join(",")),
        says: format!(
            "{} wanted a CPU for {}, of which interrupts and softirqs had {}",
            case.name(),
            span(case.wanted),
            span(taken)
        ),
        because: format!(
            "That is {} of the time; ksoftirqd had {} of it. Interrupts come before every task, and \
             what they take is taken from whoever runs.",
            share(of_all),
            span(deferred)
        ),
        cures: CURES.to_vec(),
    })
}
