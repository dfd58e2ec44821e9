//! This machine as a world.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use warmq_config::{Setting, Value};
use warmq_experiment::{Plan, Played, Request, RunError, World};
use warmq_scenario::World as Kind;

use super::player::{arguments, played, refused};
use super::programs::{self, OWN};
use crate::machines::HOST;

/// The setting that says whether the kernel's records are taken.
const RECORD: &str = "record";

/// This machine, with the scheduler that it runs.
pub struct Host;

impl World for Host {
    fn kind(&self) -> Kind {
        Kind::Host
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting::flag(RECORD, true).says(
            "whether what the kernel does is recorded; without it a switch takes 1.2 us less, and there are no \
             figures of switches, wakeups and waiting",
            "ours",
        )]
    }

    fn takes_scheduler(&self, name: &str) -> Result<(), String> {
        match name {
            OWN => Ok(()),
            _ => Err(format!(
                "this machine keeps the scheduler that it runs, \"{OWN}\" (load another one before, \
                 or use world = \"guest\")"
            )),
        }
    }

    fn takes_machine(&self, name: &str) -> Result<(), String> {
        match name {
            HOST => Ok(()),
            _ => Err(format!(
                "world = \"host\" is this machine: machine = \"{HOST}\""
            )),
        }
    }

    fn needs_quiet(&self, _: &Plan) -> bool {
        true
    }

    fn play(&self, request: &Request<'_>) -> Result<Played, RunError> {
        let player = programs::player().map_err(refused)?;
        let file = written(request).map_err(|error| refused(format!("a file for it: {error}")))?;
        let silent = request.plan.world.settings.get(RECORD) == Some(&Value::Bool(false));
        let output = Command::new(player)
            .args(arguments(request.plan, &file.path().to_string_lossy()))
            .args(silent.then_some("--no-record"))
            .stdin(Stdio::null())
            .output()
            .map_err(|error| refused(format!("start the player: {error}")))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let status = output
            .status
            .code()
            .and_then(|code| u8::try_from(code).ok());
        let Some(status) = status else {
            return Err(refused(format!("the player ended with {}", output.status)));
        };
        played(status, &output.stdout, &said)
    }
}

/// The scenario in a file of its own, which tells the language by its ending.
fn written(request: &Request<'_>) -> std::io::Result<tempfile::NamedTempFile> {
    let ending = Path::new(request.file).extension().unwrap_or_default();
    let suffix = format!(".{}", ending.to_string_lossy());
    let mut file = tempfile::Builder::new()
        .prefix("warmq-")
        .suffix(&suffix)
        .tempfile()?;
    file.write_all(request.text.as_bytes())?;
    Ok(file)
}
