//! The engine behind [`Simulator`]: machines, schedulers and workloads by name, one run at a time.

mod compiled;
mod fidelity;
mod kernel;
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
use warmq_kernel::{BootError, Costs, Ending, Kernel, MakeScheduler, Mode, Settings, Throttling};
use warmq_machine::description::Cost;
use warmq_machine::{Fragmentation, MachineDescription, Options};
use warmq_play::Counters;
use warmq_scenario::{Scenario, Set, World as Kind};
use warmq_sched::{Entry, Said};
use warmq_sched_ext::{Loaded, Place, Profiler};
use warmq_trace::{Checker, Digest, Header, Names, Observer, Promise, Record};
use warmq_units::{Duration, Instant};

pub(crate) use self::compiled::Programs;
pub use self::compiled::{Compiled, FindProgram};
pub(crate) use self::fidelity::refusal;
pub use self::fidelity::{fidelity, fidelity_of_schedulers};
use self::measure::{Done, RunMeters, Totals};
use self::of_tasks::OfTasks;
pub use self::workloads::Workload;
use self::workloads::Workloads;
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

/// The world that is always there, in which everything is simulated.
#[derive(Clone, Default)]
struct Lab {
    checked: bool,
    profiled: bool,
    programs: Arc<Programs>,
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

impl World for Lab {
    fn kind(&self) -> Kind {
        Kind::Lab
    }

    fn settings(&self) -> Vec<Setting> {
        kernel::settings()
    }

    fn takes_scheduler(&self, name: &str) -> Result<(), String> {
        let is_own = name == KERNEL || warmq_sched::scheduler(name).is_some();
        if is_own || self.programs.knows(name) {
            return Ok(());
        }
        let known = self.scheduler_names().join(", ");
        Err(format!(
            "the lab has no scheduler \"{name}\"; it has {known}"
        ))
    }

    fn plays_programs(&self) -> bool {
        true
    }

    fn needs_quiet(&self, _: &Plan) -> bool {
        false
    }

    fn play(
        &self,
        play: &Play<'_>,
        watcher: Option<&mut dyn AnyObserver>,
    ) -> Result<Measured, RunError> {
        let plan = play.plan;
        let is_compiled = self.programs.knows(&plan.scheduler.name);
        let entry = kernel::entry(plan, is_compiled)?;
        let made = match is_compiled {
            true => self.programs.made(plan, self.profiler(plan))?,
            false => made(plan, entry)?,
        };
        match watcher {
            None => self.run_under(made, entry, play, ()),
            Some(watcher) => self.run_under(made, entry, play, Watching(watcher)),
        }
    }
}

/// Whoever watches a run wants all that happens in it.
struct Watching<'w>(&'w mut dyn AnyObserver);

impl Observer for Watching<'_> {
    fn about(&mut self, header: &Header) {
        self.0.begin(header);
    }

    fn see(&mut self, at: Instant, record: &Record) {
        self.0.watch(at, record);
    }
}

impl Lab {
    /// Its schedulers, and compiled ones that have names.
    fn scheduler_names(&self) -> Vec<String> {
        let own = warmq_sched::SCHEDULERS.iter();
        let own = own.map(|entry| entry.name.to_owned());
        let programs = self.programs.listed().into_iter();
        own.chain(programs.map(|(name, _)| name)).collect()
    }

    /// Who counts what the program of a compiled scheduler does, if that is asked for.
    fn profiler(&self, plan: &Plan) -> Option<Profiler> {
        let from = Instant::START + plan.warmup;
        self.profiled.then(|| Profiler::starting_at(from))
    }

