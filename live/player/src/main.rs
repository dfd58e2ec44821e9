//! `warmq-player`: plays a scenario here and writes a trace.

mod arguments;

use std::io::BufWriter;
use std::path::Path;
use std::process::ExitCode;

use warmq_config::{Chosen, Document, Source};
use warmq_output::{Access, Output, Refused};
use warmq_player::{Options, PlayError, Times, Wanted, end_with, play, site};
use warmq_scenario::{Bound, Scenario};
use warmq_units::printable;

use arguments::{Arguments, HELP, Parsed};

fn main() -> ExitCode {
    let arguments = match arguments::parse(std::env::args().skip(1)) {
        Ok(Parsed::Play(arguments)) => arguments,
        Ok(Parsed::Help) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(problem) => {
            eprintln!("error: {problem}");
            return ExitCode::from(2);
        }
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), PlayError> {
    if arguments.parent.is_some_and(|parent| !end_with(parent)) {
        return Err(PlayError::Ended("its parent has ended".to_owned()));
    }
    let bound = bind(arguments)?;
    let options = Options {
        times: Times {
            warmup: arguments.warmup,
            time: arguments.time,
        },
        seed: arguments.seed,
        world: arguments.world.clone(),
        scheduler: arguments.scheduler.clone(),
        load: arguments
            .load
            .clone()
            .map(|name| (name, arguments.options.clone())),
        counters: arguments.counters.clone(),
        record: arguments.record.then(Wanted::default),
        log_bytes: arguments.log.0,
        rounds_per_s: arguments.rounds_per_s,
    };
    match arguments.trace.as_str() {
        "-" => play(bound, options, BufWriter::new(std::io::stdout())),
        file => into_file(Path::new(file), bound, options),
    }
}

/// Plays, and writes the trace into a file, also of a run that ended early; one that did not begin
/// leaves the file as it was.
fn into_file(path: &Path, bound: Bound, options: Options) -> Result<(), PlayError> {
    let refused = |why: Refused| PlayError::Refused {
        what: format!("`{}` cannot be written", printable(path)),
        why: why.to_string(),
        fix: "name another file with --trace".to_owned(),
    };
    let (output, file) = Output::begin(path, Access::Private).map_err(refused)?;
    let played = play(bound, options, BufWriter::new(&file));
    if file
        .metadata()
        .is_ok_and(|file| file.is_file() && file.len() == 0)
    {
        return played;
    }
    played.and(output.finish(&file).map_err(refused))
}

/// The scenario with the values that were chosen.
fn bind(arguments: &Arguments) -> Result<Bound, PlayError> {
    let file = &arguments.scenario;
    let text = warmq_config::read_text(file).map_err(|error| {
        let fix = "name the file of a scenario with --scenario";
        PlayError::Input(format!("`{file}` cannot be read: {error}; {fix}"))
    })?;
    let input = |problem: &dyn std::fmt::Display| PlayError::Input(problem.to_string());
    let scenario = Scenario::read_any(file, &text).map_err(|problems| input(&problems))?;
    let chosen = chosen(&scenario, &arguments.set)?;
    scenario
        .bind(&chosen, &site())
        .map_err(|problems| input(&problems))
}

/// The values of `--set`, read as a file has them.
fn chosen(scenario: &Scenario, set: &[(String, String)]) -> Result<Chosen, PlayError> {
    let input = |problem: &dyn std::fmt::Display| PlayError::Input(problem.to_string());
    let settings = scenario.settings();
    let mut document = Document::parse("--set", "").map_err(|problems| input(&problems))?;
    for (name, value) in set {
        let option = Source::option("--set", &format!("{name}={value}"));
        document.set(&[name], value, option);
    }
    let read = document.read(|fields| {
        let mut values = std::collections::BTreeMap::new();
        for (entry, item) in fields.entries() {
            let Some(setting) = settings.iter().find(|setting| setting.name == entry.key) else {
                let known = settings.iter().map(|setting| setting.name.as_str());
                item.unknown("the scenario has no such setting", &entry.key, known);
                return None;
            };
            values.insert(setting.name.clone(), item.value(&setting.kind)?);
        }
        Some(values)
    });
    let values = read.map_err(|problems| input(&problems))?;
    Chosen::new(settings, values)
        .map_err(|name| PlayError::Input(format!("the value of `{name}` is not allowed")))
}
