//! `warmq calibrate`: what this machine's kernel and caches cost.

mod away;
mod transfers;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use chrono::Utc;
use clap::Args;
use itertools::join;
use serde_json::json;
use warmq_experiment::calibrate::{self, CannotCalibrate, Figure, Found, Step};
use warmq_experiment::{Engine, RealKernel};
use warmq_machine::{Cost, MachineDescription};
use warmq_units::{Bytes, Cycles, Duration, printable};

use self::away::{Set, TIMER_TICK};
use self::transfers::{Transfer, missing};
use crate::failure::Failure;
use crate::files::Unfinished;
use crate::progress::Watch;
use crate::worlds::kernels;
use crate::{calibrated, files, listing, machines, output, walk, worlds};

const EXAMPLES: &str = "\
Examples:
  warmq calibrate                                  then `--machine host` has this machine's costs
  warmq calibrate --out mine.toml                  a description for other machines, too
  warmq calibrate --json | jq 'select(.most_us > 1.2 * .measured_us)'    what other work disturbed";

/// What `--help` says of it.
pub const ABOUT: &str = "\
Measure what this machine's kernel and caches cost

Plays short scenarios (experiments/costs) on this machine, several times, and looks for the costs \
with which the lab takes as long for them: system calls, wakeups, switches within and across address \
spaces, forks, pipes, datagrams, streams, Unix sockets, futexes, timers, ticks, interrupts between \
CPUs, the way out of idle; latencies of caches and memory, and of a line from one CPU to another, for \
each kind of pair; for how long a hypervisor takes CPUs away.

`--machine host` uses the newest measurement of this machine, which is kept below the user's cache \
folder, and every run in the lab says so. It takes a minute or two, and no root. Take a machine that \
does nothing else: of several tries the least disturbed counts, and what was disturbed all the same \
is named. docs/calibrate.md has what each cost is found by, and what is not measured.";

/// A figure that is so much larger in another try was disturbed.
const DISTURBED: f64 = 1.25;
/// The cost of the shortest system call, which is timed without the player.
const SYSTEM_CALL: &str = "system_call";

/// Measure what this machine's kernel and caches cost.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Write the description of this machine to this file, too.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// How often each scenario is played; the least disturbed one counts.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    tries: u64,
    /// Print one JSON row per line, and nothing else, on standard output.
    #[arg(long)]
    json: bool,
}

/// Measures, writes, and shows.
///
/// # Errors
/// What cannot be played or written here.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut machine = machines::described()?;
    let out = arguments
        .out
        .as_deref()
        .map(Unfinished::begin)
        .transpose()?;
    let kernel = kernels::running();
    let when = Utc::now().format("%Y-%m-%d %H:%M").to_string();
    walk::measured_caches(&mut machine, Bytes::from_kb(8))?;
    let call = system_call(&mut machine, &kernel, &when)?;
    let transfers = transfers::measure(&mut machine, &kernel, &when)?;
    let found = found(&mut machine, &kernel, arguments.tries, &when)?;
    let away = away::watch(&kernel, arguments.tries)?.set(&mut machine, &kernel, &when);
    let kept = keep(&machine, &when, out)?;
    match arguments.json {
        true => print_json(&machine, &transfers, &found, &away),
        false => {
            output::print(&table(&machine, (&call, &transfers), &found, &away))?;
            output::print(&remarks(&machine, &kernel, &found, &away))?;
            missing(&transfers).map_or(Ok(()), |missing| output::print(&missing))?;
            output::print(&format!("Kept in {}.", printable(&kept)))
        }
    }
}

