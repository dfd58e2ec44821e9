//! `scx_warmq label`: an administrator names the data of threads that give no hints themselves.

mod map;
mod threads;

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use warmq_hint::{pack, unpack};
use warmq_units::printable;

use crate::options::Label;
use crate::refuse;
use crate::say;
use crate::stop::Stop;
use map::{Answer, Labels};
use threads::{Select, Thread};

/// How often `--follow` looks for new threads.
const FOLLOW: Duration = Duration::from_secs(1);
/// How many threads are named in a line.
const NAMED: usize = 8;

/// Why labels cannot be set or removed.
#[derive(Debug, thiserror::Error)]
pub enum LabelError {
    /// No thread matches.
    #[error(
        "no thread {0}; list the threads with: ps -eLo tid,pid,comm (names are cut to 15 characters)"
    )]
    Nobody(String),
    /// The pair of the largest numbers.
    #[error(
        "the pair of app 4294967295 and fragment 4294967295 is reserved: choose another number"
    )]
    Reserved,
    /// A label was not taken.
    #[error("thread {tid} cannot be labelled: {problem}")]
    Refused {
        /// The thread.
        tid: i32,
        /// What the kernel says.
        problem: String,
    },
}

/// A thread with a label.
#[derive(Debug, Serialize)]
struct Labelled {
    tid: i32,
    pid: i32,
    name: String,
    app: u32,
    fragment: u32,
}

/// Does what was asked for.
pub fn run(asked: &Label) -> anyhow::Result<ExitCode> {
    let labels = Labels::open()?;
    if asked.list {
        list(&labels, asked.json)?;
    } else if asked.remove {
        remove(&labels, &Select::new(asked))?;
    } else if let Some(fragment) = asked.fragment {
        let hint = pack(asked.app, fragment).ok_or(LabelError::Reserved)?;
        label(&labels, asked, hint)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn label(labels: &Labels, asked: &Label, hint: NonZeroU64) -> anyhow::Result<()> {
    let select = Select::new(asked);
    let stop = if asked.follow {
        Some(Stop::at_signals(None)?)
    } else {
        None
    };
    let threads = select.find(Path::new("/"))?;
    if threads.is_empty() && !asked.follow {
        return Err(LabelError::Nobody(select.words()).into());
    }
    let (fragment, app) = (asked.fragment.unwrap_or_default(), asked.app);
    let done = put(labels, &threads, hint)?;
    say::line(&format!(
        "{} as fragment {fragment} of app {app}",
        done.words()
    ));
    if refuse::loaded_scheduler(Path::new("/")).is_none_or(|name| !refuse::is_ours(&name)) {
        say::line("(no scx_warmq is running: the labels take effect when it is started)");
    }
    stop.map_or(Ok(()), |stop| follow(labels, &select, hint, &stop))
}

/// Labels new threads until it is stopped. Threads do not inherit labels, so each has to be found.
fn follow(
    labels: &Labels,
    select: &Select<'_>,
    hint: NonZeroU64,
    stop: &Stop,
) -> anyhow::Result<()> {
    say::line("new threads will be labelled every second, until Ctrl-C");
    while !stop.within(FOLLOW) {
        let done = put(labels, &select.find(Path::new("/"))?, hint)?;
        if !done.fresh.is_empty() {
            say::line(&done.words());
        }
    }
    Ok(())
}

/// Which labels were set.
#[derive(Default)]
struct Done {
    fresh: Vec<String>,
    before: usize,
}

impl Done {
    fn words(&self) -> String {
        let more = self.fresh.len().saturating_sub(NAMED);
        let named = self.fresh[..self.fresh.len() - more].join(", ");
        let names = match (named.as_str(), more) {
            ("", _) => String::new(),
            (named, 0) => format!(": {named}"),
            (named, more) => format!(": {named} and {more} more"),
        };
        let before = match self.before {
            0 => String::new(),
            before => format!(" ({before} already had the label)"),
        };
        let threads = if self.fresh.len() == 1 {
            "thread"
        } else {
            "threads"
        };
        format!("labelled {} {threads}{before}{names}", self.fresh.len())
    }
}

fn put(labels: &Labels, threads: &BTreeSet<Thread>, hint: NonZeroU64) -> Result<Done, LabelError> {
    let mut done = Done::default();
    for thread in threads {
        match labels.set(thread.tid, hint) {
            Answer::Changed => done.fresh.push(thread.to_string()),
            Answer::Same => done.before += 1,
            Answer::Gone => {}
            Answer::Refused(problem) => {
                return Err(LabelError::Refused {
                    tid: thread.tid,
                    problem,
                });
            }
        }
    }
    Ok(done)
}

fn remove(labels: &Labels, select: &Select<'_>) -> anyhow::Result<()> {
    let threads = select.find(Path::new("/"))?;
    if threads.is_empty() {
        return Err(LabelError::Nobody(select.words()).into());
    }
    let removed = threads
        .iter()
        .filter(|thread| labels.remove(thread.tid))
        .count();
    say::line(&format!(
        "removed {removed} labels ({} threads were checked)",
        threads.len()
    ));
    Ok(())
}

fn list(labels: &Labels, json: bool) -> anyhow::Result<()> {
    let all = threads::everybody(Path::new("/"))
        .into_iter()
        .filter_map(|thread| {
            let (app, fragment) = unpack(labels.get(thread.tid)?);
            Some(Labelled {
                tid: thread.tid,
                pid: thread.pid,
                name: printable(&thread.name).to_string(),
                app,
                fragment,
            })
        });
    let all: Vec<Labelled> = all.collect();
    say::line(&if json {
        serde_json::to_string_pretty(&all)?
    } else {
        table(&all)
    });
    Ok(())
}

fn table(all: &[Labelled]) -> String {
    if all.is_empty() {
        return "no thread has a label".to_owned();
    }
    let widths = all.iter().map(|row| row.name.chars().count());
    // The kernel's names have 15 bytes at most, and escapes make them longer.
    let width = widths.max().unwrap_or(0).max(15);
    let mut table = format!(
        "{:>8} {:>8} {:<width$} {:>10} {:>10}",
        "TID", "PID", "NAME", "APP", "FRAGMENT"
    );
    for Labelled {
        tid,
        pid,
        name,
        app,
        fragment,
    } in all
    {
        table += &format!("\n{tid:>8} {pid:>8} {name:<width$} {app:>10} {fragment:>10}");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_which_threads_it_labelled() {
        let done = |fresh: usize, before| {
            let fresh = (0..fresh).map(|tid| format!("{tid} (db)")).collect();
            Done { fresh, before }.words()
        };
        insta::assert_snapshot!([done(0, 0), done(1, 0), done(2, 3), done(10, 0)].join("\n"));
    }

    #[test]
    fn a_list_is_a_table() {
        let name = || "db-shard-1".to_owned();
        let all = [(1234, 7), (5, u32::MAX)].map(|(tid, fragment)| Labelled {
            tid,
            pid: 4,
            name: name(),
            app: 0,
            fragment,
        });
        insta::assert_snapshot!([table(&all), table(&[])].join("\n\n"));
    }
}
