//! The engine of the laboratory: a kernel without policy.
//!
//! Purpose: to run programs on a simulated machine under a scheduler, deterministically, and to
//! measure what that cost. It declares the traits [`Scheduler`] and [`Program`] and contains no
//! implementation of either. Key decision: a CPU is an interpreter of steps (see `step.rs`), so
//! that system calls, interrupts, lock waits and preemption are one mechanism. What it does not
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

pub use crate::core::cpu::NeedResched;
pub use crate::core::memory::{AccessCounts, Within};
pub use crate::core::net::card::PacketCounts;
pub use crate::core::net::socket::DatagramCounts;
pub use crate::core::statistic::{Sampled, Statistic};
pub use crate::core::task::View;
pub use crate::core::time::timeline::Timeline;
pub use crate::core::time::timer::Timer;
pub use face::boot::{Boot, BootError, MakeScheduler, Workload};
pub use face::context::{Attach, Context};
pub use face::scheduler::{Callback, Hint, Pick, Scheduler};
pub use run::kernel::Kernel;
pub use words::answer::Sender;
pub use words::change::Change;
pub use words::costs::{Costs, KERNEL_COSTS, SCHEDULER_COSTS, UnknownCost};
pub use words::ending::{Ending, Misuse, Rule, Stall, Violation, Waiting};
pub use words::figures::{CpuTime, TaskCpuTime, Walks};
pub use words::group::{Group, GroupId, Limits};
pub use words::note::{Role, Span};
pub use words::object::{Object, Part};
pub use words::operation::{
    Barrier, Condition, Fragment, Listener, Mm, Mutex, Nic, Region, Remote, Semaphore, Socket,
    Touch,
};
pub use words::operator::Operator;
pub use words::program::{ClosedEarly, Program, RemotePeer, Running, Task};
pub use words::reason::{Balance, Locks, WakeContext, Wakeup, Why};
pub use words::settings::{
    IdleLoop, LastPoll, LockKind, Loopback, PollTime, Preemption, ReceiveCharge, SemaphoreLocks,
    Settings, SoftirqLimits, Throttling,
};
pub use words::spec::{Policy, TaskSpec};
pub use words::step::Mode;
pub use words::weight::{group_weight_of_nice, weight_of_nice};
