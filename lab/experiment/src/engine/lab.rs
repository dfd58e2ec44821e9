//! The world that is always there: a run of the simulated kernel, from its plan to its figures.

use std::sync::Arc;

use warmq_config::{Chosen, Setting};
use warmq_kernel::{BootError, Costs, Ending, Kernel, MakeScheduler, Mode, Settings, Throttling};
use warmq_machine::{Fragmentation, Options};
use warmq_play::Counters;
use warmq_scenario::{Scenario, Set, WorldKind};
use warmq_sched::Entry;
use warmq_sched_ext::Profiler;
use warmq_trace::{Checker, Digest, Header, Names, OF_SCHEDULER, Observer, Promise, Record};
use warmq_units::{Duration, Instant};

use super::compiled::Programs;
use super::measure::{self, Done, RunMeters, Totals};
use super::of_tasks::OfTasks;
use super::{
    chosen, fidelity, kernel, machines, nodes, parameters, places, profiled, refusal, setting,
};
use crate::plan::{KERNEL, LAB, Plan};
use crate::simulator::{Cause, Measured, RunError};
use crate::world::{AnyObserver, Play, World};

/// The world that is always there, in which everything is simulated.
#[derive(Clone, Default)]
pub(super) struct Lab {
    pub(super) checked: bool,
    pub(super) profiled: bool,
    pub(super) programs: Arc<Programs>,
}

impl World for Lab {
    fn kind(&self) -> WorldKind {
        WorldKind::Lab
    }

    fn settings(&self) -> Vec<Setting> {
        kernel::settings()
    }

    fn takes_scheduler(&self, name: &str) -> Result<(), String> {
        let is_own = name == KERNEL || warmq_sched::scheduler(name).is_some();
        if is_own || self.programs.knows(name) {
            return Ok(());
        }
        Err(super::no_file(name).map_or_else(
            || {
                let known = self.scheduler_names().join(", ");
                format!("the lab has no scheduler \"{name}\"; it has {known}")
            },
            |why| format!("{name}: {why}"),
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
pub(super) struct Watching<'w>(pub(super) &'w mut dyn AnyObserver);

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
    pub(super) fn scheduler_names(&self) -> Vec<String> {
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
    pub(super) fn run_under<O: Observer>(
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
            places: places(machine, WorldKind::Lab),
            nodes: nodes(machine, WorldKind::Lab),
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
        let (before, ending) = run(&mut kernel, plan, &counters, |observer, before| {
            let meters = &mut observer.1.0;
            meters.counted(names.as_ref(), before, from);
        });
        let done = Done::new(before, totals(&kernel, &counters));
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
        notes.extend(kernel::played_as(plan, entry, &scheduler.chosen));
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
pub(super) struct Made {
    pub(super) chosen: Chosen,
    pub(super) make: MakeScheduler,
    /// For how long a CPU may idle while a task waits that it could run.
    pub(super) promise: Promise,
    /// Who counts what its program does.
    pub(super) profiler: Option<Profiler>,
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

/// Runs the warm-up and the measurement; returns what was counted in the warm-up, of which the
/// observer learns when the measurement `begins`, and how the run ended.
pub(super) fn run<O: Observer>(
    kernel: &mut Kernel<O>,
    plan: &Plan,
    counters: &Counters,
    begins: impl FnOnce(&mut O, &Totals),
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
    let before = totals(kernel, counters);
    begins(kernel.observer_mut(), &before);
    let ending = kernel.run_until(Instant::START + plan.warmup + plan.time);
    (before, verdict(&ending))
}

/// What the workload has counted so far, and the scheduler.
fn totals<O: Observer>(kernel: &Kernel<O>, counters: &Counters) -> Totals {
    let own = kernel.counted_by_scheduler().into_iter();
    let own = own.map(|(name, total)| (format!("{OF_SCHEDULER}{name}"), total));
    counters.totals().into_iter().chain(own).collect()
}

/// That all tasks ended before anything was measured.
fn nothing_left(end: Instant, plan: &Plan) -> RunError {
    let ended = end.since(Instant::START);
    if ended == Duration::ZERO {
        let what = "no task has anything to do: nothing can be measured; give one a `count` of 1 \
                    and more, and work";
        return setting(what.to_owned());
    }
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
