//! `warmq completions`: a script that teaches a shell our options.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output;

/// Write completions for a shell.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Which shell.
    shell: Shell,
}

/// Writes the script to standard output.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut command = crate::arguments::Arguments::command();
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "warmq", &mut script);
    output::write(|out| out.write_all(&script))
}
