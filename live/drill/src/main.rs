//! Drills: what scx_warmq must do on a real kernel, shown by its counters and by CPU time, not by how fast anything was.
//!
//! Run as root on a kernel with sched_ext, where nothing else matters: in a guest (`make vm-test`). Each drill starts
//! scx_warmq, makes tasks that behave in one way, and compares what the scheduler says with what it must.

mod drills;
mod group;
mod report;
mod scheduler;
mod switch_cost;
mod sys;
mod workers;

use std::process::ExitCode;

use clap::Parser;

/// Tries scx_warmq on the kernel that runs. Needs root, sched_ext, and nothing else going on: use a guest.
#[derive(Parser)]
#[command(name = "warmq-drill", version)]
struct Options {
    /// Drills to run (a part of the name is enough); all, if none is given
    names: Vec<String>,
    /// Only says which there are
    #[arg(long)]
    list: bool,
    /// Only measures what a switch costs under the scheduler that the kernel has now
    #[arg(long)]
    switch_cost: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.switch_cost {
        return match switch_cost::print() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("switch cost: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let wanted = |name: &str| {
        options.names.is_empty()
            || options
                .names
                .iter()
                .any(|part| name.contains(part.as_str()))
    };
    let chosen: Vec<_> = drills::all()
        .into_iter()
        .filter(|drill| wanted(drill.name))
        .collect();
    if options.list {
        for drill in &chosen {
            println!("{:<28} {}", drill.name, drill.law);
        }
        return ExitCode::SUCCESS;
    }
    if chosen.is_empty() {
        eprintln!("no drill has that name; see: warmq-drill --list");
        return ExitCode::from(2);
    }
    report::run(&chosen)
}
