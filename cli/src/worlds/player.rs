//! What `warmq-player` is asked, and what it says.

use std::collections::BTreeMap;

use warmq_config::{Setting, Value};
use warmq_experiment::{Cause, Parameter, Plan, Played, RunError};
use warmq_trace::file::Reader;
use warmq_units::Duration;

/// The exit codes of the player beside 0.
const BAD_INPUT: u8 = 2;
const ENDED_EARLY: u8 = 3;
const SCHEDULER_THROWN_OUT: u8 = 5;

/// The setting with what a scheduler's program is given.
pub const OPTIONS: &str = "options";

/// Its description.
pub fn options() -> Setting {
    Setting::text(OPTIONS, "").says(
        "options of the scheduler's program, separated by spaces",
        "ours",
    )
}

/// The arguments that let it play `plan` from the file `scenario`, with its trace on standard
/// output.
pub fn arguments(plan: &Plan, scenario: &str) -> Vec<String> {
    let mut arguments: Vec<String> = Vec::new();
    let mut add = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    add("--scenario", scenario.to_owned());
    add("--world", plan.world.name.clone());
    add("--warmup", time(plan.warmup));
    add("--time", time(plan.time));
    add("--seed", plan.seed.0.to_string());
    add("--scheduler", plan.scheduler.name.clone());
    add("--trace", "-".to_owned());
    for pair in settings(&plan.workload.settings) {
        add("--set", pair);
    }
    arguments
}

fn settings(settings: &BTreeMap<String, Value>) -> impl Iterator<Item = String> {
    settings.iter().map(|(name, value)| match value {
        Value::Duration(span) => format!("{name}={}", time(*span)),
        Value::Bytes(size) => format!("{name}={}B", size.0),
        other => format!("{name}={other}"),
    })
}

fn time(span: Duration) -> String {
    span.exact().replace(' ', "")
}

/// The run of a player that exited with `status`, wrote `trace` to standard output and `said` to
/// standard error.
///
/// # Errors
/// It did not play to the end, or its trace cannot be read.
pub fn played(status: u8, trace: &[u8], said: &str) -> Result<Played, RunError> {
    if status != 0 {
        return Err(failed(status, said));
    }
    let unreadable = |error: warmq_trace::file::ReadError| refused(format!("its trace: {error}"));
    let reader = Reader::new(trace).map_err(unreadable)?;
    let header = reader.header().clone();
    let records = reader.collect::<Result<_, _>>().map_err(unreadable)?;
    let notes = said.lines().filter_map(|line| line.strip_prefix("note: "));
    Ok(Played {
        parameters: parameters(&header),
        header,
        records,
        notes: notes.map(str::to_owned).collect(),
        delay_per_second: 0.0,
    })
}

fn failed(status: u8, said: &str) -> RunError {
    let lines = said.lines().filter(|line| !line.starts_with("note: "));
    let what = lines.collect::<Vec<_>>().join("; ");
    RunError {
        what: match what.is_empty() {
            true => format!("the player ended with status {status}"),
            false => what,
        },
        cause: match status {
            BAD_INPUT => Cause::Setting,
            ENDED_EARLY => Cause::ProgramBroke,
            SCHEDULER_THROWN_OUT => Cause::SchedulerBroke,
            _ => Cause::WorldRefused,
        },
    }
}

/// That a world cannot play.
pub fn refused(what: impl Into<String>) -> RunError {
    RunError {
        what: what.into(),
        cause: Cause::WorldRefused,
    }
}

/// What it was played on.
fn parameters(header: &warmq_trace::Header) -> Vec<Parameter> {
    let facts = [
        ("machine", &header.machine),
        ("kernel", &header.kernel),
        ("scheduler", &header.scheduler),
        ("preemption", &header.preemption),
        ("tick", &header.hz),
        ("clock", &header.clock),
    ];
    let known = facts.into_iter().filter(|(_, value)| !value.is_empty());
    let parameter = |(name, value): (&str, &String)| Parameter {
        name: format!("{}.{name}", header.world),
        value: value.clone(),
        unit: if name == "tick" { "Hz" } else { "" }.to_owned(),
        source: "the running kernel".to_owned(),
    };
    known.map(parameter).collect()
}
