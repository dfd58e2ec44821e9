//! Loads a compiled scheduler of sched_ext and attaches it, as its own loader would.
//!
//! ```text
//! warmq-attach FILE                 # until this program ends, or the kernel throws it out
//! warmq-attach FILE COMMAND...      # for as long as a command runs
//! ```
//!
//! FILE is an object, or one with what its loader does (`warmq_bpf::Package`). Such a file names
//! this program in its first line, so that whoever starts schedulers by their programs can start
//! it. Nothing is computed here: who made the file knew the machine.
//!
//! It has nothing to do once the scheduler is there. It sleeps until the kernel's log says
//! something, so that it takes no time from what is measured; however it ends, the kernel takes its
//! scheduler out.

mod libbpf;
mod load;
mod log;
mod shape;

use std::fs;
use std::process::{Command, ExitCode};

use warmq_bpf::Package;

use crate::load::Attached;
use crate::log::{Ended, Log};

/// Why a scheduler is not attached, or no longer.
#[derive(Debug, thiserror::Error)]
enum AttachError {
    #[error("no file is named: warmq-attach FILE [COMMAND...]")]
    Usage,
    #[error("cannot {what}: {error}")]
    System { what: String, error: std::io::Error },
    #[error("{0}")]
    File(String),
    #[error("{what}: {error}")]
    Refused {
        what: String,
        error: libbpf_rs::Error,
    },
    #[error("the program {program} ended with {status}")]
    Run { program: String, status: i32 },
    #[error("EXIT: {0}")]
    ThrownOut(String),
}

impl AttachError {
    /// Of what the system does not do.
    fn system<E: Into<std::io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> AttachError {
        let what = what.into();
        |error| AttachError::System {
            what,
            error: error.into(),
        }
    }

    /// Of what libbpf or the kernel refuses.
    fn refused(what: impl Into<String>) -> impl FnOnce(libbpf_rs::Error) -> AttachError {
        let what = what.into();
        |error| AttachError::Refused { what, error }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    libbpf::keep();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            libbpf::print();
            eprintln!("warmq-attach: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), AttachError> {
    let [file, command @ ..] = arguments else {
        return Err(AttachError::Usage);
    };
    let bytes = fs::read(file).map_err(AttachError::system(format!("read {file}")))?;
    let package = Package::read(&bytes);
    let package = package.map_err(|why| AttachError::File(format!("{file}: {why}")))?;
    match command {
        [] => stay(&package),
        [program, arguments @ ..] => {
            let _attached = Attached::new(&package)?;
            let ended = Command::new(program).args(arguments).status();
            let ended = ended.map_err(AttachError::system(format!("start {program}")));
            ended.map(drop)
        }
    }
}

/// Keeps a scheduler attached until the kernel throws it out. One that is ended because a CPU has
/// come or gone is attached anew, as loaders do.
fn stay(package: &Package<'_>) -> Result<(), AttachError> {
    loop {
        let mut log = Log::from_now()?;
        let _attached = Attached::new(package)?;
        match log.ended()? {
            Ended::ToStartAnew => {}
            Ended::ThrownOut(why) => return Err(AttachError::ThrownOut(why)),
        }
    }
}
