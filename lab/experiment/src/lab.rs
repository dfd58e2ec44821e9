//! The bridge to the engine: machines, schedulers and workloads by name, and one run at a time.

mod machines;
mod measure;
mod parameters;

use std::collections::BTreeMap;

use warmq_kernel::{Costs, Ending, Kernel, Settings};
use warmq_machine::description::Cost;
use warmq_machine::{Fragmentation, MachineDescription, Options};
use warmq_trace::{Digest, Observer};
use warmq_units::Instant;
use warmq_units::setting::{Chosen, Setting};
use warmq_workload::Counters;

use crate::plan::{Part, Plan};
use crate::simulator::{
    Cause, HistogramDescription, Measured, MetricDescription, PartError, RunError, Simulator,
};

/// The laboratory: all machines, schedulers and workloads there are.
#[derive(Clone, Debug, Default)]
pub struct Lab {
    host: Option<MachineDescription>,
}

impl Lab {
    /// `host` is what the name `host` means; nothing here asks the machine it runs on.
    pub fn new(host: Option<MachineDescription>) -> Lab {
        Lab { host }
    }

    /// The machine called `name`: one that comes with WarmQ, a path to a description in TOML or to
    /// an hwloc XML file, or `host`.
    ///
    /// # Errors
    /// When there is none, or when its file cannot be used.
    pub fn machine(&self, name: &str) -> Result<MachineDescription, PartError> {
        machines::find(name, self.host.as_ref())
    }

    /// Runs `plan` with `observer` watching.
    ///
    /// # Errors
    /// As [`Simulator::simulate`].
    pub fn observe<O: Observer>(
        &self,
        plan: &Plan,
        observer: O,
    ) -> Result<(Measured, O), RunError> {
        let described = |error: PartError| setting(error.to_string());
        let machine = self.machine(&plan.machine.name).map_err(described)?;
        let machine_chosen = chosen(machines::settings(&machine), &plan.machine.settings)?;
        let machine = machines::set(&machine, &machine_chosen).map_err(setting)?;
        let scheduler = warmq_sched::scheduler(&plan.scheduler.name)
            .ok_or_else(|| setting(format!("no scheduler is called {}", plan.scheduler.name)))?;
        let workload = warmq_workload::workload(&plan.workload.name)
            .ok_or_else(|| setting(format!("no workload is called {}", plan.workload.name)))?;
        let scheduler_chosen = chosen(scheduler.settings(), &plan.scheduler.settings)?;
        let workload_chosen = chosen(workload.settings(), &plan.workload.settings)?;

        let costs = machines::costs(&machine, scheduler.kernel);
        let settings = kernel_settings(scheduler.kernel_settings(plan.seed), &machine_chosen);
        let counters = Counters::default();
        let mut kernel = Kernel::boot(
            &machine,
            &Costs::new(costs.clone()),
            settings.clone(),
            scheduler.build(scheduler_chosen.clone()),
            &*workload.build(&workload_chosen, &counters),
            (Digest::new(), observer),
        )
        .map_err(|error| match error {
            warmq_kernel::BootError::Cost(cost) => setting(cost.to_string()),
            warmq_kernel::BootError::Memory(_) => RunError {
                what: error.to_string(),
                cause: Cause::MemoryFull,
            },
        })?;
        let ending = run(&mut kernel, plan, &counters)?;
        let parts = parameters::Parts {
            machine: &machine,
            costs: &costs,
            settings: &settings,
            timers_of: scheduler.timers_of,
            scheduler: &scheduler_chosen,
            workload: &workload_chosen,
        };
        let figures = measure::figures(&kernel, &counters);
        let histograms = measure::histograms(&kernel);
        let (digest, observer) = kernel.into_observer();
        let measured = Measured {
            figures,
            histograms,
            digest: digest.to_string(),
            ending,
            parameters: parts.parameters(),
        };
        Ok((measured, observer))
    }
}

fn setting(what: String) -> RunError {
    RunError {
        what,
        cause: Cause::Setting,
    }
}

fn chosen(
    settings: Vec<Setting>,
    values: &BTreeMap<String, warmq_units::setting::Value>,
) -> Result<Chosen, RunError> {
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

/// Warms up, measures, and says how it ended.
fn run<O: Observer>(
    kernel: &mut Kernel<O>,
    plan: &Plan,
    counters: &Counters,
) -> Result<String, RunError> {
    let mut ending = kernel.run_until(Instant::START + plan.warmup);
    if ending == Ending::TimeUp {
        kernel.reset_figures();
        counters.reset();
        ending = kernel.run_until(Instant::START + plan.warmup + plan.time);
    }
    let cause = match &ending {
        Ending::WorkDone | Ending::TimeUp => return Ok(ending.to_string()),
        Ending::SchedulerBroke(_) => Cause::SchedulerBroke,
        Ending::Stalled(_) => Cause::Stalled,
        Ending::MemoryFull { .. } => Cause::MemoryFull,
    };
    Err(RunError {
        what: ending.to_string(),
        cause,
    })
}

impl Simulator for Lab {
    fn names(&self, part: Part) -> Vec<String> {
        let names: Vec<&str> = match part {
            Part::Machine => machines::names(self.host.is_some()),
            Part::Scheduler => warmq_sched::SCHEDULERS
                .iter()
                .map(|entry| entry.name)
                .collect(),
            Part::Workload => warmq_workload::WORKLOADS
                .iter()
                .map(|entry| entry.name)
                .collect(),
        };
        names.into_iter().map(str::to_owned).collect()
    }

    fn settings(&self, part: Part, name: &str) -> Result<Vec<Setting>, PartError> {
        match part {
            Part::Machine => self
                .machine(name)
                .map(|machine| machines::settings(&machine)),
            Part::Scheduler => warmq_sched::scheduler(name)
                .map(warmq_sched::Entry::settings)
                .ok_or(PartError::Unknown),
            Part::Workload => warmq_workload::workload(name)
                .map(warmq_workload::Entry::settings)
                .ok_or(PartError::Unknown),
        }
    }

    fn metrics(&self) -> Vec<MetricDescription> {
        measure::metrics()
    }

    fn histograms(&self) -> Vec<HistogramDescription> {
        measure::histogram_descriptions()
    }

    fn simulate(&self, plan: &Plan) -> Result<Measured, RunError> {
        self.observe(plan, ()).map(|(measured, ())| measured)
    }
}

/// A table of costs, by name.
type CostTable = BTreeMap<String, Cost>;
