//! What happens, step by step.

use warmq_units::CpuId;

/// What is there when a plan begins: all tasks sleep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// The group of each task: 0 is the root.
    pub groups_of: Vec<u16>,
    /// Groups beside the root.
    pub groups: u16,
    /// The seed of the scheduler's own random numbers.
    pub seed: u64,
}

/// A plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// What is there.
    pub setup: Setup,
    /// What happens, one after another.
    pub steps: Vec<Step>,
}

/// A step of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where it happens.
    pub cpu: CpuId,
    /// What happens.
    pub act: Act,
    /// Whether it, or what follows from it, is interrupted.
    pub hold: Option<Hold>,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A task is woken by code on this CPU.
    Wake(u16),
    /// Who runs sleeps.
    Sleep,
    /// A tick.
    Tick,
    /// Who runs yields.
    Yield,
    /// The nice value of a task changes.
    Nice(u16, i8),
    /// A task may use these CPUs from now on, a bit each.
    Affinity(u16, u8),
    /// A task moves to a group.
    Move(u16, u16),
    /// The weight of a group changes.
    Weigh(u16, u16),
    /// A group becomes idle, or an ordinary one.
    Idle(u16, bool),
    /// Who runs names its data.
    Hint(u8),
    /// So many us pass.
    Pass(u32),
}

impl Act {
    /// Its kind.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Act::Wake(_) => "wake",
            Act::Sleep => "sleep",
            Act::Tick => "tick",
            Act::Yield => "yield",
            Act::Nice(..) => "nice",
            Act::Affinity(..) => "affinity",
            Act::Move(..) => "move",
            Act::Weigh(..) | Act::Idle(..) => "weigh",
            Act::Hint(_) => "hint",
            Act::Pass(_) => "pass",
        }
    }
}

/// Picks, which follow from acts, beside the kinds of these.
pub(crate) const PICK: &str = "pick";

/// Where a path is interrupted, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Which path of the step: 0 is the step itself, then come the picks that follow from it.
    pub path: u8,
    /// How many places it passes before.
    pub passes: u16,
    /// How many steps come in.
    pub steps: u8,
}
