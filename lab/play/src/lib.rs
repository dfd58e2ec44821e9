//! The workloads of the laboratory, by name.
//!
//! Purpose: scenarios (`common/scenario`), which are data and are played as simulated tasks, and
//! the few workloads that stay programs. None of them knows a scheduler. A workload counts its work
//! in [`Counter`]s, which cost nothing.

// Integers decide; floats only describe.
#![deny(clippy::float_arithmetic)]

mod counter;
mod play;
mod shipped;
mod web;

pub use counter::{Counter, Counters};
pub use shipped::{workload, workloads};

use warmq_config::{Chosen, Problems, Setting};
use warmq_kernel::Workload;
use warmq_machine::{CpuPlace, MachineDescription};
use warmq_scenario::program::{Cpu, Cpus};
use warmq_scenario::{Scenario, Site};
use warmq_units::CpuId;

/// What a scenario may know of `machine`.
pub fn site(machine: &MachineDescription) -> Site {
    cpus_of(machine).site()
}

/// The CPUs of `machine`.
fn cpus_of(machine: &MachineDescription) -> Cpus {
    let node = |cpu| machine.socket_or_node(cpu);
    let places = machine.cpu_ids().map(|cpu| (machine.place(cpu), node(cpu)));
    cpus(places)
}

/// The CPUs at `places` and in these memory nodes, in their order.
pub(crate) fn cpus(places: impl IntoIterator<Item = (CpuPlace, u16)>) -> Cpus {
    let cpu = |(id, (place, node)): (u16, (CpuPlace, u16))| Cpu {
        id: CpuId(id),
        llc: place.llc.into(),
        node: node.into(),
        socket: place.socket.into(),
        core: place.core.into(),
    };
    (0..).zip(places).map(cpu).collect()
}

/// A workload that can be asked for by name.
pub struct Entry {
    /// Its name: `web`.
    pub name: String,
    /// What it is, in a sentence.
    pub what: String,
    /// The counter that tells how much work was done: `requests`.
    pub work: String,
    source: Source,
}

/// Where a workload comes from.
enum Source {
    Program {
        settings: fn() -> Vec<Setting>,
        build: fn(&Chosen, &Counters) -> Box<dyn Workload>,
    },
    Scenario(Box<ScenarioFile>),
}

/// A scenario and where it is written.
struct ScenarioFile {
    scenario: Scenario,
    file: String,
    text: String,
}

impl Entry {
    /// The scenario of the text of `file` as a workload called `name`.
    ///
    /// # Errors
    /// Everything that is wrong with the text, each with its place and a fix.
    pub fn of_scenario(name: &str, file: &str, text: &str) -> Result<Entry, Problems> {
        let scenario = Scenario::read_any(file, text)?;
        Ok(Entry {
            name: name.to_owned(),
            what: scenario.title().to_owned(),
            work: scenario.work().to_owned(),
            source: Source::Scenario(Box::new(ScenarioFile {
                scenario,
                file: file.to_owned(),
                text: text.to_owned(),
            })),
        })
    }

    /// The scenario that it is, if it is one.
    pub fn scenario(&self) -> Option<&Scenario> {
        self.scenario_file().map(|file| &file.scenario)
    }

    /// The name of the scenario's file and its text, if it is one.
    pub fn text(&self) -> Option<(&str, &str)> {
        self.scenario_file()
            .map(|file| (file.file.as_str(), file.text.as_str()))
    }

    fn scenario_file(&self) -> Option<&ScenarioFile> {
        match &self.source {
            Source::Program { .. } => None,
            Source::Scenario(file) => Some(file),
        }
    }

    /// What can be set on it.
    pub fn settings(&self) -> Vec<Setting> {
        match &self.source {
            Source::Program { settings, .. } => settings(),
            Source::Scenario(file) => file.scenario.settings(),
        }
    }

    /// Checks that the kernel of `machine` admits the deadline tasks of a scenario. `by_servers`:
    /// what its deadline servers have reserved counts.
    ///
    /// # Errors
    /// The task with which it is too much, or that is bound to some CPUs; as [`Entry::build`].
    pub fn check_reservations(
        &self,
        chosen: &Chosen,
        machine: &MachineDescription,
        by_servers: bool,
    ) -> Result<(), Problems> {
        let Source::Scenario(file) = &self.source else {
            return Ok(());
        };
        let cpus = cpus_of(machine);
        let bound = file.scenario.bind(chosen, &cpus.site())?;
        let admitted = bound.check_reservations(&cpus, by_servers);
        admitted.map_err(|problem| Problems::from(*problem))
    }

    /// The workload, set as chosen, for the machine `site`, which will count into `counters`.
    ///
    /// # Errors
    /// A scenario that these settings make impossible, such as a division by zero.
    pub fn build(
        &self,
        chosen: &Chosen,
        site: &Site,
        counters: &Counters,
    ) -> Result<Box<dyn Workload>, Problems> {
        match &self.source {
            Source::Program { build, .. } => Ok(build(chosen, counters)),
            Source::Scenario(file) => {
                let bound = file.scenario.bind(chosen, site)?;
                Ok(Box::new(play::Play::new(bound, counters)))
            }
        }
    }
}
