//! Machines by name, file, or as this host: with errors that show the place in the file.

use std::fs;
use std::path::Path;

use warmq_experiment::Lab;
use warmq_machine::{MachineDescription, builtin, builtin_names, read_hwloc, read_toml};

use crate::failure::Failure;

/// The name that means the machine that we run on.
pub const HOST: &str = "host";
const HOST_QUOTED: &str = "\"host\"";

/// The machine `name`: one that comes with WarmQ, a file (TOML, or hwloc's XML), or [`HOST`].
///
/// # Errors
/// There is none of that name, or its file describes no machine.
pub fn find(name: &str) -> Result<MachineDescription, Failure> {
    if name == HOST {
        return host();
    }
    if let Some(text) = builtin(name) {
        return read(name, text.to_owned(), false);
    }
    let ending = Path::new(name).extension().and_then(|it| it.to_str());
    match ending {
        Some("toml" | "xml") => {
            let text = fs::read_to_string(name).map_err(|error| {
                let what = format!("{name}: cannot read it: {error}");
                Failure::usage(what, "give the file of a machine, in TOML or hwloc's XML")
            })?;
            read(name, text, ending == Some("xml"))
        }
        _ => Err(unknown(name)),
    }
}

/// The machine that we run on, as /sys describes it.
///
/// # Errors
/// When /sys is missing or unlike that of Linux.
pub fn host() -> Result<MachineDescription, Failure> {
    Ok(warmq_host::read(Path::new("/"))?)
}

/// The laboratory for experiments with these texts. This machine is looked at only where one of
/// them may speak of it.
///
/// # Errors
/// When it is to be looked at and cannot be.
pub fn lab<'t>(mut texts: impl Iterator<Item = &'t str>) -> Result<Lab, Failure> {
    let asked = texts.any(|text| text.contains(HOST_QUOTED));
    Ok(Lab::new(asked.then(host).transpose()?))
}

fn read(name: &str, text: String, xml: bool) -> Result<MachineDescription, Failure> {
    let reader = if xml { read_hwloc } else { read_toml };
    reader(name, &text).map_err(|error| Failure::Machine(Box::new(error), text))
}

fn unknown(name: &str) -> Failure {
    let known: Vec<&str> = builtin_names().chain([HOST]).collect();
    let mend = format!(
        "give the path of a machine's .toml or .xml file, or one of {}",
        known.join(", ")
    );
    Failure::usage(format!("no machine is called {name}"), mend)
}