    /// Plays under a scheduler, with the costs and timers of `entry`.
    fn run_under<O: Observer>(
        &self,
        scheduler: Made,
        entry: &Entry,
        play: &Play<'_>,
        mut observer: O,
    ) -> Result<Measured, RunError> {
        let Play {
            plan,
            machine,
            set,
            workload,
            ..
        } = *play;
        let refused = workload
            .scenario()
            .and_then(|scenario| refusal(scenario, entry));
        refused.map_or(Ok(()), |why| Err(setting(why)))?;
        let workload_chosen = chosen(workload.settings(), &plan.workload.settings)?;
        let costs = machines::costs(machine, entry.kernel);
        let kernel = entry.kernel_settings_as(&scheduler.chosen, plan.seed);
        let preemption = kernel::preemption(plan, entry)?.unwrap_or(kernel.preemption);
        let settings = Settings {
            preemption,
            drawn_ticks: kernel::drawn_ticks(plan),
            ..kernel_settings(kernel, set)
        };
        let by_servers = kernel::counts_servers(entry, &scheduler.chosen);
        let admitted = workload.check_reservations(&workload_chosen, machine, by_servers);
        admitted.map_err(|problems| setting(problems.to_string()))?;
        let counters = Counters::default();
        let played = workload.build(&workload_chosen, &warmq_play::site(machine), &counters);
        let played = played.map_err(|problems| setting(problems.to_string()))?;
        let promise = promise(&scheduler, &settings, workload.scenario());
        let checker = || Checker::of_a_run().promised(promise);
        let checker = self.checked.then(checker);
        let names = workload.scenario().map(Scenario::names);
        let from = Instant::START + plan.warmup;
        observer.about(&Header {
            places: places(machine, Kind::Lab),
            nodes: nodes(machine, Kind::Lab),
            ..header(plan, entry, &settings, names.as_ref())
        });
        let meters = RunMeters::starting_at(names.clone().unwrap_or_default(), from);
        let mut kernel = Kernel::boot(
            machine,
            &Costs::new(costs.clone()),
            settings.clone(),
            scheduler.make,
            &*played,
            (Digest::new(), (meters, (checker, observer))),
        )
        .map_err(not_booted)?;
        let (before, ending) = run(&mut kernel, plan, &counters);
        let done = Done::new(before, counters.totals());
        let parts = parameters::Parts {
            machine,
            costs: &costs,
            settings: &settings,
            timers_of: entry.timers_of,
            scheduler: &scheduler.chosen,
            workload: &workload_chosen,
        };
        let meters = &kernel.observer().1.0;
        let mut figures = measure::figures(&kernel, meters, &done, &workload.work);
        let mut histograms = measure::histograms(&kernel);
        if let Some(names) = &names {
            let of_tasks = OfTasks {
                kernel: &kernel,
                play: meters.play(),
                names,
                said: entry.statistics,
            };
            figures.extend(of_tasks.figures());
            histograms.extend(of_tasks.histograms());
        }
        let profile = scheduler.profiler.map(|profiler| {
            let switches = meters.play().events().switches;
            let cpu_time = Mode::ALL.into_iter().map(|mode| kernel.spent(mode)).sum();
            profiled::profile(&profiler, &plan.scheduler.name, switches, cpu_time)
        });
        let (end, times) = (kernel.now(), kernel.check_times());
        let scenario = workload.scenario();
        let of_scenario = scenario.map(|scenario| fidelity::notes_of_lab(scenario, entry));
        let mut notes = of_scenario.unwrap_or_default();
        notes.extend(machine.left_out.iter().cloned());
        let (digest, (meters, (checker, _))) = kernel.into_observer();
        if let Some(names) = &names {
            figures.extend(meters.played(names, &done, end));
        }
        if let Some(checker) = checker {
            lawful(checker, ending.is_ok(), end)?;
            times.map_err(|how| broken(format!("in the end: {how}")))?;
        }
        Ok(Measured {
            figures,
            histograms,
            digest: digest.to_string(),
            ending: ending?,
            parameters: parts.parameters(),
            notes,
            profile,
        })
    }
}

/// The scheduler of a run.
struct Made {
    chosen: Chosen,
    make: MakeScheduler,
    /// For how long a CPU may idle while a task waits that it could run.
    promise: Promise,
    /// Who counts what its program does.
    profiler: Option<Profiler>,
}

/// What a run is held to. A compiled scheduler holds back by itself whose quota is used up, and a
/// kernel ends it when a CPU goes offline: there it promises nothing.
fn promise(scheduler: &Made, settings: &Settings, scenario: Option<&Scenario>) -> Promise {
    let keeps_quotas = settings.throttling == Throttling::Scheduler;
    let changes_cpus = |scenario: &Scenario| {
        let mut sets = scenario.sets();
        sets.any(|set| matches!(set, Set::Online(_)))
    };
    let is_beyond = |scenario: &Scenario| scenario.uses("quota") || changes_cpus(scenario);
    match keeps_quotas && scenario.is_some_and(is_beyond) {
        true => Promise {
            patience: Duration(u64::MAX),
            ..scheduler.promise
        },
        false => scheduler.promise,
    }
}

/// The scheduler of the lab that `plan` names, and its settings.
fn made(plan: &Plan, entry: &Entry) -> Result<Made, RunError> {
    let chosen = chosen(entry.settings(), &kernel::scheduler_settings(plan))?;
    Ok(Made {
        make: entry.build(chosen.clone()),
        promise: entry.promise,
        chosen,
        profiler: None,
    })
}

