//! The program plays scenarios of a few lines on this machine, and its traces say what happened.
//!
//! Nothing here depends on how fast or how busy the machine is: what is checked are orders, counts
//! and lower bounds of times.

mod clocks;
mod connections;
mod recorded;
mod robust;
mod sessions;
mod shipped;
mod sources;
mod spinlocks;
mod steps;
mod support;
mod system;
mod together;
