//! The paths of the kernel, from one event to the next: what CPUs, interrupts and remote peers do.

pub(crate) mod answer;
pub(crate) mod arrivals;
pub(crate) mod bandwidth;
pub(crate) mod change;
pub(crate) mod cpu_loop;
pub(crate) mod engine;
pub(crate) mod hold;
pub(crate) mod hotplug;
pub(crate) mod irq;
pub(crate) mod net_rx;
pub(crate) mod operator;
pub(crate) mod remote;
pub(crate) mod schedule;
pub(crate) mod semaphore;
pub(crate) mod start;
pub(crate) mod steal;
pub(crate) mod syscalls;
pub(crate) mod wakeup;
