//! `warmq schedulers`: lists them, and what can be set on one.

use clap::Args;
use warmq_sched::{Entry, SCHEDULERS};

use crate::failure::Failure;
use crate::{listing, output};

/// List the schedulers, or what can be set on one.
#[derive(Args, Debug)]
pub struct Arguments {
    /// A scheduler.
    name: Option<String>,
}

/// Lists them all, or describes one.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.name {
        None => {
            let entry = |it: &Entry| (it.name, it.what.to_owned());
            output::print(&listing::names(SCHEDULERS.iter().map(entry)))
        }
        Some(name) => output::print(&described(warmq_sched::scheduler(name).ok_or_else(
            || {
                let known: Vec<&str> = SCHEDULERS.iter().map(|it| it.name).collect();
                let help = format!("use one of {}", known.join(", "));
                Failure::usage(format!("no scheduler is called {name}"), help)
            },
        )?)),
    }
}

fn described(entry: &Entry) -> String {
    let Entry {
        name, what, kernel, ..
    } = entry;
    let settings = listing::settings(&entry.settings());
    format!("{name}: {what}\nIts costs are those of {kernel} on the machine.\n\n{settings}")
}
