//! The engine behind [`Simulator`]: machines, schedulers and workloads by name, one run at a time.

mod compiled;
mod fidelity;
mod kernel;
mod lab;
mod machines;
mod measure;
mod of_tasks;
mod parameters;
mod profiled;
mod real;
#[cfg(test)]
mod tests;
mod workloads;

use std::collections::BTreeMap;
use std::sync::Arc;

use warmq_config::{Chosen, Setting, Value};
use warmq_machine::MachineDescription;
use warmq_machine::description::Cost;
use warmq_scenario::{Scenario, WorldKind};
use warmq_sched::Said;
use warmq_sched_ext::{Loaded, Place};
use warmq_trace::Names;

pub use self::compiled::{Compiled, FindProgram};
pub(crate) use self::compiled::{Programs, SERIES};
pub(crate) use self::fidelity::refusal;
pub use self::fidelity::{fidelity, fidelity_of_schedulers};
use self::lab::Lab;
use self::workloads::Workloads;
pub use self::workloads::{Workload, check_figures};
use crate::plan::{KERNEL, LAB, Part, Plan};
use crate::simulator::{
    Cause, HistogramDescription, Measured, MetricDescription, PartError, RunError, Runner,
    Simulator, Used,
};
use crate::world::{AnyObserver, Play, World};

/// The simulated kernel with all machines, schedulers and workloads, and the worlds beside it.
#[derive(Clone)]
pub struct Engine {
    host: Option<MachineDescription>,
    lab: Lab,
    others: Vec<Arc<dyn World>>,
    workloads: Arc<Workloads>,
}

impl Default for Engine {
    fn default() -> Engine {
        Engine::new(None)
    }
}

impl Engine {
    /// `host` describes the machine that the name `host` stands for; nothing here looks at the
    /// machine it runs on.
    pub fn new(host: Option<MachineDescription>) -> Engine {
        Engine {
            host,
            lab: Lab {
                checked: cfg!(debug_assertions),
                ..Lab::default()
            },
            others: Vec::new(),
            workloads: Arc::default(),
        }
    }

    /// The same engine, which hands plans of this world over to it.
    #[must_use]
    pub fn with(mut self, world: Arc<dyn World>) -> Engine {
        self.others.push(world);
        self
    }

    /// The same engine, which has compiled schedulers by the names of their programs, as `find`
    /// finds them.
    #[must_use]
    pub fn finding(mut self, find: FindProgram) -> Engine {
        self.lab.programs = Arc::new(Programs::found_by(find));
        self
    }

    /// Whether the scheduler `name` is a compiled one: in a file, or a program that is found or has
    /// a profile.
    pub fn is_compiled(&self, name: &str) -> bool {
        self.lab.programs.knows(name)
    }

    /// Compiled schedulers that can be named: those that are found, and those that a command makes;
    /// and what they are.
    pub fn programs(&self) -> Vec<(String, String)> {
        self.lab.programs.listed()
    }

    /// The compiled scheduler `name`, as it is described; `None`, if it is none.
    ///
    /// # Errors
    /// Why it cannot be read, or that it is missing.
    pub fn compiled(&self, name: &str) -> Option<Result<Compiled, String>> {
        self.lab.programs.described(name)
    }

    /// The compiled scheduler `name`, with variables set, as its loader loads it for CPUs at these
    /// places.
    ///
    /// # Errors
    /// Why it cannot be run.
    pub fn load_compiled(
        &self,
        name: &str,
        variables: &[(String, String)],
        places: Vec<Place>,
    ) -> Result<Loaded, String> {
        self.lab.programs.loaded(name, variables, places)
    }

    fn worlds(&self) -> impl Iterator<Item = &dyn World> {
        let others = self.others.iter().map(|world| &**world);
        std::iter::once(&self.lab as &dyn World).chain(others)
    }

    fn world(&self, name: &str) -> Option<&dyn World> {
        self.worlds().find(|world| world.kind().name() == name)
    }

    fn is_a_scenario(&self, world: &dyn World, name: &str) -> Result<(), String> {
        match self.workload(name) {
            Ok(workload) if workload.entry().scenario().is_none() => Err(format!(
                "{name} is a program of the lab; world = \"{}\" plays scenarios",
                world.kind().name()
            )),
            _ => Ok(()),
        }
    }

    /// The workload called `name`: one that comes with WarmQ, or the file of a scenario.
    ///
    /// # Errors
    /// If there is none, or its file is wrong.
    pub fn workload(&self, name: &str) -> Result<Arc<Workload>, PartError> {
        self.workloads.find(name)
    }

