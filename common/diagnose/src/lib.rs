//! Who starves in a trace, who ran instead, and why it could.
//!
//! Purpose: to turn a trace, simulated or recorded, into sentences that a person can act on.
//!
//! Key decision: records are looked at once, in the order of time, and only sums are kept
//! ([`Watcher`]). What the sums say of the tasks that waited is judged by rules, one a file, each
//! with its thresholds and its reason (`rules`); of all rules that fit a task the first one speaks,
//! so the list goes from the most specific to the most general. They judge the whole time, and, so
//! that no average hides anything, each long wait and windows that slide (`bursts`).
//!
//! Not here: reading of files, pages, and pictures of who ran when.

// Integers decide; floats only describe.
#![deny(clippy::float_arithmetic)]

mod activity;
mod bursts;
mod case;
mod cure;
mod diagnosis;
mod doubt;
mod due;
mod facts;
mod late;
mod need;
mod preference;
mod release;
mod rules;
mod unbound;
mod verdict;
mod watch;
mod weight;
mod words;

pub use diagnosis::{Diagnosis, Window};

pub use activity::{About, Activity, Bouncing, Instead, Waiting, Waker, Woken, summed};
pub use cure::Cure;
pub use need::{Need, NotGiven};
pub use rules::ALL_KERNELS;
pub use unbound::Unbound;
pub use verdict::{Kind, Verdict};
pub use watch::Watcher;
pub use words::{count, span};
