//! Worlds beside the laboratory, which play scenarios with real threads. Nothing here knows how:
//! whoever makes an [`Engine`](crate::Engine) hands them over.

use warmq_config::Setting;
use warmq_machine::MachineDescription;
use warmq_scenario::World as Kind;
use warmq_trace::{Header, Record};
use warmq_units::{Duration, Instant};

use crate::plan::Plan;
use crate::simulator::{Parameter, RunError};

/// A world that plays scenarios for real.
pub trait World: Send + Sync {
    /// Which one it is; its name is how experiments ask for it.
    fn kind(&self) -> Kind;

    /// What can be set on it.
    fn settings(&self) -> Vec<Setting>;

    /// Whether a scheduler of this name can run there.
    ///
    /// # Errors
    /// Why not, and what to use.
    fn takes_scheduler(&self, name: &str) -> Result<(), String>;

    /// Whether it can be played on this machine: a description's name or file, or `host`.
    ///
    /// # Errors
    /// Why not, and what to use.
    fn takes_machine(&self, name: &str) -> Result<(), String>;

    /// Whether other runs would disturb this one.
    fn needs_quiet(&self, plan: &Plan) -> bool;

    /// Plays.
    ///
    /// # Errors
    /// When it cannot be played, or ended early.
    fn play(&self, request: &Play<'_>) -> Result<Played, RunError>;
}

/// What is to be played.
#[derive(Clone, Copy, Debug)]
pub struct Play<'a> {
    /// The run.
    pub plan: &'a Plan,
    /// Its machine, as the plan sets it.
    pub machine: &'a MachineDescription,
    /// The name of the scenario's file, whose ending names the language.
    pub file: &'a str,
    /// The text of the scenario.
    pub text: &'a str,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// Where, and the names of what the records number.
    pub header: Header,
    /// What happened, in the order of time. The first [`Record::Count`] is of the time at which the
    /// measurement begins, the last of that at which it ends.
    pub records: Vec<(Instant, Record)>,
    /// What was not played as the scenario says.
    pub notes: Vec<String>,
    /// For how long its CPUs waited for those of the machine below it, as far as no record
    /// ([`Record::Steal`]) shows: by so much its times may be too long. Zero where its clock does
    /// not run meanwhile.
    pub delay: Duration,
    /// What it was played on.
    pub parameters: Vec<Parameter>,
}
