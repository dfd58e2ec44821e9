//! The engine of the laboratory: a kernel that is all mechanism.
//!
//! Purpose: to run programs on a simulated machine under a scheduler, deterministically, and to
//! say what it cost. It declares the traits [`Scheduler`] and [`Program`], and knows none of
//! either. Key decision: a CPU is an interpreter of steps (see `step.rs`), so that system calls,
//! interrupts, lock waits and preemption are one mechanism. What it does not do: instruction
//! streams, TLBs, paging, file systems; their costs are in the cost profile.
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

mod boot;
mod context;
mod core;
mod costs;
mod cpu;
mod cpu_loop;
mod creation;
mod ending;
mod engine;
mod figures;
mod group;
mod hotplug;
mod interrupt;
mod irq;
mod kernel;
mod lock;
mod measured;
mod memory;
mod network;
mod operation;
mod program;
mod remote;
mod schedule;
mod scheduler;
mod settings;
mod smt;
mod step;
mod sync;
mod syscalls;
mod task;
mod timeline;
mod timer;
mod wakeup;

pub use boot::{Boot, BootError, MakeScheduler, Workload};
pub use context::{Attach, Context};
pub use costs::{Costs, KERNEL_COSTS, SCHEDULER_COSTS, UnknownCost};
pub use cpu::NeedResched;
pub use ending::{Ending, Misuse, Rule, Stall, Violation, Waiting};
pub use figures::{CpuTime, TaskFigures, Walks};
pub use group::{Group, GroupId};
pub use kernel::Kernel;
pub use lock::LockFigures;
pub use memory::{AccessCounts, Within};
pub use network::{DatagramCounts, PacketCounts};
pub use operation::{Condition, Fragment, Listener, Mm, Mutex, Nic, Region, Remote, Socket, Touch};
pub use program::{ClosedEarly, Program, RemotePeer, Running, Task};
pub use scheduler::{Balance, Callback, Locks, Pick, Scheduler, WakeContext, Wakeup, Why};
pub use settings::{IdleLoop, Preemption, Settings, SoftirqLimits};
pub use step::Mode;
pub use task::{Policy, TaskSpec, View};
pub use timeline::Timeline;
pub use timer::Timer;
