//! Attaches the scheduler in each object for as long as a command runs: `attach OBJECT COMMAND...`.
//! For scripts/bpf-costs.sh.

use std::process::{Command, ExitCode};

use libbpf_rs::{MapCore, MapType, ObjectBuilder};

fn run(object: &str, command: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let opened = ObjectBuilder::default().open_file(object)?;
    let mut loaded = opened.load()?;
    let mut links = Vec::new();
    for mut map in loaded.maps_mut() {
        if map.map_type() == MapType::StructOps {
            links.push(map.attach_struct_ops()?);
        }
    }
    let [program, arguments @ ..] = command else {
        return Err("no command".into());
    };
    Command::new(program).args(arguments).status()?;
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [object, command @ ..] = arguments.as_slice() else {
        return ExitCode::from(2);
    };
    match run(object, command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{object}: {error}");
            ExitCode::FAILURE
        }
    }
}
