//! Fragments: threads that never sleep, and each works on a piece of data that some of them share.
//!
//! Purpose: the benchmark of the affinity paper. Where threads of one fragment run in succession on
//! one CPU, its cache keeps the fragment; where they run all over the machine, each CPU fetches
//! from the others what they wrote.
//!
//! Key decision: increments are plain ones, a load and a store that nobody orders, as the paper's C
//! program does them. Two threads at a time may lose one. An atomic increment would lock the line,
//! and measure the lock more than the place of the data.
//!
//! Not here: threads that change their fragment, and a fragment placed by memory node: memory is
//! touched first by the thread that starts the others, in all modes.

mod array;
mod measure;
mod run;
mod settings;
mod worker;

pub use measure::{FragmentsReport, FragmentsRow, measure_fragments};
pub use settings::FragmentsSettings;
