//! The kernel's own laws and stories, told with a scheduler as plain as can be.

mod endings;
mod fragments;
mod hotplug;
mod interrupts;
mod operations;
mod preemption;
mod random;
mod remote;
mod smt;
mod sockets;
mod softirqs;
mod support;
mod sync;
mod timers;
