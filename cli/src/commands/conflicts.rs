//! `warmq conflicts`: which hot addresses of a process share the sets of a cache.

use std::path::PathBuf;

use clap::Args;
use warmq_units::printable;

use crate::conflicts::{self, Asked};
use crate::failure::Failure;
use crate::{files, output, typed};

const EXAMPLES: &str = "\
Examples:
  warmq conflicts 4711                          stacks and control blocks of its threads
  warmq conflicts 4711 --measure                with what visits of copies take on this machine
  warmq conflicts 4711 --symbol slots,4KB       and an array of the program
  warmq conflicts --after 5s -- ./server        start it, look at it after 5 s, end it
  warmq conflicts --blocks 0x0,16KB,4096        blocks of no process
  perf mem record -p 4711 -- sleep 5 && warmq conflicts --samples perf.data
  warmq conflicts 4711 --out page               with histograms by place in a page and by set";

/// Find which hot addresses of a process share the sets of which level of caches.
///
/// No counters are needed, so that it works on virtual machines, too. Stack pointers of all threads
/// are read from /proc, control blocks and the tops of fibers' stacks from the memory of the
/// process, which is neither stopped nor traced. That needs root, or the user of the process.
/// Printed are how the addresses lie in a page, how many of them each level can hold, the colors
/// that would help, and what visits of all in turn take on simulated caches of this
/// machine, before and after coloring (docs/coloring.md).
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Arguments {
    #[command(flatten)]
    asked: Asked,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
    /// Write conflicts.html, a page, and conflicts.json into this folder, too.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Looks, and prints what was found.
///
/// # Errors
/// No such process, no permission, names of nothing, a command that has ended by itself.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let asked = &arguments.asked;
    if asked.after.is_some() && asked.command.is_empty() {
        let help = "give the command after `--`, or leave the option out";
        return Err(Failure::usage("--after: no command is started", help));
    }
    let _taken = arguments.out.as_deref().map(files::folder).transpose()?;
    let found = conflicts::find(asked)?;
    match arguments.json {
        true => output::print_json(&found)?,
        false => output::print(&conflicts::text(&found))?,
    }
    let Some(folder) = &arguments.out else {
        return Ok(());
    };
    let words = std::env::args_os().skip_while(|word| word != "conflicts");
    let words = words
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned());
    let command = typed::line("conflicts", &[], &words.collect::<Vec<String>>());
    let page = folder.join("conflicts.html");
    files::write(&page, conflicts::page(&found, &command).as_bytes())?;
    let json = output::json_of(&found)?;
    files::write(
        &folder.join("conflicts.json"),
        format!("{json}\n").as_bytes(),
    )?;
    output::say(&format!("warmq: {}", printable(&page)));
    Ok(())
}
