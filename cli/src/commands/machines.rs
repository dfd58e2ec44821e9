//! `warmq machines`: lists them, and describes one.

use clap::Args;
use warmq_machine::builtin_names;

use crate::failure::Failure;
use crate::{described, listing, machines, output};

/// List the machines, or describe one.
#[derive(Args, Debug)]
pub struct Arguments {
    /// A machine: a name, a .toml or hwloc .xml file, or `host` for this one.
    #[arg(value_name = "NAME|FILE|host")]
    name: Option<String>,
    /// Print JSON: one object per line.
    #[arg(long)]
    json: bool,
}

/// Lists those that come with warmq, or describes one.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match (&arguments.name, arguments.json) {
        (Some(name), false) => output::print(&described::text(&machines::find(name)?)),
        (Some(name), true) => output::print_json(&described::json(&machines::find(name)?)),
        (None, false) => list(),
        (None, true) => builtin_names()
            .try_for_each(|name| output::print_json(&described::json(&machines::find(name)?))),
    }
}

fn list() -> Result<(), Failure> {
    let mut entries = Vec::new();
    for name in builtin_names() {
        entries.push((name, machines::find(name)?.title));
    }
    entries.push((
        machines::HOST,
        "the machine that warmq runs on, as /sys describes it".to_owned(),
    ));
    output::print(&listing::names(entries))?;
    output::print(
        "\nAny other: the path of a .toml file, or of an .xml file from `lstopo --of xml`.",
    )
}
