//! Machines by name, file, or as this host: with errors that show the place in the file.

use std::path::Path;

use warmq_experiment::{Engine, PartError, Request};
use warmq_machine::{MachineDescription, builtin_names};

use crate::failure::Failure;
use crate::{calibrated, worlds};

/// The name that means the machine that we run on.
pub const HOST: &str = "host";

/// The machine `name`: one that comes with WarmQ, a file (TOML, or hwloc's XML), or [`HOST`].
///
/// # Errors
/// There is none of that name, or its file describes no machine.
pub fn find(name: &str) -> Result<MachineDescription, Failure> {
    let host = (name == HOST).then(host).transpose()?;
    match Engine::new(host).machine(name) {
        Err(PartError::Unknown) => Err(unknown(name)),
        found => self::found("machine", name, found),
    }
}

/// What was looked for as the part `kind` called `name`.
///
/// # Errors
/// There is none, or its file is wrong.
pub fn found<T>(kind: &str, name: &str, result: Result<T, PartError>) -> Result<T, Failure> {
    result.map_err(|error| not_found(kind, name, error))
}

/// Why there is no part `kind` called `name`.
pub fn not_found(kind: &str, name: &str, error: PartError) -> Failure {
    match error {
        PartError::Unknown => Failure::usage(
            format!("no {kind} is called {name}"),
            "give its name or its file",
        ),
        PartError::Broken(why) => Failure::usage(why, format!("give the file of a {kind}")),
        PartError::Problems(problems) => problems.into(),
    }
}

/// The machine that we run on: as `warmq calibrate` measured it, or else as /sys describes it.
///
/// # Errors
/// As [`described`].
pub fn host() -> Result<MachineDescription, Failure> {
    let described = described()?;
    let calibrated = calibrated::newest(&described);
    Ok(calibrated.map_or(described, |calibrated| calibrated.machine))
}

/// The machine that we run on, as /sys describes it.
///
/// # Errors
/// When /sys is missing or unlike that of Linux.
pub fn described() -> Result<MachineDescription, Failure> {
    Ok(warmq_host::read(Path::new("/"))?)
}

/// The engine for what is asked for. This machine is described only where one of
/// them may name it.
///
/// # Errors
/// When it has to be described and cannot be.
pub fn engine(requests: &[Request]) -> Result<Engine, Failure> {
    engine_of(requests.iter().any(|request| request.mentions(HOST)))
}

/// The engine; it knows this machine if that `is_named`.
///
/// # Errors
/// As [`engine`].
pub fn engine_of(is_named: bool) -> Result<Engine, Failure> {
    Ok(worlds::add(Engine::new(is_named.then(host).transpose()?)))
}

fn unknown(name: &str) -> Failure {
    let known = itertools::join(builtin_names().chain([HOST]), ", ");
    let help = format!("give the path of a machine's .toml or .xml file, or one of {known}");
    Failure::usage(format!("no machine is called {name}"), help)
}
