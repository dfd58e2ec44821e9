//! Plays a scenario with real threads, processes, sockets and cgroups.
//!
//! Purpose: the same scenario that the laboratory plays as simulated tasks is played by a real
//! kernel, here or in a guest, and gives the same records.
//!
//! Key decision: three kinds of processes. The *controller* is the process that was called: it
//! decides everything beforehand, starts all tasks at one instant, samples what they count, and
//! writes the trace. The *crew* is its only child: it makes the objects, forks the tasks and takes
//! everything away afterwards. The *tasks* are processes (and threads) that the crew forked, or the
//! leader of their session. They share memory for their locks, counters and logs, and make no
//! system call that is not a step of their scenario. If the controller is killed the crew cleans
//! up, and the other way round.
//!
//! Not here: what the kernel says (`live/record`), what records come to (`common/metrics`).

#[cfg(test)]
mod allocations;
mod control;
mod crew;
mod error;
mod groups;
mod notes;
mod perform;
mod places;
mod program;
mod run;
mod scheduler;
mod sessions;
mod settle;
mod source;
mod specs;
mod speed;
mod stage;
mod sys;
#[cfg(test)]
mod testing;
mod trace;

pub use control::Times;
pub use error::PlayError;
pub use run::{Options, play, site};
pub use scheduler::Counter;
pub use sys::process::end_with;
pub use warmq_record::Wanted;
