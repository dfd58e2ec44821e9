//! `warmq man`: the manual, from the same words as the help.

use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory};
use clap_mangen::Man;
use warmq_units::printable;

use crate::failure::Failure;
use crate::{files, output};

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
    let _taken = files::folder(folder)?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    page(&command, folder)?;
    output::say(&format!("warmq: the manual is in {}", printable(folder)));
    Ok(())
}

/// The page of a command, and those of its own commands.
fn page(command: &clap::Command, folder: &Path) -> Result<(), Failure> {
    let man = Man::new(command.clone());
    let path = folder.join(man.get_filename());
    let mut text = Vec::new();
    man.render(&mut text)
        .map_err(|error| files::refused(&path, &error))?;
    files::write(&path, &text)?;
    let mut shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    shown.try_for_each(|sub| page(sub, folder))
}
