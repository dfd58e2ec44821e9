//! What changes while a scenario runs.

use std::sync::Arc;

use crate::expr::{Expr, Spot};
use crate::object::{ObjectId, Rate};
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
    /// One source.
    Source(Reference),
    /// All sources of a table.
    Sources(ObjectId),
    /// The scheduler; what is set is a [`Set::Scheduler`].
    Scheduler,
}

/// A scheduler that takes over while a scenario runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchedulerChoice {
    /// The kernel's own: a scheduler that was loaded is unloaded.
    Kernel,
    /// The one that the run began with; if that was the kernel's own, as [`Kernel`](Self::Kernel).
    First,
    /// One that is loaded, in place of the one that was before.
    Loaded {
        /// Its name, which whoever plays the scenario resolves.
        name: String,
        /// The options that it is started with, as one text.
        options: String,
    },
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
    /// What utilization a task counts as at least.
    UclampMin(Expr),
    /// And at most.
    UclampMax(Expr),
    /// The group that a task is in.
    Group(Reference),
    /// The fragment that a task uses.
    Fragment(Fragment),
    /// SIGSTOP; a source sends no more.
    Stop,
    /// SIGCONT; a source sends again.
    Continue,
    /// A group's weight.
    Weight(Expr),
    /// A group's CPU time in each of its periods.
    Quota(Expr),
    /// How much CPU time that periods left unused a group keeps.
    Burst(Expr),
    /// Whether a group is idle.
    Idle(bool),
    /// Freezes a group.
    Freeze,
    /// Thaws a group.
    Thaw,
    /// Takes CPUs online or offline.
    Online(bool),
    /// The CPUs on which a source's datagrams arrive.
    Arrival(Place),
    /// How many datagrams a source sends, from then on at even distances.
    Rate(Rate),
    /// Loads, unloads or replaces the scheduler.
    Scheduler(SchedulerChoice),
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
    /// Where it stands.
    pub spot: Arc<Spot>,
}

/// A part of the run that gets metrics of its own.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// When it begins.
    pub at: Expr,
}
