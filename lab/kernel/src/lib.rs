//! The engine of the laboratory: a kernel without policy.
//!
//! Purpose: to run programs on a simulated machine under a scheduler, deterministically, and to
//! measure what that cost. It declares the traits [`Scheduler`] and [`Program`] and contains no
//! implementation of either. Key decision: a CPU is an interpreter of steps (see `words/step.rs`),
//! so that system calls, interrupts, lock waits and preemption are one mechanism. What it does not
//! model: instruction streams, TLBs, paging, file systems; their costs are in the cost table.
//!
//! ```
//! use warmq_kernel::TaskSpec;
//! use warmq_units::Cycles;
//!
//! let spinner = |task: warmq_kernel::Task| async move {
//!     loop {
//!         task.compute(Cycles(1_000_000)).await;
//!     }
//! };
//! let workload = |boot: &mut warmq_kernel::Boot<'_>| {
//!     boot.task(TaskSpec::new("spinner", None), spinner)?;
//!     Ok(())
//! };
//! # fn boots(_: &dyn warmq_kernel::Workload) {}
//! boots(&workload);
//! ```

// Integers decide; floats only describe.
#![deny(clippy::float_arithmetic)]

mod core;
mod face;
mod paths;
mod run;
mod words;

pub use crate::core::{
    AccessCounts, DatagramCounts, NeedResched, PacketCounts, Sampled, Statistic, Timeline, View,
    Within,
};
pub use face::{
    Alarm, Attach, Boot, BootError, Callback, Context, Hint, MakeScheduler, Pick, Scheduler,
    Workload,
};
pub use run::by_hand::{ByHand, Doing};
pub use run::kernel::Kernel;
pub use words::{
    Balance, Barrier, BusyWait, Change, ClosedEarly, Condition, Costs, CpuTime, Ending, Fragment,
    Group, GroupId, IdleLoop, LastPoll, Limits, Listener, LockKind, Looked, Loopback, Misuse, Mm,
    Mode, Mutex, Nic, Object, Operator, Part, Policy, PollTime, Preemption, Program, ReceiveCharge,
    Region, Remote, RemotePeer, Reserved, Role, Rule, Running, Semaphore, SemaphoreLocks, Sender,
    Settings, Socket, SoftirqLimits, Span, Spinlock, Stall, Task, TaskCpuTime, TaskSpec,
    Throttling, Timer, Touch, Uclamp, UnknownCost, Violation, Waiting, WakeContext, Wakeup, Walks,
    Why, group_weight_of_nice, weight_of_nice,
};
