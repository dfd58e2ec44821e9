//! What changes while a scenario runs.

use crate::expr::Expr;
use crate::object::ObjectId;
use crate::place::Place;
use crate::step::{Fragment, Reference, TaskReference};
use crate::task::{Policy, TaskKindId};

/// When a change takes place.
#[derive(Clone, Debug)]
pub enum Occurs {
    /// Once.
    At(Expr),
    /// Again and again.
    Every {
        /// How long after one another.
        period: Expr,
        /// The first time; none: after one period.
        start: Option<Expr>,
        /// When it ends; none: never.
        end: Option<Expr>,
    },
}

/// What is changed.
#[derive(Clone, Debug)]
pub enum Target {
    /// One task.
    Task(TaskReference),
    /// All tasks of a table.
    Tasks(TaskKindId),
    /// One group.
    Group(Reference),
    /// All groups of a table.
    Groups(ObjectId),
    /// CPUs.
    Cpus(Place),
}

/// One thing that is set.
#[derive(Clone, Debug)]
pub enum Set {
    /// The CPUs that a task may use.
    Cpus(Place),
    /// A nice value.
    Nice(Expr),
    /// A policy.
    Policy(Policy),
    /// A slice.
    Slice(Expr),
    /// The group that a task is in.
    Group(Reference),
    /// The fragment that a task uses.
    Fragment(Fragment),
    /// SIGSTOP.
    Stop,
    /// SIGCONT.
    Continue,
    /// A group's weight.
    Weight(Expr),
    /// A group's CPU time in each of its periods.
    Quota(Expr),
    /// Freezes a group.
    Freeze,
    /// Thaws a group.
    Thaw,
    /// Takes CPUs online or offline.
    Online(bool),
}

/// A change, or several at the same time.
#[derive(Clone, Debug)]
pub struct Change {
    /// When.
    pub occurs: Occurs,
    /// Of what.
    pub target: Target,
    /// To what.
    pub set: Vec<Set>,
}

/// A part of the run that gets metrics of its own.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// When it begins.
    pub at: Expr,
}
