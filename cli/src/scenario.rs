//! A scenario as an experiment: so that `warmq run` plays one without more ado, in one world or in
//! several.

use std::fmt::Write;
use std::path::Path;

use clap::Args;
use warmq_experiment::LAB;
use warmq_play::{workload, workloads};
use warmq_record::RunningKernel;
use warmq_scenario::Scenario;

use crate::failure::Failure;
use crate::host_kernel::Modelled;
use crate::machines::HOST;

/// The scheduler where none is named: the kernel's own, whose model in the lab is eevdf.
const SCHEDULER_OF_KERNEL: &str = "kernel";
/// What guests have where nothing else is asked for.
const GUESTS_KERNEL: &str = "6.18";
const DEFAULT_PREEMPTION: &str = "default";

/// In which worlds scenarios are played, and how. Lists are swept.
#[derive(Args, Clone, Debug, Default)]
pub struct Worlds {
    /// Who plays: lab, guest (a real kernel in QEMU), host (this machine) [default: lab].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub world: Vec<String>,
    /// Schedulers [default: kernel, whose model in the lab is eevdf].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub scheduler: Vec<String>,
    /// Kernels of guests and of the lab: series (6.12, 7.1), or files of guests [default: 6.18; of the lab beside
    /// host, this machine's].
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

/// Whether the text of a file is a scenario, not an experiment.
pub fn is_scenario(name: &str, text: &str) -> bool {
    let ending = Path::new(name).extension();
    let has_tasks = || {
        let mut lines = text.lines().map(str::trim_start);
        lines.any(|line| line.starts_with("[task.") || line.starts_with("[task]"))
    };
    ending.is_some_and(|ending| ending == "json") || has_tasks()
}

/// Whether a scenario of this name comes with WarmQ.
pub fn is_shipped(name: &str) -> bool {
    workload(name).is_some_and(|entry| entry.scenario().is_some())
}

/// The names of the scenarios that come with WarmQ.
pub fn shipped() -> Vec<&'static str> {
    let scenarios = workloads().iter().filter(|it| it.scenario().is_some());
    scenarios.map(|it| it.name.as_str()).collect()
}

/// Whether `name` is a scenario: one in a file, or one that comes with WarmQ where no file and no
/// experiment has the name.
pub fn is_named(name: &str) -> bool {
    match std::fs::read_to_string(name) {
        Ok(text) => is_scenario(name, &text),
        Err(_) => crate::shipped::find(name).is_none() && is_shipped(name),
    }
}

/// The scenario called `name`.
///
/// # Errors
/// There is none, or what is wrong with it.
pub fn find(name: &str) -> Result<Scenario, Failure> {
    match workload(name).and_then(|entry| entry.scenario()) {
        Some(shipped) if !Path::new(name).exists() => Ok(shipped.clone()),
        _ => from_file(name),
    }
}

/// The text of the experiment that plays the scenario called `name` as `worlds` say.
///
/// # Errors
/// What is wrong with the scenario.
pub fn experiment(name: &str, worlds: &Worlds) -> Result<String, Failure> {
    let scenario = &find(name)?;
    let title = match scenario.title() {
        "" => name,
        title => title,
    };
    let mut text = format!(
        "title = {title:?}\nabout = {:?}\nworkload = {name:?}\n",
        scenario.about()
    );
    let of_host = worlds.modelled(&RunningKernel::look());
    // Writing to a string cannot fail.
    if let Some(modelled) = &of_host {
        let _ = writeln!(text, "notes = [{:?}]", modelled.note);
    }
    let _ = writeln!(text, "machine = {HOST:?}\n\n[run]");
    let _ = writeln!(
        text,
        "warmup = {:?}",
        worlds.warmup.as_deref().unwrap_or("200ms")
    );
    let _ = writeln!(text, "time = {:?}", worlds.time.as_deref().unwrap_or("1s"));
    text.push_str(&worlds.sweep(of_host.as_ref()));
    text.push_str("\n[[measure]]\nmetric = \"*\"\n");
    worlds.add_plots(&mut text, scenario);
    Ok(text)
}

