//! One law in one column: which runs it needs, or why there are none.

use std::fs;

use warmq_config::{Problems, Value};
use warmq_law::{Column, Found, Law, MACHINE, OF_KERNEL};
use warmq_scenario::{Fidelity, ObjectKind, SchedulerChoice, Set, WorldKind};
use warmq_units::Release;

use crate::engine::{SERIES, refusal};
use crate::plan::{KERNEL, Part, Plan, named};
use crate::request::{Change, Trial};
use crate::run::Job;
use crate::simulator::Simulator;

/// Repetitions of what is not the same each time.
const REPETITIONS: u64 = 3;

/// Machines with the costs of guests: one whose clock counts instructions, and one by the wall
/// clock.
const COUNTED_GUEST: &str = "guest-1cpu";
const GUEST: &str = "guest-8cpu";

/// What the lab's schedulers of recent kernels are called, before the release.
const EEVDF: &str = "eevdf-";
/// Where this machine's kernel says its release.
const OSRELEASE: &str = "/proc/sys/kernel/osrelease";

/// A law in a column.
pub struct Case<'l> {
    /// The law.
    pub found: &'l Found,
    /// The column.
    pub column: &'l Column,
    /// Its runs, or why it is skipped.
    pub runs: Result<Vec<Job>, String>,
}

impl<'l> Case<'l> {
    /// Makes the runs. `repetitions` is how many there are where no two are alike; `cores` are this
    /// machine's.
    ///
    /// # Errors
    /// A scheduler or a kernel that there is not.
    pub fn new(
        found: &'l Found,
        column: &'l Column,
        simulator: &dyn Simulator,
        repetitions: Option<u64>,
        cores: usize,
    ) -> Result<Case<'l>, Problems> {
        let law = &found.law;
        let runs = match skipped(law, column, cores) {
            Some(why) => Err(why),
            None => Ok(jobs(law, column, simulator, repetitions)?),
        };
        Ok(Case {
            found,
            column,
            runs,
        })
    }

    /// Its runs; none if it is skipped.
    pub fn jobs(&self) -> &[Job] {
        self.runs.as_deref().unwrap_or_default()
    }

    /// Whether its runs have this machine for themselves, one after another.
    pub fn is_alone(&self) -> bool {
        self.column.is_by_the_clock(&self.found.law)
    }
}

/// The release of the kernel whose own scheduler `plan` plays; none where it plays another one.
pub(super) fn own_scheduler(plan: &Plan) -> Option<Release> {
    let name = plan.scheduler.name.as_str();
    if name != OF_KERNEL {
        return Release::within(name.strip_prefix(EEVDF)?);
    }
    if plan.world.name == WorldKind::Host.name() {
        return Release::within(&fs::read_to_string(OSRELEASE).ok()?);
    }
    Release::within(&plan.world.settings.get(KERNEL)?.to_string())
}

/// Why a law says nothing in a column.
fn skipped(law: &Law, column: &Column, cores: usize) -> Option<String> {
    let world = column.world;
    if let Some((_, why)) = law.skipped.iter().find(|(skipped, _)| *skipped == world) {
        return Some(why.clone());
    }
    let notes = law.scenario.fidelity(world).into_iter();
    let mut refused = notes.filter_map(|note| match note.fidelity {
        Fidelity::Refused(why) => Some(format!("`{}`: {why}", note.what)),
        Fidelity::Exact | Fidelity::Approximate(_) => None,
    });
    if let Some(why) = refused.next() {
        return Some(why);
    }
    let entry = warmq_sched::scheduler(column.name()).filter(|_| world == WorldKind::Lab);
    if let Some(why) = entry.and_then(|entry| refusal(&law.scenario, entry)) {
        return Some(why);
    }
    let cpus = usize::from(law.cpus);
    match world {
        _ if column.name() == OF_KERNEL && replaces_the_first(law) => {
            Some("the kernel's own scheduler would take over from itself".to_owned())
        }
        WorldKind::Lab if is_about_cgroups(law) && !knows_cgroups(column.name()) => {
            let scheduler = column.name();
            Some(format!("the lab's {scheduler} has no weights of cgroups"))
        }
        WorldKind::Guest if column.is_by_the_clock(law) && cpus > cores => Some(format!(
            "a guest of {cpus} CPUs needs as many cores to be judged by its times; here are {cores}"
        )),
        WorldKind::Host if cpus > cores => {
            Some(format!("it needs {cpus} CPUs; this machine has {cores}"))
        }
        _ => None,
    }
}

