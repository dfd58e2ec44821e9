//! Drills: what scx_warmq must do on a real kernel, and neither a scenario nor a shell can say:
//! what the kernel may do to tasks that it holds, hints in a map of task storage, answers to the
//! tools of scx. How it is started, ended and looked at is for scripts/in-guest.sh, who gets how
//! much, where and when for the laws, and what it decides for the stories that the lab plays with
//! its program.
//!
//! Run them as root in a guest with sched_ext (`make vm-test`), as they disturb everything else on
//! the machine. Each drill starts scx_warmq, makes tasks that behave in one way, and compares the
//! scheduler's figures with a law.

mod drills;
mod members;
mod report;
mod scheduler;
mod switch_cost;
mod sys;
mod workers;

use std::process::ExitCode;
use std::sync::atomic::Ordering;

use clap::Parser;

/// Test scx_warmq on the running kernel. This needs root, sched_ext, and an otherwise idle machine:
/// use a guest.
#[derive(Parser)]
#[command(name = "warmq-drill", version)]
struct Options {
    /// Drills to run, by a part of their names [default: all]
    names: Vec<String>,
    /// Only list the drills
    #[arg(long)]
    list: bool,
    /// How long each drill of starved/ lasts, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 8)]
    time: u64,
    /// Only measure the cost of a switch under the scheduler that runs now
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
    report::LASTS.store(options.time, Ordering::Relaxed);
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