fn from_file(path: &str) -> Result<Scenario, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("{path}: cannot read it: {error}"), ""))?;
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
            ("world", self.world.join(",")),
            ("scheduler", self.scheduler.join(",")),
            ("kernel", self.kernel.join(",")),
            ("preempt", self.preempt.join(",")),
            ("time", self.time.clone().unwrap_or_default()),
            ("warmup", self.warmup.clone().unwrap_or_default()),
        ];
        let given = lists.iter().filter(|(_, value)| !value.is_empty());
        given
            .map(|(name, value)| format!(" --{name} {value}"))
            .collect()
    }

    fn worlds(&self) -> Vec<&str> {
        match self.world.as_slice() {
            [] => vec![LAB],
            named => named.iter().map(String::as_str).collect(),
        }
    }

    fn schedulers(&self) -> Vec<String> {
        match self.scheduler.is_empty() {
            true => vec![SCHEDULER_OF_KERNEL.to_owned()],
            false => self.scheduler.clone(),
        }
    }

    /// What the lab plays in place of this machine's kernel: where both play, and no other is asked for.
    fn modelled(&self, kernel: &RunningKernel) -> Option<Modelled> {
        let (worlds, schedulers) = (self.worlds(), self.schedulers());
        let both = worlds.contains(&LAB) && worlds.contains(&HOST);
        let own = schedulers.iter().any(|name| name == SCHEDULER_OF_KERNEL);
        let meant = both && own && self.kernel.is_empty();
        meant
            .then(|| Modelled::nearest(kernel, &schedulers))
            .flatten()
    }

    /// Every world with every scheduler, kernel and preemption model that it has; `of_host` is what the
    /// lab alone has.
    fn sweep(&self, of_host: Option<&Modelled>) -> String {
        let Some(of_host) = of_host else {
            return self.block(&self.worlds(), &self.kernel, &self.preempt);
        };
        let one = |value: &str| vec![value.to_owned()];
        let or = |list: &Vec<String>, value: &str| match list.is_empty() {
            true => one(value),
            false => list.clone(),
        };
        let others: Vec<&str> = self.worlds().into_iter().filter(|it| *it != LAB).collect();
        let of_lab = or(&self.preempt, &of_host.preempt);
        let of_others = or(&self.preempt, DEFAULT_PREEMPTION);
        self.block(&[LAB], &one(&of_host.kernel), &of_lab)
            + &self.block(&others, &one(GUESTS_KERNEL), &of_others)
    }

    fn block(&self, worlds: &[&str], kernels: &[String], preempt: &[String]) -> String {
        let schedulers = self.schedulers();
        let mut text = format!("\n[[sweep]]\nworld = {worlds:?}\nscheduler = {schedulers:?}\n");
        for (key, list) in [("kernel", kernels), ("preempt", preempt)] {
            if !list.is_empty() {
                let _ = writeln!(text, "{key} = {list:?}");
            }
        }
        text
    }

    /// Worlds side by side: the work, what else is counted, each span, each task's share of CPU time
    /// and its waits.
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
                "\n[[plot]]\nkind = \"bars\"\nx = \"world\"\ny = {measure:?}\nseries = {series:?}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(world: &[&str], kernel: &[&str], preempt: &[&str]) -> String {
        let list = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect();
        let worlds = Worlds {
            world: list(world),
            kernel: list(kernel),
            preempt: list(preempt),
            ..Worlds::default()
        };
        let host = RunningKernel {
            release: "6.18.44".to_owned(),
            preemption: "none".to_owned(),
            ..RunningKernel::default()
        };
        worlds.sweep(worlds.modelled(&host).as_ref())
    }

    #[test]
    fn beside_this_machine_the_lab_plays_its_kernel() {
        let text = sweep(&["lab", "guest", "host"], &[], &[]);
        let (lab, others) = text.rsplit_once("[[sweep]]").expect("two blocks");
        assert!(lab.contains("world = [\"lab\"]"), "{text}");
        assert!(
            lab.contains("kernel = [\"6.18.44\"]\npreempt = [\"none\"]"),
            "{text}"
        );
        assert!(others.contains("world = [\"guest\", \"host\"]"), "{text}");
        assert!(
            others.contains("kernel = [\"6.18\"]\npreempt = [\"default\"]"),
            "{text}"
        );
    }

    #[test]
    fn what_is_asked_for_counts() {
        let asked = sweep(&["lab", "host"], &["7.1"], &[]);
        assert!(
            asked.contains("kernel = [\"7.1\"]") && !asked.contains("preempt"),
            "{asked}"
        );
        let asked = sweep(&["lab", "host"], &[], &["full"]);
        assert_eq!(asked.matches("preempt = [\"full\"]").count(), 2, "{asked}");
        assert!(asked.contains("6.18.44"), "{asked}");
        let alone = sweep(&["lab"], &[], &[]);
        assert!(!alone.contains("kernel ="), "{alone}");
    }
}
