//! Scheduling by data affinity as a model that is small enough for exact answers
//! (docs/affinity/model.md).
//!
//! Purpose: to say how far a scheduler that must decide now is from the best that anybody could do.
//!
//! - [`Instance`]: CPUs with a cache each, fragments of data, tasks that use them, and what it
//!   costs to fill and to write back a line. It is read from TOML ([`Plan::read`]) or drawn by a
//!   seed ([`draw`]).
//! - [`replay`] plays a given order of execution and charges the switches; [`optimum`] finds the
//!   assignment that ends first, and [`Optimum::WholeBins`] the best one that splits no fragment.
//! - [`rules`]: what the online algorithm decides. They know no engine and no model, so that a
//!   simulated or real scheduler can ask them, too. [`online`] follows them on an instance.
//! - [`Gap`]: what the rules cost on an instance; [`Gaps`]: on many.
//!
//! Key decision: time is in whole units, and a run is never interrupted, as in the paper's model.
//! So every answer is an exact integer.
//!
//! Not here: coherence between CPUs that use one fragment at the same time, priorities and slices.
//! The lab has those.
//!
//! ```
//! use warmq_affinity::{Optimum, Plan, Policy, online, optimum};
//!
//! let text = "
//! title = \"Two fragments on one CPU\"
//! cpus = 1
//! cache = { lines = 4, fill = 1, write_back = 0 }
//! fragment = { index = 2, rows = 3 }
//! [task]
//! a = { fragment = \"index\", run = 4 }
//! b = { fragment = \"rows\", run = 4 }
//! c = { fragment = \"index\", run = 4 }
//! ";
//! let instance = Plan::read("example.toml", text).unwrap().instance;
//! // 12 units of work, and each fragment is filled once: a and c run one after the other.
//! let best = optimum(&instance, Optimum::WholeBins, &mut |_, _| {}).unwrap();
//! assert_eq!(best.end, 17);
//! // What must decide now does no better.
//! assert!(online(&instance, &Policy::usual(&instance)).schedule.end() >= best.end);
//! ```

// Integers decide; floats only describe.
#![deny(clippy::float_arithmetic)]

mod cache;
mod cpu;
mod gap;
mod model;
mod online;
mod optimum;
mod order;
mod random;
mod read;
pub mod rules;
mod schedule;

pub use cache::{Cache, Switch};
pub use gap::{Figure, Gap, Gaps};
pub use model::{Costs, Fragment, FragmentId, Instance, Penalty, Run, Task};
pub use online::{Counts, Online, Policy, online};
pub use optimum::{Best, Optimum, TooLarge, greedy, optimum};
pub use order::{Order, by_fragment, replay, switches};
pub use random::{Shape, draw};
pub use read::Plan;
pub use schedule::{Doing, Schedule, Span};
