//! Sleepers: whose wakeup preempts.

use crate::Policy;
use crate::header;

/// What came of a wakeup that wants the CPU at once (`enum warmq_verdict`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It preempts.
    Granted,
    /// It does not stand before the running task by its granularity.
    NotBehind,
    /// That CPU was preempted by a wakeup too short a time ago.
    TooSoon,
    /// It slept too short a time.
    ShortSleep,
}

/// A wakeup that wants the CPU at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// Where the task that woke stands, in virtual ns.
    pub waking: u64,
    /// Where the one that runs stands, in virtual ns.
    pub running: u64,
    /// Sleeps of the one that woke, in this period.
    pub sleeps: u64,
    /// Its weight.
    pub weight: u64,
    /// How long it slept, in ns.
    pub slept: u64,
    /// Time since that CPU's last wakeup preemption, in ns.
    pub since: u64,
}

/// The granularity of a task's own, in virtual ns (Al-Mane' 2009, formula 5-1).
pub fn granularity(policy: &Policy, sleeps: u64, weight: u64) -> u64 {
    header::decide_granularity(policy, sleeps, weight)
}

/// Whether a task that woke preempts the one that runs.
pub fn preempts(policy: &Policy, wakeup: &Wakeup) -> Verdict {
    let verdict = header::decide_preempts(
        policy,
        wakeup.waking,
        wakeup.running,
        wakeup.sleeps,
        wakeup.weight,
        wakeup.slept,
        wakeup.since,
    );
    match verdict {
        0 => Verdict::Granted,
        1 => Verdict::NotBehind,
        2 => Verdict::TooSoon,
        3 => Verdict::ShortSleep,
        other => unreachable!("enum warmq_verdict has no {other}"),
    }
}
