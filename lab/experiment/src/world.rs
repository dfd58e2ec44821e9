//! Worlds, in which workloads are played: the laboratory, and others, which play scenarios with
//! real threads. Nothing here knows how: whoever makes an [`Engine`](crate::Engine) hands the
//! others over.

use std::collections::BTreeMap;

use warmq_config::{Chosen, Setting};
use warmq_machine::MachineDescription;
use warmq_play::Entry;
use warmq_scenario::WorldKind;
use warmq_sched_ext::Place;
use warmq_trace::{Header, Observer, Record};
use warmq_units::Instant;

use crate::engine::{Programs, places};
use crate::plan::Plan;
use crate::simulator::{Measured, Parameter, RunError};

/// A world that plays workloads.
pub trait World: Send + Sync {
    /// Which one it is; its name is how experiments ask for it.
    fn kind(&self) -> WorldKind;

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
    fn takes_machine(&self, _name: &str) -> Result<(), String> {
        Ok(())
    }

    /// Whether it plays programs, too, not scenarios alone.
    fn plays_programs(&self) -> bool {
        false
    }

    /// Whether a scheduler but the kernel's own is a program that this machine starts.
    fn starts_schedulers(&self) -> bool {
        false
    }

    /// Whether other runs would disturb this one.
    fn needs_quiet(&self, _plan: &Plan) -> bool {
        true
    }

    /// Plays while `watcher` watches, and measures. A world of real threads has records to be
    /// measured ([`Played::measured`]).
    ///
    /// # Errors
    /// When it cannot be played, or ended early.
    fn play(
        &self,
        play: &Play<'_>,
        watcher: Option<&mut dyn AnyObserver>,
    ) -> Result<Measured, RunError>;
}

/// An observer of whatever world, which is not known when the world is compiled.
pub trait AnyObserver {
    /// As [`Observer::about`].
    fn begin(&mut self, header: &Header);
    /// As [`Observer::see`].
    fn watch(&mut self, at: Instant, record: &Record);
}

impl<O: Observer> AnyObserver for O {
    fn begin(&mut self, header: &Header) {
        self.about(header);
    }

    fn watch(&mut self, at: Instant, record: &Record) {
        self.see(at, record);
    }
}

/// What is to be played.
#[derive(Clone, Copy)]
pub struct Play<'a> {
    /// The run.
    pub plan: &'a Plan,
    /// Its machine, as the plan sets it.
    pub machine: &'a MachineDescription,
    /// What is set on the machine.
    pub set: &'a Chosen,
    /// The workload.
    pub workload: &'a Entry,
    /// Where compiled schedulers are.
    pub(crate) programs: &'a Programs,
}

impl<'a> Play<'a> {
    /// The name of the scenario's file, whose ending names the language, and its text; nothing of a
    /// program.
    pub fn text(&self) -> (&'a str, &'a str) {
        self.workload.text().unwrap_or_default()
    }

    /// What the plan's scheduler counts, as `warmq-player --counters` takes it.
    pub fn counters(&self) -> String {
        let (name, cpus) = (&self.plan.scheduler.name, self.machine.cpus.len());
        self.programs.written_counters(name, cpus)
    }

    /// The compiled scheduler `name`, if it is an object alone, as a file that a kernel of `series`
    /// starts as a script of `loader`. What is set for the plan's scheduler is set for that alone.
    ///
    /// # Errors
    /// What it needs, and such a loader does not do.
    pub fn packed(
        &self,
        name: &str,
        loader: &str,
        series: &str,
    ) -> Result<Option<Vec<u8>>, RunError> {
        let own = &self.plan.scheduler;
        let none = BTreeMap::new();
        let settings = match own.name == name {
            true => &own.settings,
            false => &none,
        };
        let places = places(self.machine, WorldKind::Guest).into_iter();
        let place = |(core, llc)| Place {
            core,
            llc,
            node: 0,
            ..Place::default()
        };
        let places = places.map(place).collect();
        self.programs
            .packed((name, settings), (loader, series), places)
    }
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
    /// ([`Record::Steal`]) shows, in a second of playing: by so much its times may be too long.
    /// Zero where its clock does not run meanwhile.
    pub delay_per_second: f64,
    /// What it was played on.
    pub parameters: Vec<Parameter>,
}
