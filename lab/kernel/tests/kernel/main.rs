//! The kernel's own laws and stories, told with a scheduler as plain as can be.

mod endings;
mod fragments;
mod interrupts;
mod operations;
mod random;
mod remote;
mod sockets;
mod support;
mod sync;
