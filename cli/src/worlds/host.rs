//! This machine as a world.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use warmq_config::{Setting, Value};
use warmq_experiment::{AnyObserver, Measured, Play, Played, RunError, World};
use warmq_scenario::WorldKind;

use super::player::{OPTIONS, arguments, options, played, refused};
use super::programs::{self, PLAYER};
use crate::machines::HOST;

/// The setting that says whether the kernel's records are taken.
const RECORD: &str = "record";

/// This machine: under the scheduler that it runs, or under one of sched_ext that is loaded for as
/// long as it plays.
pub struct Host;

impl World for Host {
    fn kind(&self) -> WorldKind {
        WorldKind::Host
    }

    fn settings(&self) -> Vec<Setting> {
        vec![
            Setting::flag(RECORD, true).says(
                "whether what the kernel does is recorded; without it a switch takes 1.2 us less, and there are no \
                 figures of switches, wakeups and waiting",
                "ours",
            ),
            options(),
        ]
    }

    fn takes_scheduler(&self, name: &str) -> Result<(), String> {
        let program = programs::scheduler(name)?;
        match program.is_some_and(|file| file.extension() == Some(OsStr::new("o"))) {
            true => Err(format!(
                "{name} is an object alone: on this machine a scheduler is loaded by its program \
                 (world = \"guest\" loads objects)"
            )),
            false => Ok(()),
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

    fn starts_schedulers(&self) -> bool {
        true
    }

    fn play(
        &self,
        play: &Play<'_>,
        watcher: Option<&mut dyn AnyObserver>,
    ) -> Result<Measured, RunError> {
        done(play)?.measured(self.kind(), play, watcher)
    }
}

/// Plays to the end.
fn done(request: &Play<'_>) -> Result<Played, RunError> {
    let player = programs::ours(PLAYER).map_err(refused)?;
    let file = written(request).map_err(|error| refused(format!("a file for it: {error}")))?;
    let scheduler = &request.plan.scheduler;
    let program = programs::scheduler(&scheduler.name).map_err(refused)?;
    // Of a program this only makes sure that nothing is set which the program alone can set.
    request.packed(&scheduler.name, "", "")?;
    let silent = request.plan.world.settings.get(RECORD) == Some(&Value::Bool(false));
    let mut command = Command::new(player);
    command
        .args(arguments(request.plan, &file.path().to_string_lossy()))
        .args(["--parent", &std::process::id().to_string()])
        .args(silent.then_some("--no-record"));
    if let Some(program) = program {
        let options = request.plan.world.settings.get(OPTIONS);
        let options = options.map(ToString::to_string).unwrap_or_default();
        command.arg("--load").arg(program);
        command.arg(format!("--options={options}"));
        command.arg(format!("--counters={}", request.counters()));
    }
    let unplayed = |error| refused(format!("start the player: {error}"));
    let output = ended(command).map_err(unplayed)?;
    let status = output.status.code();
    let Some(status) = status.and_then(|code| u8::try_from(code).ok()) else {
        return Err(refused(format!("the player ended with {}", output.status)));
    };
    played(
        status,
        &output.stdout,
        &String::from_utf8_lossy(&output.stderr),
    )
}

/// Runs a program to its end. What it prints goes to files without a name: the other end of a pipe
/// may be held open by a process of the program that lives on, such as one in a frozen group.
fn ended(mut command: Command) -> std::io::Result<Output> {
    let (mut stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let status = command
        .stdin(Stdio::null())
        .stdout(stdout.try_clone()?)
        .stderr(stderr.try_clone()?)
        .status()?;
    let whole = |file: &mut File| {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes).map(|_| bytes)
    };
    Ok(Output {
        status,
        stdout: whole(&mut stdout)?,
        stderr: whole(&mut stderr)?,
    })
}

/// The scenario in a file of its own, whose ending names its language.
fn written(request: &Play<'_>) -> std::io::Result<tempfile::NamedTempFile> {
    let (name, text) = request.text();
    let ending = Path::new(name).extension().unwrap_or_default();
    let suffix = format!(".{}", ending.to_string_lossy());
    let mut file = tempfile::Builder::new()
        .prefix("warmq-")
        .suffix(&suffix)
        .tempfile()?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}
