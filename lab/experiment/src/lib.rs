//! Turns a TOML file into runs, and runs into rows, plots and checked claims.
//!
//! The stages of an experiment: a [`Request`] (a file, or a workload and where it is played)
//! becomes checked data ([`Request::experiment`], or [`Problems`], each with place and fix);
//! [`Experiment::jobs`] says which runs it needs; [`Runs::of`] runs each distinct [`Plan`] once, on
//! several threads; [`Experiment::outcome`] makes rows and judges claims; [`Experiment::section`]
//! shows them in a report. A [`Study`] is all that for several experiments.
//!
//! The format of experiments is described in docs/experiments.md. Only [`Engine`] depends on the
//! simulated kernel; everything else sees parts, settings, metrics and runs through [`Simulator`].

pub mod calibrate;
mod engine;
mod experiment;
mod figures;
pub mod gap;
mod grid;
mod jobs;
mod judge;
pub mod judgement;
pub mod laws;
mod not_done;
mod only;
mod outcome;
pub mod papers;
mod plan;
pub mod planned;
mod point;
mod profiles;
mod read;
mod real_kernel;
mod request;
mod run;
mod section;
mod simulator;
mod study;
mod world;

pub use engine::{
    Compiled, Engine, FindProgram, Workload, check_figures, fidelity, fidelity_of_schedulers,
};
pub use experiment::{
    Axis, Claim, Compare, Direction, Experiment, Extent, HistogramRead, How, Measure, Measures,
    OverSeeds, Parts, PlotSpec, Published, Take, Target, Test, Within,
};
pub use grid::Grid;
pub use jobs::Jobs;
pub use judge::{Finding, Judged};
pub use not_done::NotDone;
pub use outcome::{Outcome, RunFailure, shown_value};
pub use plan::{Configured, KERNEL, LAB, Part, Plan};
pub use point::{Filter, Point};
pub use real_kernel::{Kernels, Modelled, RealKernel, beside, facts, nearest_release, simulates};
pub use request::{Change, Request, Trial};
pub use run::{Difference, Job, NoThreads, Options, Progress, Runs, seeds};

pub use simulator::{
    Cause, HistogramDescription, Measured, MetricDescription, Parameter, PartError, RunError,
    Runner, Simulator, TIME_UP, Used,
};
pub use study::{Claims, Study};
pub use warmq_config::{Document, Kind, Problem, Problems, Setting, Value};
pub use world::{AnyObserver, Play, Played, World};
