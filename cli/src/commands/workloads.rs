//! `warmq workloads`: lists them, and what can be set on one.

use clap::Args;
use warmq_workload::{Entry, WORKLOADS};

use crate::failure::Failure;
use crate::{listing, output};

/// List the workloads, or what can be set on one.
#[derive(Args, Debug)]
pub struct Arguments {
    /// A workload.
    name: Option<String>,
}

/// Lists them all, or describes one.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.name {
        None => {
            let entry = |it: &Entry| (it.name, it.what.to_owned());
            output::print(&listing::names(WORKLOADS.iter().map(entry)))
        }
        Some(name) => output::print(&described(warmq_workload::workload(name).ok_or_else(
            || {
                let known: Vec<&str> = WORKLOADS.iter().map(|it| it.name).collect();
                let help = format!("use one of {}", known.join(", "));
                Failure::usage(format!("no workload is called {name}"), help)
            },
        )?)),
    }
}

fn described(entry: &Entry) -> String {
    let Entry {
        name, what, work, ..
    } = entry;
    let settings = listing::settings(&entry.settings());
    format!("{name}: {what}\nIts work is counted in {work}.\n\n{settings}")
}
