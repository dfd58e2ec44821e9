//! `warmq man`: the manual, from the same words as the help.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory};
use clap_mangen::Man;

use crate::failure::Failure;
use crate::output;

/// Write the manual page.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Write a page for each command into this folder [default: one page to standard output].
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Writes the main page to standard output, or all pages into a folder.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let command = crate::arguments::Arguments::command();
    match &arguments.folder {
        None => output::write(|out| Man::new(command).render(&mut &mut *out)),
        Some(folder) => pages(command, folder),
    }
}

fn pages(command: clap::Command, folder: &Path) -> Result<(), Failure> {
    let written = fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command.disable_help_subcommand(true), folder));
    let action = || format!("write the manual into {}", folder.display());
    written.map_err(|error| Failure::system(action(), &error))?;
    output::say(&format!("warmq: the manual is in {}", folder.display()));
    Ok(())
}
