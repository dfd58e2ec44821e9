//! scx_warmq: loads the scheduler in src/bpf, observes it, and labels threads.
//!
//! To schedule, options are parsed and checked (options.rs), the machine is checked (refuse.rs) and
//! described (topology.rs), and the program is configured (policy.rs), loaded and watched
//! (load.rs). The monitor, the statistics and the labels work through the maps that it pins
//! (pins.rs, state.rs).

mod access;
mod bpf_skel;
mod counters;
mod exit;
mod hooks;
mod hotplug;
mod label;
mod libbpf;
mod load;
mod monitor;
mod options;
mod pins;
mod policy;
mod power;
mod refuse;
mod say;
mod state;
mod stats;
mod stop;
mod topology;
mod words;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::CommandFactory;
use load::Ended;
use options::{Command, Options, Schedule};
use stop::Stop;

const FAILED: u8 = 1;
const FAULT: u8 = 3;
const ENDED_BY_OTHERS: u8 = 4;

fn main() -> ExitCode {
    let options = Options::read();
    let done = match &options {
        Options {
            command: Some(command),
            ..
        } => obey(command),
        Options {
            stats_json: Some(seconds),
            ..
        } => stats::print(*seconds),
        Options {
            monitor: Some(seconds),
            ..
        } => monitor::run(*seconds),
        Options {
            help_stats: true, ..
        } => stats::served::describe().map(|()| ExitCode::SUCCESS),
        _ => schedule(&options.schedule),
    };
    done.unwrap_or_else(|error| {
        say::error(&format!("scx_warmq: {error:#}"));
        ExitCode::from(FAILED)
    })
}

fn obey(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Label(asked) => label::run(asked),
        Command::Unpin => unpin(),
        Command::Man => written(|out| clap_mangen::Man::new(Options::command()).render(out)),
        Command::Completions { shell } => written(|mut out| {
            clap_complete::generate(*shell, &mut Options::command(), "scx_warmq", &mut out);
            Ok(())
        }),
    }
}

/// Writes to standard output at once, as a reader that goes away must not end the process.
fn written(what: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    what(&mut text)?;
    match std::io::stdout().write_all(&text) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn unpin() -> anyhow::Result<ExitCode> {
    if let Some(name) =
        refuse::loaded_scheduler(Path::new("/")).filter(|name| refuse::is_ours(name))
    {
        anyhow::bail!("{name} is running and uses the pinned maps: stop it first");
    }
    let folder = warmq_hint::abi::pins();
    say::line(&match pins::remove_all()? {
        0 => format!("nothing was pinned in {folder}"),
        removed => format!("removed {removed} pins from {folder}"),
    });
    Ok(ExitCode::SUCCESS)
}

fn schedule(schedule: &Schedule) -> anyhow::Result<ExitCode> {
    for warning in refuse::check(Path::new("/"), schedule.ignore_quotas)? {
        say::error(&format!("scx_warmq: warning: {warning}"));
    }
    let stop = Stop::at_signals(schedule.exit_after.map(Duration::from_secs_f64))?;
    match load::run(schedule, &stop)? {
        Ended::Stopped => {
            say::line("scx_warmq has stopped; the kernel's own scheduler runs all tasks again");
            Ok(ExitCode::SUCCESS)
        }
        Ended::Ejected(exit) => Ok(report(schedule, &exit)),
    }
}

fn report(schedule: &Schedule, exit: &exit::Exit) -> ExitCode {
    if schedule.verbose && !exit.dump.is_empty() {
        say::error(&exit.dump);
    }
    if !exit.is_fault() {
        say::error(&format!(
            "scx_warmq was stopped from outside: {}",
            exit.why()
        ));
        return ExitCode::from(ENDED_BY_OTHERS);
    }
    say::error(&format!(
        "the kernel stopped scx_warmq because of a fault: {}",
        exit.why()
    ));
    if !schedule.verbose && !exit.dump.is_empty() {
        say::error(&match keep(&exit.dump) {
            Ok(path) => format!(
                "the kernel's dump of tasks and CPUs is in {}",
                path.display()
            ),
            Err(error) => format!(
                "the kernel's dump could not be saved ({error}): start scx_warmq with --verbose to see it next time"
            ),
        });
    }
    ExitCode::from(FAULT)
}

/// Saves a dump in a file: in systemd's folder for logs, or among temporary files.
fn keep(dump: &str) -> anyhow::Result<PathBuf> {
    let folder = std::env::var_os("LOGS_DIRECTORY").map_or_else(std::env::temp_dir, PathBuf::from);
    let mut named = tempfile::Builder::new();
    let named = named.prefix("scx_warmq-").suffix(".dump");
    let mut file = named.tempfile_in(folder)?;
    file.write_all(dump.as_bytes())?;
    Ok(file.keep()?.1)
}
