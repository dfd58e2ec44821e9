//! A scenario as a request: so that `warmq run` plays one without more ado, in one world or in
//! several.

use std::path::Path;

use clap::Args;
use warmq_config::read_text;
use warmq_experiment::{Change, KERNEL, LAB, Part, Trial, check_figures, papers};
use warmq_metrics::answers;
use warmq_play::{workload, workloads};
use warmq_scenario::Scenario;
use warmq_trace::Names;
use warmq_units::Duration;

use crate::arguments::Where;
use crate::failure::Failure;
use crate::kind::Kind;
use crate::machines::HOST;
use crate::nearby;
use crate::typed;

/// How long it is played before it is measured, and how long that takes.
const USUAL: (Duration, Duration) = (Duration::from_ms(200), Duration::from_s(1));
/// What is shown of the machine.
const OF_CPUS: [&str; 3] = [
    "switches_per_second",
    "migrations_per_second",
    "cpu_taken_share",
];
/// In which worlds scenarios are played, and how. Lists are swept.
#[derive(Args, Clone, Debug, Default)]
pub struct Worlds {
    #[command(flatten)]
    place: Where,
    /// How long a scenario is measured [default: 1s].
    #[arg(long, value_name = "TIME")]
    time: Option<String>,
    /// How long it is played before [default: 200ms].
    #[arg(long, value_name = "TIME")]
    warmup: Option<String>,
}

/// Whether a scenario of this name comes with WarmQ.
pub fn is_shipped(name: &str) -> bool {
    workload(name).is_some_and(|entry| entry.scenario().is_some())
}

/// The names of the scenarios that come with WarmQ.
pub fn shipped() -> Vec<&'static str> {
    let scenarios = workloads().iter().filter(|one| one.scenario().is_some());
    scenarios.map(|scenario| scenario.name.as_str()).collect()
}

/// Whether `name` is a scenario: one in a file, or one that comes with WarmQ where no file and no
/// experiment has the name.
pub fn is_named(name: &str) -> bool {
    match Kind::of(name) {
        Some(kind) => matches!(kind, Kind::Scenario | Kind::Law),
        None => papers::find(name).is_none() && is_shipped(name),
    }
}

/// The scenario called `name`.
///
/// # Errors
/// There is none, or what is wrong with it.
pub fn find(name: &str) -> Result<Scenario, Failure> {
    match workload(name).and_then(|entry| entry.scenario()) {
        Some(shipped) if is_shipped_as(name) => Ok(shipped.clone()),
        _ => from_file(name),
    }
}

/// Whether `name` stands for the scenario that comes with WarmQ, and for no file.
pub fn is_shipped_as(name: &str) -> bool {
    is_shipped(name) && !Path::new(name).exists()
}

/// The scenario called `name`, played as `worlds` say.
///
/// # Errors
/// What is wrong with the scenario.
pub fn trial(name: &str, worlds: &Worlds) -> Result<Trial, Failure> {
    let scenario = &find(name)?;
    let title = match scenario.title() {
        "" => name,
        title => title,
    };
    let parts = [(Part::Machine, HOST), (Part::Workload, name)];
    let sweep = [(Part::World, LAB), (Part::Scheduler, KERNEL)];
    let names = scenario.names();
    let shown = answers(&names).into_iter();
    let (warmup, time) = USUAL;
    Ok(Trial {
        file: name.to_owned(),
        title: title.to_owned(),
        about: scenario.about().to_owned(),
        parts: parts.map(|(part, name)| (part, name.to_owned())).into(),
        sweep: sweep
            .map(|(part, name)| (part.key(), vec![name.to_owned()]))
            .into(),
        warmup,
        time,
        shown: shown.chain(OF_CPUS.map(str::to_owned)).collect(),
        bars: bars(&names),
        series: worlds.series(),
        changes: worlds.changes(),
        ..Trial::default()
    })
}

fn from_file(path: &str) -> Result<Scenario, Failure> {
    let text = read_text(path).map_err(|error| {
        Failure::usage(
            format!("{path}: cannot read it: {error}"),
            nearby::or(Path::new(path), ""),
        )
    })?;
    let scenario = Scenario::read_any(path, &text)?;
    check_figures(&scenario)?;
    Ok(scenario)
}

impl Worlds {
    /// Whether an option of this group was given.
    pub fn any(&self) -> bool {
        !self.typed().is_empty()
    }

    /// The options as they would be typed again.
    pub fn typed(&self) -> Vec<String> {
        let times = self.times().into_iter();
        let times = times.flat_map(|(name, time)| typed::list(name, time.as_slice()));
        self.place.typed().into_iter().chain(times).collect()
    }

    fn times(&self) -> [(&'static str, &Option<String>); 2] {
        [("time", &self.time), ("warmup", &self.warmup)]
    }

    /// What the options change: every world with every scheduler, kernel and preemption model that
    /// it has, and the times.
    fn changes(&self) -> Vec<Change> {
        let lists = self.place.lists().into_iter();
        let given = lists.filter(|(_, list)| !list.is_empty());
        let lists =
            given.map(|(key, list)| Change::list(&["sweep", key], &format!("--{key}"), list));
        let times = self.times().into_iter();
        let times = times.filter_map(|(key, time)| {
            let time = time.as_ref()?;
            Some(Change::value(
                &["run", key],
                &format!("--{key}"),
                time,
                time,
            ))
        });
        lists.chain(times).collect()
    }

    /// What has bars of its own.
    fn series(&self) -> Vec<String> {
        let [_, _, of_kernels @ ..] = self.place.lists();
        let several = of_kernels.into_iter().filter(|(_, list)| list.len() > 1);
        let series = std::iter::once(Part::Scheduler.key()).chain(several.map(|(key, _)| key));
        series.map(str::to_owned).collect()
    }
}

/// Worlds side by side: the work, what else is counted, each span, each task's share of CPU time
/// and its waits.
fn bars(names: &Names) -> Vec<String> {
    let spans = names.spans.iter().map(|span| format!("{span}_p99"));
    let shares = names.tasks.iter().map(|task| format!("{task}_share"));
    let waits = names.tasks.iter().map(|task| format!("{task}_wait_p99"));
    let others = names.counters.iter().filter(|name| **name != names.work);
    let others = others.map(|name| format!("{name}_per_second"));
    let work = std::iter::once("work_per_second".to_owned());
    let counted = work.chain(others);
    counted.chain(spans).chain(shares).chain(waits).collect()
}