/// What the records of a simulated run are of.
fn header(plan: &Plan, entry: &Entry, settings: &Settings, names: Option<&Names>) -> Header {
    Header {
        world: LAB.to_owned(),
        machine: plan.machine.name.clone(),
        kernel: entry.timers_of.to_owned(),
        scheduler: match plan.scheduler.name.as_str() {
            KERNEL => entry.name.to_owned(),
            name => name.to_owned(),
        },
        clock: "simulated".to_owned(),
        hz: (Duration::from_s(1).0 / settings.tick.0.max(1)).to_string(),
        preemption: settings.preemption.name().to_owned(),
        names: names.cloned().unwrap_or_default(),
        ..Header::default()
    }
}

/// The core and the last-level cache of each CPU that `machine` has in `world`: guests number the
/// CPUs of a core in succession, the lab as Linux does on x86.
pub(crate) fn places(machine: &MachineDescription, world: Kind) -> Vec<(u16, u16)> {
    let mut cpus = machine.cpus.clone();
    if world == Kind::Guest {
        cpus.sort_by_key(|cpu| (cpu.llc, cpu.core));
    }
    cpus.iter().map(|cpu| (cpu.core, cpu.llc)).collect()
}

/// The memory node of each CPU: guests have one.
pub(crate) fn nodes(machine: &MachineDescription, world: Kind) -> Vec<u16> {
    match world {
        Kind::Guest => vec![0; machine.cpus.len()],
        _ => machine.nodes_of_cpus(),
    }
}

fn not_booted(error: BootError) -> RunError {
    match error {
        BootError::Cost(_) | BootError::Scheduler(_) => setting(error.to_string()),
        BootError::Memory(_) => RunError {
            what: error.to_string(),
            cause: Cause::MemoryFull,
        },
    }
}

/// Returns the first broken invariant as an error. The invariants that are checked at the end are
/// skipped for a run that ended early: its ending says more.
fn lawful(checker: Checker, complete: bool, end: Instant) -> Result<(), RunError> {
    let verdict = match checker.violation() {
        Some(violation) => Err(*violation),
        None if complete => checker.finish(end),
        None => Ok(()),
    };
    verdict.map_err(|violation| broken(format!("at {violation}")))
}

fn broken(how: String) -> RunError {
    RunError {
        what: format!("an invariant was broken {how}"),
        cause: Cause::InvariantBroken,
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

fn kernel_settings(kernel: Settings, machine: &Chosen) -> Settings {
    Settings {
        caches: machine.flag("caches"),
        counting: Options {
            classify_misses: machine.flag("classify_misses"),
            histogram: machine.flag("page_offsets"),
        },
        fragmentation: Fragmentation::Worn {
            cluster: machine.count("page_cluster") as u32,
            used_percent: machine.count("memory_used") as u8,
        },
        ..kernel
    }
}

/// Runs the warm-up and the measurement; returns what was counted in the warm-up, and how the run
/// ended.
fn run<O: Observer>(
    kernel: &mut Kernel<O>,
    plan: &Plan,
    counters: &Counters,
) -> (Totals, Result<String, RunError>) {
    let ending = kernel.run_until(Instant::START + plan.warmup);
    if ending != Ending::TimeUp {
        let nothing_left = || nothing_left(kernel.now(), plan);
        return (
            Totals::new(),
            verdict(&ending).and_then(|_| Err(nothing_left())),
        );
    }
    kernel.reset_figures();
    let before = counters.totals();
    let ending = kernel.run_until(Instant::START + plan.warmup + plan.time);
    (before, verdict(&ending))
}

/// That all tasks ended before anything was measured.
fn nothing_left(end: Instant, plan: &Plan) -> RunError {
    let ended = end.since(Instant::START);
    setting(format!(
        "all tasks ended after {ended}, before the warm-up of {} was over: nothing is left to measure; play it with a \
         shorter --warmup, such as 0s",
        plan.warmup
    ))
}

fn verdict(ending: &Ending) -> Result<String, RunError> {
    let cause = match ending {
        Ending::WorkDone | Ending::TimeUp => return Ok(ending.to_string()),
        Ending::SchedulerBroke(_) => Cause::SchedulerBroke,
        Ending::ProgramBroke { .. } => Cause::ProgramBroke,
        Ending::Stalled(_) => Cause::Stalled,
        Ending::MemoryFull { .. } => Cause::MemoryFull,
    };
    Err(RunError {
        what: ending.to_string(),
        cause,
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
                None => Err(PartError::Unknown),
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