/// Writes the description into the folder of these, and to `out`. Returns where it is kept.
fn keep(
    machine: &MachineDescription,
    when: &str,
    out: Option<(Unfinished, BufWriter<File>)>,
) -> Result<PathBuf, Failure> {
    let text = machine.to_toml();
    let folder = calibrated::folder()?;
    fs::create_dir_all(&folder).map_err(|error| Failure::system("make the folder", &error))?;
    let kept = folder.join(format!("{}.toml", when.replace([' ', ':'], "-")));
    files::write(&kept, text.as_bytes())?;
    if let Some((unfinished, mut file)) = out {
        let written = file.write_all(text.as_bytes());
        written.map_err(|error| Failure::system("write the description", &error))?;
        unfinished.finish(file)?;
    }
    Ok(kept)
}

/// Times the shortest system call, and sets its cost.
fn system_call(
    machine: &mut MachineDescription,
    kernel: &RealKernel,
    when: &str,
) -> Result<String, Failure> {
    let (least, median) = warmq_walk::system_call_ns()?;
    let shown = format!("{least:.0} ns, {median:.0} in the median");
    let cost = Cost {
        cycles: machine.clock.cycles_in(Duration((least * 1e3) as u64)),
        source: format!(
            "measured on {when}, Linux {}: getppid(), {shown}",
            kernel.release
        ),
    };
    let costs = machine.costs.entry(calibrate::table(kernel)).or_default();
    costs.insert(SYSTEM_CALL.to_owned(), cost);
    Ok(shown)
}

/// Plays on this machine, and finds the costs in the lab.
fn found(
    machine: &mut MachineDescription,
    kernel: &RealKernel,
    tries: u64,
    when: &str,
) -> Result<Vec<Found>, Failure> {
    let engine = worlds::add(Engine::new(Some(machine.clone())));
    let (steps, cpus) = (calibrate::steps(machine, kernel), machine.cpus.len());
    let plays = calibrate::scenes(&steps, cpus).len() * tries as usize;
    let watch = Watch::over("plays on this machine", plays);
    let seen = |done, total, name: &str| watch.see(done, total, name);
    let measured = calibrate::measure(&engine, &steps, cpus, tries, seen);
    let measured = measured.map_err(failure)?;
    drop(watch);
    let watch = Watch::over("costs found in the lab", steps.len());
    let seen = |done, total, name: &str| watch.see(done, total, name);
    let source = |step: &Step| {
        format!(
            "measured on {when}, Linux {}: {} {}",
            kernel.release,
            of_figure(step.figure),
            command(step)
        )
    };
    let found = calibrate::calibrate(machine, kernel, &steps, &measured, source, seen);
    found.map_err(failure)
}

fn failure(why: CannotCalibrate) -> Failure {
    match why {
        CannotCalibrate::Refused(problems) => problems.into(),
        CannotCalibrate::Failed(scene, error) => Failure::Lacking(
            format!("{scene} cannot be played here: {error}"),
            String::new(),
        ),
        other => Failure::usage(other.to_string(), ""),
    }
}

fn of_figure(figure: Figure) -> String {
    match figure {
        Figure::Span(name) => format!("the span {name} at the median, without `nothing`, of"),
        Figure::TimePer(rate, tasks) => {
            format!("CPU time of {} for each of {rate} of", tasks.join(" and "))
        }
        Figure::Period(rate) => format!("the time for each of {rate} of"),
        Figure::Over(span, other) => {
            format!("by how much the span {span} is longer at the median than {other}, of")
        }
    }
}

/// The command that measures the figure of a step.
fn command(step: &Step) -> String {
    let set = step.scene.set.iter();
    let set: String = set
        .map(|(key, value)| format!(" --set {key}={value}"))
        .collect();
    format!(
        "`warmq run experiments/costs/{} --world host --set record=false{set}`",
        step.scene.name
    )
}

