//! Stories of every scheduler, drawn as charts that one can check by hand, and laws that hold under
//! all of them.
//!
//! In a chart a line is a CPU, a letter a tick of 10 ms, and the letter is the task's name. The
//! kernel costs nothing and memory is free, so that nothing but policy shows.

mod affinity;
mod broken;
mod cache_aware;
mod cfs;
mod changes;
mod colors;
mod compiled;
mod deadline;
mod details;
mod eevdf;
mod elsc;
mod family;
mod laws;
mod lines;
mod linux24;
mod mq;
mod nodes;
mod o1;
mod quotas;
mod random_changes;
mod reach;
mod real_time;
mod scenarios;
mod scx_warmq;
mod sessions;
mod smt;
mod sources;
mod spinlocks;
mod stage;
mod starvation;
mod symmetry;
mod told;
mod unlike;
