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

mod answer;
mod arrivals;
mod bandwidth;
mod boot;
mod card;
mod change;
mod context;
mod core;
mod costs;
mod cpu;
mod cpu_loop;
mod creation;
mod detail;
mod ending;
mod engine;
mod figures;
mod group;
mod hold;
mod hotplug;
mod interrupt;
mod irq;
mod kernel;
mod lock;
mod measured;
mod memory;
mod net_rx;
mod network;
mod note;
mod operation;
mod operator;
mod program;
mod remote;
mod schedule;
mod scheduler;
mod semaphore;
mod settings;
mod smt;
mod statistic;
mod steal;
mod step;
mod sync;
mod syscalls;
mod task;
mod timeline;
mod timer;
mod wakeup;
mod weight;

pub use answer::Sender;
pub use bandwidth::Limits;
pub use boot::{Boot, BootError, MakeScheduler, Workload};
pub use card::PacketCounts;
pub use change::Change;
pub use context::{Attach, Context};
pub use costs::{Costs, KERNEL_COSTS, SCHEDULER_COSTS, UnknownCost};
pub use cpu::NeedResched;
pub use detail::{Object, Part};
pub use ending::{Ending, Misuse, Rule, Stall, Violation, Waiting};
pub use figures::{CpuTime, TaskCpuTime, Walks};
pub use group::{Group, GroupId};
pub use kernel::Kernel;
pub use lock::LockKind;
pub use memory::{AccessCounts, Within};
pub use network::DatagramCounts;
pub use note::{Role, Span};
pub use operation::{Barrier, Condition, Fragment, Listener, Mm, Mutex, Nic, Region, Remote};
pub use operation::{Semaphore, Socket, Touch};
pub use operator::Operator;
pub use program::{ClosedEarly, Program, RemotePeer, Running, Task};
pub use scheduler::{Balance, Callback, Hint, Locks, Pick, Scheduler, WakeContext, Wakeup, Why};
pub use settings::{
    IdleLoop, LastPoll, Loopback, PollTime, Preemption, ReceiveCharge, SemaphoreLocks, Settings,
    SoftirqLimits, Throttling,
};
pub use statistic::{Sampled, Statistic};
pub use step::Mode;
pub use task::{Policy, TaskSpec, View};
pub use timeline::Timeline;
pub use timer::Timer;
pub use weight::{group_weight_of_nice, weight_of_nice};
