//! A workload as data: what there is (objects), who does what (tasks), what can be set, and what
//! changes meanwhile.
//!
//! Purpose: [`Scenario::read`] reads a TOML file and checks it, [`Scenario::read_rt_app`] a script
//! of rt-app; [`Scenario::bind`] gives it values
//! for its settings and the numbers of the machine, and [`Bound::compile`] makes the [`program`]
//! that all worlds execute. Whoever plays a scenario gets numbers and ids: no name is looked up
//! later.
//!
//! Key decision: it is a language of data. Steps repeat and draw amounts, but there are no
//! functions and no conditions besides a setting's word, so that every scenario can be checked
//! before it runs.
//!
//! Not here: how a scenario is played. This crate knows neither the laboratory nor the real world;
//! [`fidelity`](Scenario::fidelity) says how true each world is to it.
//!
//! ```
//! use warmq_scenario::{Scenario, Site, TaskKindId};
//!
//! let text = "
//! [task.editor]
//! every = \"10ms\"
//! body = [{ run = \"1ms\" }]
//!
//! [task.build]
//! count = \"2 per cpu\"
//! body = [{ run = \"10ms\" }]
//! ";
//! let scenario = Scenario::read("keys.toml", text).unwrap();
//! let site = Site { cpus: 4, ..Site::default() };
//! let defaults = warmq_config::Chosen::defaults(scenario.settings());
//! let bound = scenario.bind(&defaults, &site).unwrap();
//! assert_eq!([0, 1].map(|kind| bound.tasks(TaskKindId(kind))), [1, 8]);
//! ```

// Integers decide; floats only describe.
#![deny(clippy::float_arithmetic)]

mod amount;
mod bind;
mod change;
mod check;
mod expr;
mod fidelity;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the schema is made by tests, and says more")
)]
mod keys;
mod object;
mod place;
pub mod program;
mod quantity;
mod read;
mod recorded;
mod rt_app;
mod scenario;
#[cfg(test)]
mod schema;
mod site;
mod step;
mod task;
mod trust;
mod uses;

pub use amount::{Amount, Draw, StreamName};
pub use bind::{Bound, EvalError, Indexes};
pub use change::{Change, Occurs, Phase, SchedulerChoice, Set, Target};
pub use expr::{Expr, Fault, SettingId, Spot};
pub use fidelity::{Fidelity, Note, WorldKind};
pub use object::{
    Arrivals, Card, Class, Family, Object, ObjectId, ObjectKind, Rate, Source, Spinlock, Then,
};
pub use place::Place;
pub use quantity::Quantity;
pub use recorded::{Moment, Recorded};
pub use scenario::{Order, Scenario, Span};
pub use site::Site;
pub use step::{
    Action, CounterId, End, Fragment, Pattern, Reference, Share, SpanId, SpanReference, Step,
    TaskReference, Touch, When,
};
pub use task::{Deadline, Policy, TaskKind, TaskKindId};
