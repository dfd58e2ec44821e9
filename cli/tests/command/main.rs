//! The command as people and scripts meet it.

#![allow(clippy::disallowed_methods)] // Tests make files as users do.

mod again;
mod any_line;
mod beside_perf;
mod bounds;
mod compare;
mod conflicts;
mod decisions;
mod diagnose;
mod fibers;
mod help;
mod judge;
mod kinds;
mod laws;
mod lists;
mod names;
mod outputs;
mod planned;
mod profile;
mod programs;
mod race;
mod recordings;
mod refusals;
mod replay;
mod results;
mod scenarios;
mod shell;
mod support;
mod vm;
mod walk;
