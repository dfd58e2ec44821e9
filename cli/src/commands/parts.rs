//! `warmq schedulers` and `warmq workloads`: list them, and what can be set on one.

use clap::Args;
use warmq_play::workloads as all_workloads;
use warmq_sched::SCHEDULERS;

use crate::failure::Failure;
use crate::{listing, output};

/// List the schedulers, or what can be set on one.
#[derive(Args, Debug)]
pub struct SchedulersArguments {
    /// A scheduler.
    name: Option<String>,
}

/// List the workloads, or what can be set on one.
#[derive(Args, Debug)]
pub struct WorkloadsArguments {
    /// A workload.
    name: Option<String>,
}

/// A name, a sentence on it, and all that is known of it.
type Part = (&'static str, &'static str, String);

/// Lists the schedulers, or describes one.
pub fn schedulers(arguments: &SchedulersArguments) -> Result<(), Failure> {
    let parts = SCHEDULERS.iter().map(|entry| {
        let costs = format!("Its costs are those of {} on the machine.", entry.kernel);
        let settings = listing::settings(&entry.settings());
        (entry.name, entry.what, format!("{costs}\n\n{settings}"))
    });
    show("scheduler", arguments.name.as_deref(), parts.collect())
}

/// Lists the workloads, or describes one.
pub fn workloads(arguments: &WorkloadsArguments) -> Result<(), Failure> {
    let parts = all_workloads().iter().map(|entry| {
        let work = format!("Its work is counted in {}.", entry.work);
        let settings = listing::settings(&entry.settings());
        let details = format!("{work}\n\n{settings}");
        (entry.name.as_str(), entry.what.as_str(), details)
    });
    show("workload", arguments.name.as_deref(), parts.collect())
}

/// Prints the part called `wanted`, or a line for each.
fn show(kind: &str, wanted: Option<&str>, parts: Vec<Part>) -> Result<(), Failure> {
    let Some(wanted) = wanted else {
        let lines = parts
            .iter()
            .map(|(name, what, _)| (*name, (*what).to_owned()));
        return output::print(&listing::names(lines));
    };
    let found = parts.iter().find(|(name, ..)| *name == wanted);
    let (name, what, details) = found.ok_or_else(|| {
        let known: Vec<&str> = parts.iter().map(|(name, ..)| *name).collect();
        let help = format!("use one of {}", known.join(", "));
        Failure::usage(format!("no {kind} is called {wanted}"), help)
    })?;
    output::print(&format!("{name}: {what}\n{details}"))
}