    /// The names of the scenarios among the workloads.
    fn names_of(&self, used: &Used<'_>) -> Vec<Names> {
        let workloads = used
            .workloads
            .iter()
            .filter_map(|name| self.workload(name).ok());
        let names = workloads.filter_map(|known| known.entry().scenario().map(Scenario::names));
        names.collect()
    }

    /// Makes a scenario known that is in no file: `name`, which ends as its file would, is how
    /// plans name it.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn know(&self, name: &str, text: &str) -> Result<(), PartError> {
        self.workloads.add(name, text)
    }

    /// The same engine, which checks every run for broken invariants ([`Checker`]). A debug build
    /// always does.
    #[must_use]
    pub fn checked(mut self) -> Engine {
        self.lab.checked = true;
        self
    }

    /// The same engine, which profiles the programs of compiled schedulers.
    #[must_use]
    pub fn profiled(mut self) -> Engine {
        self.lab.profiled = true;
        self
    }

    /// The same engine, which refuses scenarios in files that write to files of the machine or
    /// start programs on it, and schedulers that are programs of this machine.
    #[must_use]
    pub fn untrusted(self) -> Engine {
        Engine {
            workloads: Arc::new(Workloads::untrusted()),
            ..self
        }
    }

    /// Whether `world` would start a program of this machine that nobody trusts.
    fn would_start(&self, world: &dyn World, scheduler: &str) -> bool {
        self.workloads.are_untrusted() && world.starts_schedulers() && scheduler != KERNEL
    }

    /// The machine called `name`: one that comes with WarmQ, a path to a description in TOML or to
    /// an hwloc XML file, or `host`.
    ///
    /// # Errors
    /// If there is no such machine, or its file cannot be used.
    pub fn machine(&self, name: &str) -> Result<MachineDescription, PartError> {
        machines::find(name, self.host.as_ref())
    }

    /// Runs `plan` while `watcher` watches.
    ///
    /// # Errors
    /// As [`Runner::simulate`].
    pub fn observe(
        &self,
        plan: &Plan,
        watcher: &mut dyn AnyObserver,
    ) -> Result<Measured, RunError> {
        self.play(plan, Some(watcher))
    }

    fn play(
        &self,
        plan: &Plan,
        watcher: Option<&mut dyn AnyObserver>,
    ) -> Result<Measured, RunError> {
        let (machine, set, workload) = self.parts(plan)?;
        let world = self.world(&plan.world.name).unwrap_or(&self.lab);
        if !world.plays_programs() {
            let scenario = self.is_a_scenario(world, &plan.workload.name);
            scenario.map_err(setting)?;
        }
        let play = Play {
            plan,
            machine: &machine,
            set: &set,
            workload: workload.entry(),
            programs: &self.lab.programs,
        };
        world.play(&play, watcher)
    }

    /// The machine of `plan` as it is set, what is set on it, and the workload.
    fn parts(&self, plan: &Plan) -> Result<(MachineDescription, Chosen, Arc<Workload>), RunError> {
        let described = |error: PartError| setting(error.to_string());
        let machine = self.machine(&plan.machine.name).map_err(described)?;
        let chosen = chosen(machines::settings(&machine), &plan.machine.settings)?;
        let machine = machines::set(&machine, &chosen).map_err(setting)?;
        let workload = self.workload(&plan.workload.name).map_err(described)?;
        Ok((machine, chosen, workload))
    }
}

/// The core and the last-level cache of each CPU that `machine` has in `world`: guests number the
/// CPUs of a core in succession, the lab as Linux does on x86.
pub(crate) fn places(machine: &MachineDescription, world: WorldKind) -> Vec<(u16, u16)> {
    let mut cpus = machine.cpus.clone();
    if world == WorldKind::Guest {
        cpus.sort_by_key(|cpu| (cpu.llc, cpu.core));
    }
    cpus.iter().map(|cpu| (cpu.core, cpu.llc)).collect()
}

/// The memory node of each CPU: guests have one.
pub(crate) fn nodes(machine: &MachineDescription, world: WorldKind) -> Vec<u16> {
    match world {
        WorldKind::Guest => vec![0; machine.cpus.len()],
        _ => machine.nodes_of_cpus(),
    }
}

fn setting(what: String) -> RunError {
    RunError {
        what,
        cause: Cause::Setting,
    }
}

