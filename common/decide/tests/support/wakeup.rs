//! Wakeup preemption, which only the BPF program and tests decide.

#![allow(unsafe_code, reason = "as in src/vruntime.rs")]

use warmq_decide::Policy;

/// What became of a wakeup that wants the CPU at once (`enum warmq_verdict`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It preempts.
    Granted,
    /// Its deadline is not earlier than the running task's by its granularity.
    TooClose,
    /// That CPU had a wakeup preemption too short a time ago.
    TooSoon,
    /// It slept too short a time.
    ShortSleep,
}

/// A wakeup that wants the CPU at once (`struct warmq_wakeup`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// The deadline of the task that woke, in virtual ns.
    pub waking: u64,
    /// That of the running task, from when it was picked.
    pub running: u64,
    /// Sleeps of the one that woke, in this period.
    pub sleeps: u64,
    /// Its weight.
    pub weight: u64,
    /// How long it slept, in ns.
    pub slept: u64,
    /// Time since that CPU's last wakeup preemption, in ns.
    pub since: u64,
    /// 1: the running task is of `SCHED_IDLE`, and the one that woke is not; else 0.
    pub outranks: u64,
}

// decide.c asserts the same of the other side.
const _: () = assert!(size_of::<Wakeup>() == 7 * size_of::<u64>());

unsafe extern "C" {
    /// The wakeup granularity of one task, in virtual ns (Al-Mane' 2009, formula 5-1).
    #[link_name = "decide_wakeup_granularity"]
    pub safe fn wakeup_granularity(policy: &Policy, sleeps: u64, weight: u64) -> u64;

    safe fn decide_wakeup_preempts(policy: &Policy, wakeup: &Wakeup) -> u32;
}

/// Whether a task that wakes preempts the running one.
pub fn wakeup_preempts(policy: &Policy, wakeup: &Wakeup) -> Verdict {
    let verdict = decide_wakeup_preempts(policy, wakeup);
    match verdict {
        0 => Verdict::Granted,
        1 => Verdict::TooClose,
        2 => Verdict::TooSoon,
        3 => Verdict::ShortSleep,
        other => unreachable!("enum warmq_verdict has no {other}"),
    }
}
