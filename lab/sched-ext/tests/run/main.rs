//! Compiled schedulers of our own, on small machines: what they see, and for what they are ejected.

mod counting;
mod custody;
mod ejected;
mod events;
mod groups;
mod kicks;
mod loader;
mod mutant;
mod mutated;
mod order;
mod profiler;
mod random;
mod realtime;
mod stage;
mod wakes;