fn chosen(settings: Vec<Setting>, values: &BTreeMap<String, Value>) -> Result<Chosen, RunError> {
    Chosen::new(settings, values.clone()).map_err(|name| {
        setting(format!(
            "`{name}` is no setting here, or its value is not allowed"
        ))
    })
}

impl Simulator for Engine {
    fn names(&self, part: Part) -> Vec<String> {
        let names: Vec<&str> = match part {
            Part::World => self.worlds().map(|world| world.kind().name()).collect(),
            Part::Machine => machines::names(self.host.is_some()),
            Part::Scheduler => return self.lab.scheduler_names(),
            Part::Workload => warmq_play::workloads()
                .iter()
                .map(|entry| entry.name.as_str())
                .collect(),
        };
        names.into_iter().map(str::to_owned).collect()
    }

    fn settings(&self, part: Part, name: &str) -> Result<Vec<Setting>, PartError> {
        match part {
            Part::World => {
                let world = self.world(name).ok_or(PartError::Unknown)?;
                Ok(world.settings())
            }
            Part::Machine => self
                .machine(name)
                .map(|machine| machines::settings(&machine)),
            Part::Scheduler => match warmq_sched::scheduler(name) {
                Some(entry) => Ok(entry.settings()),
                None if self.lab.programs.knows(name) => self.lab.programs.settings(name),
                None if self
                    .worlds()
                    .any(|world| world.takes_scheduler(name).is_ok()) =>
                {
                    Ok(Vec::new())
                }
                None => Err(no_file(name).map_or(PartError::Unknown, PartError::Broken)),
            },
            Part::Workload => Ok(self.workload(name)?.entry().settings()),
        }
    }

    fn takes(&self, world: &str, part: Part, name: &str) -> Result<(), String> {
        let Some(world) = self.world(world) else {
            return Ok(());
        };
        match part {
            Part::Scheduler if self.would_start(world, name) => Err(format!(
                "--untrusted starts no program on this machine, and {name} is one; leave it out"
            )),
            Part::Scheduler => world.takes_scheduler(name),
            Part::Machine => world.takes_machine(name),
            Part::Workload if !world.plays_programs() => self.is_a_scenario(world, name),
            Part::Workload | Part::World => Ok(()),
        }
    }

    fn missing(&self, world: &str, scheduler: &str) -> Option<String> {
        let is_simulated = world == LAB;
        is_simulated
            .then(|| self.lab.programs.missing(scheduler))
            .flatten()
    }

    fn metrics(&self, used: &Used<'_>) -> Vec<MetricDescription> {
        let names = self.names_of(used);
        let mut metrics = measure::metrics(names.iter().cloned());
        for (names, said) in with_each(&names, &used.schedulers) {
            for metric in of_tasks::described(names, said) {
                metrics.add(metric);
            }
        }
        let schedulers = used.schedulers.iter();
        let counted = schedulers.flat_map(|name| self.lab.programs.metrics(name));
        counted.for_each(|metric| metrics.add(metric));
        metrics.list
    }

    fn histograms(&self, used: &Used<'_>) -> Vec<HistogramDescription> {
        let mut histograms = measure::histogram_descriptions();
        for (names, said) in with_each(&self.names_of(used), &used.schedulers) {
            histograms.extend(of_tasks::histograms_described(names, said));
        }
        histograms
    }
}

impl Runner for Engine {
    fn needs_quiet(&self, plan: &Plan) -> bool {
        let world = self.world(&plan.world.name);
        world.is_some_and(|world| world.needs_quiet(plan))
    }

    fn simulate(&self, plan: &Plan) -> Result<Measured, RunError> {
        self.play(plan, None)
    }
}

/// That a scheduler is not found by its path, if it is named by one.
fn no_file(scheduler: &str) -> Option<String> {
    let is_path = scheduler.contains('/') || scheduler.ends_with(".o");
    is_path.then(|| "there is no such file, or it cannot be read".to_owned())
}

/// The names of each scenario, with what each of the schedulers says of its tasks; with nothing, if
/// there is no scheduler.
fn with_each<'n>(names: &'n [Names], schedulers: &[&str]) -> Vec<(&'n Names, &'static [Said])> {
    let entries = schedulers
        .iter()
        .filter_map(|name| warmq_sched::scheduler(name));
    let mut said: Vec<&'static [Said]> = entries.map(|entry| entry.statistics).collect();
    said.push(&[]);
    let each = |names| said.iter().map(move |said| (names, *said));
    names.iter().flat_map(each).collect()
}

/// A table of costs, by name.
type CostTable = BTreeMap<String, Cost>;
