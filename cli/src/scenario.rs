//! A scenario as an experiment: so that `warmq run` plays one without more ado, in one world or in
//! several.

use std::fmt::Write;
use std::path::Path;

use clap::Args;
use warmq_config::{Document, Source, quoted, quoted_list, read_text};
use warmq_metrics::answers;
use warmq_play::{workload, workloads};
use warmq_scenario::Scenario;

use crate::failure::Failure;
use crate::kind::Kind;
use crate::machines::HOST;
use crate::nearby;
use crate::typed;

/// What an experiment that plays a scenario measures, and how where no option says otherwise.
const USUAL: &str = r#"
[run]
warmup = "200ms"
time = "1s"

[[measure]]
metric = "*"
"#;
/// What is shown of the machine.
const OF_CPUS: [&str; 3] = [
    "switches_per_second",
    "migrations_per_second",
    "cpu_taken_share",
];
/// Where it is played, and by whom.
const USUAL_SWEEP: &str = r#"
[sweep]
world = ["lab"]
scheduler = ["kernel"]
"#;
/// In which worlds scenarios are played, and how. Lists are swept.
#[derive(Args, Clone, Debug, Default)]
pub struct Worlds {
    /// Who plays: lab, guest (a real kernel in QEMU), host (this machine) [default: lab].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub world: Vec<String>,
    /// Schedulers [default: kernel, whose model in the lab is eevdf].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub scheduler: Vec<String>,
    /// Kernels of guests and of the lab: series (6.12, 7.1), or files of guests [default: 6.18; of
    /// the lab beside host, this machine's].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub kernel: Vec<String>,
    /// Preemption models of guests and of the lab: none, voluntary, full, lazy [default: the
    /// kernel's; of the lab beside host, this machine's].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub preempt: Vec<String>,
    /// How long a scenario is measured [default: 1s].
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,
    /// How long it is played before [default: 200ms].
    #[arg(long, value_name = "TIME")]
    pub warmup: Option<String>,
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
        None => crate::shipped::find(name).is_none() && is_shipped(name),
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

/// The experiment that plays the scenario called `name` as `worlds` say.
///
/// # Errors
/// What is wrong with the scenario.
pub fn experiment(name: &str, worlds: &Worlds) -> Result<Document, Failure> {
    let scenario = &find(name)?;
    let title = match scenario.title() {
        "" => name,
        title => title,
    };
    let mut text = format!(
        "title = {}\nabout = {}\nworkload = {}\n",
        quoted(title),
        quoted(scenario.about()),
        quoted(name)
    );
    let shown = answers(&scenario.names());
    let shown: Vec<&str> = shown.iter().map(String::as_str).chain(OF_CPUS).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "shown = {}", quoted_list(&shown));
    let _ = writeln!(text, "machine = \"{HOST}\"\n{USUAL}{USUAL_SWEEP}");
    worlds.add_plots(&mut text, scenario);
    let document = Document::parse(name, &text);
    let mut document = document.map_err(|problems| Failure::Problems(vec![problems]))?;
    worlds.change_sweep(&mut document);
    worlds.change_times(&mut document);
    Ok(document)
}

fn from_file(path: &str) -> Result<Scenario, Failure> {
    let text = read_text(path).map_err(|error| {
        Failure::usage(
            format!("{path}: cannot read it: {error}"),
            nearby::or(Path::new(path), ""),
        )
    })?;
    Scenario::read_any(path, &text).map_err(|problems| Failure::Problems(vec![problems]))
}

impl Worlds {
    /// Whether an option of this group was given.
    pub fn any(&self) -> bool {
        let lists = [&self.world, &self.scheduler, &self.kernel, &self.preempt];
        lists.iter().any(|list| !list.is_empty()) || self.time.is_some() || self.warmup.is_some()
    }

    /// The options as they would be typed again.
    pub fn typed(&self) -> Vec<String> {
        let lists = [
            ("world", self.world.as_slice()),
            ("scheduler", &self.scheduler),
            ("kernel", &self.kernel),
            ("preempt", &self.preempt),
            ("time", self.time.as_slice()),
            ("warmup", self.warmup.as_slice()),
        ];
        let options = lists.iter().map(|(name, values)| typed::list(name, values));
        options.flatten().collect()
    }

    /// Puts the lists into the experiment of a scenario: every world with every scheduler, kernel
    /// and preemption model that it has.
    fn change_sweep(&self, document: &mut Document) {
        let lists = [
            ("world", &self.world),
            ("scheduler", &self.scheduler),
            ("kernel", &self.kernel),
            ("preempt", &self.preempt),
        ];
        for (key, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            document.set_list(&["sweep", key], &format!("--{key}"), list);
        }
    }

    fn change_times(&self, document: &mut Document) {
        for (key, time) in [("time", &self.time), ("warmup", &self.warmup)] {
            if let Some(time) = time {
                let option = Source::option(&format!("--{key}"), time);
                document.set(&["run", key], time, option);
            }
        }
    }

    /// Worlds side by side: the work, what else is counted, each span, each task's share of CPU
    /// time and its waits.
    fn add_plots(&self, text: &mut String, scenario: &Scenario) {
        let mut series = vec!["scheduler"];
        for (key, list) in [("kernel", &self.kernel), ("preempt", &self.preempt)] {
            if list.len() > 1 {
                series.push(key);
            }
        }
        let names = scenario.names();
        let spans = names.spans.iter().map(|span| format!("{span}_p99"));
        let shares = names.tasks.iter().map(|task| format!("{task}_share"));
        let waits = names.tasks.iter().map(|task| format!("{task}_wait_p99"));
        let others = names.counters.iter().filter(|name| **name != names.work);
        let others = others.map(|name| format!("{name}_per_second"));
        let work = std::iter::once("work_per_second".to_owned());
        let counted = work.chain(others);
        for measure in counted.chain(spans).chain(shares).chain(waits) {
            let _ = writeln!(
                text,
                "\n[[plot]]\nkind = \"bars\"\nx = \"world\"\ny = {}\nseries = {}",
                quoted(&measure),
                quoted_list(&series)
            );
        }
    }
}
