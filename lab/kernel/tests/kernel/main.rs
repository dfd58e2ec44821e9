//! Tests of the kernel itself, with the simplest possible scheduler.

mod answers;
mod capacities;
mod cards;
mod endings;
mod fragments;
mod hotplug;
mod interrupts;
mod loopback;
mod operations;
mod operators;
mod preemption;
mod random;
mod remote;
mod round_robin;
mod smt;
mod sockets;
mod softirqs;
mod spinlocks;
mod steal;
mod support;
mod sync;
mod timers;
mod waits;