/// Whether the scheduler of a run gives way to the kernel's own and comes back.
fn replaces_the_first(law: &Law) -> bool {
    let mut sets = law.scenario.sets();
    sets.any(|set| matches!(set, Set::Scheduler(SchedulerChoice::First)))
}

/// Whether it says what cgroups get beside each other.
fn is_about_cgroups(law: &Law) -> bool {
    let cgroups = law.scenario.objects().iter();
    let cgroups = cgroups.filter(|object| matches!(object.kind, ObjectKind::Group { .. }));
    let mut bounds = law.bounds.iter();
    let judges_shares = bounds.any(|bound| bound.figure.contains("_share"));
    judges_shares && cgroups.count() > 1
}

/// A scheduler that there is not is refused elsewhere.
fn knows_cgroups(scheduler: &str) -> bool {
    warmq_sched::scheduler(scheduler).is_none_or(|known| known.cgroups)
}

fn jobs(
    law: &Law,
    column: &Column,
    simulator: &dyn Simulator,
    repetitions: Option<u64>,
) -> Result<Vec<Job>, Problems> {
    let seeds = match column.is_by_the_clock(law) || is_drawn(column) {
        true => (1..=repetitions.unwrap_or(REPETITIONS)).collect(),
        false => vec![1],
    };
    let mut trial = trial(law, column);
    trial.changes.splice(0..0, fitted(column, simulator));
    let experiment = trial.experiment(simulator)?;
    Ok(experiment.jobs_called(&format!("{} in {column}", law.name), seeds))
}

/// What fits a compiled scheduler of the lab to the kernel of its column, if the lab knows that.
fn fitted(column: &Column, simulator: &dyn Simulator) -> Option<Change> {
    let kernel = column.kernel.as_ref();
    let kernel = kernel.filter(|_| column.world == WorldKind::Lab)?;
    let known = simulator.settings(Part::Scheduler, column.name()).ok()?;
    let series = known.iter().find(|setting| setting.name == SERIES)?;
    let admitted = series.kind.admits(&kernel.as_str().into());
    let path = ["settings", "scheduler", SERIES];
    admitted.then(|| Change::value(&path, "--kernel", kernel, kernel))
}

/// Whether a play depends on its seed: what the lab's machines that are like guests have for a host
/// takes their CPUs away at random times.
fn is_drawn(column: &Column) -> bool {
    column.world == WorldKind::Lab && column.alike
}

/// The machine that a law is played on. A law that names one that is not the usual keeps it.
fn machine<'l>(law: &'l Law, column: &Column) -> &'l str {
    match column.world {
        WorldKind::Host => "host",
        WorldKind::Lab if column.alike && law.machine == MACHINE => match law.cpus {
            1 => COUNTED_GUEST,
            _ => GUEST,
        },
        WorldKind::Lab | WorldKind::Guest => &law.machine,
    }
}

/// What plays a law in a column.
fn trial(law: &Law, column: &Column) -> Trial {
    let workload = workload(law);
    let machine = machine(law, column);
    let cpus = (column.world != WorldKind::Host).then(|| ("cpus", i64::from(law.cpus).into()));
    let counts = column.world == WorldKind::Guest && !column.is_by_the_clock(law);
    let clock = counts.then(|| ("clock", "instructions".into()));
    let settings = cpus.into_iter().chain(clock);
    Trial {
        file: workload.clone(),
        title: law.says.clone(),
        parts: named([column.world.name(), machine, column.name(), &workload]),
        settings: settings
            .map(|(key, value): (&str, Value)| (key.to_owned(), value))
            .collect(),
        warmup: law.warmup,
        time: law.time,
        changes: changes(column),
        ..Trial::default()
    }
}

/// What the options of a column say.
pub(crate) fn changes(column: &Column) -> Vec<Change> {
    let kernel = [("kernel", &column.kernel), ("preempt", &column.preempt)];
    let kernel = kernel.into_iter().filter_map(|(key, value)| {
        let value = value.as_ref()?;
        let option = format!("--{key}");
        Some(Change::value(&["settings", key], &option, value, value))
    });
    // Columns were checked before.
    let pairs = column.settings().unwrap_or_default().into_iter();
    let of_scheduler = pairs.map(|pair| {
        let text = format!("{}:{pair}", column.name());
        let path = ["settings", "scheduler", &pair.key];
        Change::value(&path, "--scheduler", &text, &pair.value)
    });
    kernel.chain(of_scheduler).collect()
}

/// The name by which the engine knows the scenario of a law.
pub fn workload(law: &Law) -> String {
    format!("{}.toml", law.name)
}
