//! The paths of the kernel, from one event to the next: what CPUs, interrupts and remote peers do.

mod answer;
mod arrivals;
mod bandwidth;
mod change;
mod condition;
mod cpu_loop;
mod hold;
mod hotplug;
mod irq;
mod net_rx;
mod operator;
mod remote;
mod schedule;
mod semaphore;
mod spinlock;
mod start;
mod steal;
mod syscalls;
mod system;
mod unix;
mod wakeup;

pub(crate) use self::cpu_loop::{Flow, STEPS_AT_ONCE};
pub(crate) use self::system::System;
