//! A TOML file into runs, and runs into rows, plots and checked claims.
//!
//! The way of an experiment: [`Experiment::read`] turns a file into checked data (or into
//! [`Problems`], each with place and mend); [`Experiment::jobs`] says which runs it needs;
//! [`Runs::of`] runs each distinct [`Plan`] once, on several threads; [`Experiment::outcome`] makes
//! rows and judges claims; [`Experiment::section`] shows them in a report.
//!
//! What an experiment can say is in docs/experiments.md. All but [`Lab`] knows no engine: what can be
//! named, set and measured, and one run at a time, come through [`Simulator`].

mod document;
mod experiment;
mod fields;
mod figures;
mod judge;
mod lab;
mod outcome;
mod plan;
mod point;
mod problem;
mod read;
mod run;
mod section;
mod simulator;

pub use experiment::{
    Axis, Claim, Compare, Direction, Experiment, Extent, HistogramRead, How, Measure, Parts,
    PlotSpec, Published, Take, Target, Test, Within,
};
pub use judge::{Finding, Judged};
pub use lab::Lab;
pub use outcome::Outcome;
pub use plan::{Chosen, Part, Plan};
pub use point::{Filter, Point};
pub use problem::{Problem, Problems};
pub use run::{Difference, Job, Options, Progress, Runs, seeds};

pub use simulator::{
    Cause, HistogramDescription, Measured, MetricDescription, Parameter, PartError, RunError,
    Simulator,
};
pub use warmq_units::setting::{Kind, Setting, Value};
