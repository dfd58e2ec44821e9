//! The simulated kernel: timeline, tasks, locks, sockets, interrupts, costs.
