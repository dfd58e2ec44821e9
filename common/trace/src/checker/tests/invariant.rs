//! Which invariant a breach breaks; the table of the checker's module explains each.

use crate::Breach;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Invariant {
    TimeNeverBack,
    LifeOnce,
    OneCpuPerTask,
    SwitchesMatch,
    OnlyRunnableRuns,
    InterruptsBalanced,
    WorkConserving,
    TenuresDisjoint,
    NoSwitchUnderLock,
    ReschedulesTaken,
    SleepersLeave,
    NoSwitchInIdle,
    SpansBegin,
    CountsGrow,
}

impl Breach {
    /// The invariant that this breaks.
    pub(super) fn invariant(self) -> Invariant {
        match self {
            Breach::TimeWentBack { .. } => Invariant::TimeNeverBack,
            Breach::NotAlive | Breach::ForkedAgain | Breach::RunnableAfterExit => {
                Invariant::LifeOnce
            }
            Breach::OnTwoCpus { .. } => Invariant::OneCpuPerTask,
            Breach::AnotherRan { .. } => Invariant::SwitchesMatch,
            Breach::Asleep => Invariant::OnlyRunnableRuns,
            Breach::NotInInterrupt { .. } | Breach::SwitchInInterrupt { .. } => {
                Invariant::InterruptsBalanced
            }
            Breach::LeftWaiting { .. } => Invariant::WorkConserving,
            Breach::HeldByTwo { .. } => Invariant::TenuresDisjoint,
            Breach::SwitchUnderLock { .. } => Invariant::NoSwitchUnderLock,
            Breach::NobodySent | Breach::NotTaken { .. } => Invariant::ReschedulesTaken,
            Breach::RunnableAfterBlock => Invariant::SleepersLeave,
            Breach::SwitchInIdle => Invariant::NoSwitchInIdle,
            Breach::NeverBegan { .. } => Invariant::SpansBegin,
            Breach::CountedMore { .. } => Invariant::CountsGrow,
        }
    }
}