fn table(
    machine: &MachineDescription,
    (call, transfers): (&str, &[Transfer]),
    found: &[Found],
    away: &Set,
) -> String {
    let head = [
        "cost",
        "before",
        "now",
        "measured",
        "most",
        "in the lab",
        "play",
    ];
    let mut rows = vec![[SYSTEM_CALL, "", call].map(str::to_owned).to_vec()];
    rows.extend(transfers.iter().filter_map(Transfer::cells).map(Vec::from));
    let time = |cycles: Cycles| machine.clock.time_of(cycles).to_string();
    let us = |figure: f64| Duration((figure * 1e6) as u64).to_string();
    rows.extend(found.iter().map(|found| {
        vec![
            found.step.cost.to_owned(),
            time(found.before),
            time(found.now),
            us(found.measured.0),
            us(found.measured.1),
            us(found.lab),
            found.step.scene.name.to_owned(),
        ]
    }));
    rows.extend(away.tick.iter().map(|tick| {
        let (before, now) = (time(tick.before), time(tick.now));
        vec![
            TIMER_TICK.to_owned(),
            before,
            now,
            tick.measured.to_string(),
        ]
    }));
    listing::headed(head, rows)
}

/// What was disturbed, what could not be measured, and where the lab takes longer than it should.
fn remarks(
    machine: &MachineDescription,
    kernel: &RealKernel,
    found: &[Found],
    away: &Set,
) -> String {
    let disturbed = found.iter().filter(|found| is_disturbed(found));
    let disturbed = join(disturbed.map(|found| found.step.cost), ", ");
    let missed = |zero: bool| {
        let missed = found.iter().filter(|found| found.missed);
        let missed = missed.filter(|found| (found.now == Cycles(0)) == zero);
        join(missed.map(|found| found.step.cost), ", ")
    };
    let lacking = calibrate::steps(machine, kernel);
    let lacking = lacking
        .iter()
        .filter(|step| found.iter().all(|found| found.step != **step));
    let lacking = join(lacking.map(|step| step.cost), ", ");
    let sentences = [
        (
            disturbed,
            "Other work disturbed some tries (measure again on a quiet machine): ",
        ),
        (
            missed(true),
            "Even at 0 the lab takes longer than was measured: ",
        ),
        (
            missed(false),
            "As before, since no cost explains what was measured: ",
        ),
        (lacking, "Not measured, for want of CPUs: "),
    ];
    let shown = sentences.into_iter().filter(|(names, _)| !names.is_empty());
    let mut text: Vec<String> = shown
        .map(|(names, what)| format!("{what}{names}."))
        .collect();
    text.push(away.sentence());
    let assumed = assumed(machine, found, away);
    text.push(format!("Not measured by this command: {assumed}."));
    text.join("\n")
}

fn is_disturbed(found: &Found) -> bool {
    found.measured.1 > DISTURBED * found.measured.0
}

/// The costs of the kernel that are as they were.
fn assumed(machine: &MachineDescription, found: &[Found], away: &Set) -> String {
    let known = |name: &str| {
        let is_tick = name == TIMER_TICK && away.tick.is_some();
        name == SYSTEM_CALL || is_tick || found.iter().any(|found| found.step.cost == name)
    };
    let costs = machine.costs.values().flat_map(|costs| costs.keys());
    let assumed: std::collections::BTreeSet<&String> = costs.filter(|name| !known(name)).collect();
    join(assumed, ", ")
}

fn print_json(
    machine: &MachineDescription,
    transfers: &[Transfer],
    found: &[Found],
    away: &Set,
) -> Result<(), Failure> {
    let rows = transfers.iter().filter_map(Transfer::row);
    let rows: Vec<_> = rows.chain(away.rows(machine)).collect();
    rows.iter().try_for_each(output::print_json)?;
    found.iter().try_for_each(|found| {
        output::print_json(&json!({
            "cost": found.step.cost,
            "cycles": found.now.0,
            "ns": machine.clock.time_of(found.now).0 as f64 / 1e3,
            "before_cycles": found.before.0,
            "measured_us": found.measured.0,
            "most_us": found.measured.1,
            "lab_us": found.lab,
            "command": command(&found.step),
        }))
    })
}
