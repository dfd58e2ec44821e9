//! Everything that can end a command early, as values; and what people see of it.

pub mod json;

use std::io;
use std::process::ExitCode;

use warmq_conflicts::ConflictsError;
use warmq_experiment::{Difference, NoThreads, NotDone, Problems};
use warmq_host::HostError;
use warmq_report::WriteError;
use warmq_units::printable;
use warmq_vm::VmError;
use warmq_walk::WalkError;

use crate::exit::Exit;
use crate::{machines, output, snippet};

/// Why a command ended early.
#[derive(Debug)]
pub enum Failure {
    /// What was asked for makes no sense: what is wrong, and how to fix it (may be empty).
    Usage(String, String),
    /// A file (or a line of one) that is not what was asked for: what is wrong, and how to fix it.
    File {
        /// Its name as it was given.
        file: String,
        /// What is wrong.
        what: String,
        /// How to fix it.
        help: String,
    },
    /// Files with something wrong in them.
    Problems(Vec<Problems>),
    /// Runs that gave no measurement: the worst of their exit codes, and a sentence each.
    Runs(Exit, Vec<String>),
    /// So many claims failed, under `--strict`.
    Claims(usize),
    /// Laws that do not hold, which the matrix shows.
    Judged(Exit),
    /// Plans whose two runs differ.
    NotDeterministic(Vec<Difference>),
    /// The operating system refused: what was tried, its answer.
    System(String, String),
    /// This machine lacks something: what, and what helps (may be empty).
    Lacking(String, String),
    /// How a command ended that was run in a guest or while it was recorded: its status, and a
    /// sentence if it was not the command that failed.
    Command(u8, String),
    /// Several of these, none of them of this kind; at least two.
    Several(Vec<Failure>),
}

impl Failure {
    /// Something that the user can fix.
    pub fn usage(what: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::Usage(what.into(), help.into())
    }

    /// A refusal of the operating system, as the answer to `action`.
    pub fn system(action: impl Into<String>, error: &io::Error) -> Failure {
        Failure::System(action.into(), error.to_string())
    }

    /// The exit code, as a process ends with it.
    pub fn code(&self) -> ExitCode {
        match self {
            Failure::Command(status, _) => ExitCode::from(*status),
            other => other.exit().into(),
        }
    }

    fn number(&self) -> i32 {
        match self {
            Failure::Command(status, _) => i32::from(*status),
            other => other.exit() as i32,
        }
    }

    /// The exit code of ours; a command's is its own business.
    fn exit(&self) -> Exit {
        match self {
            Failure::Several(all) => all[0].exit(),
            Failure::Usage(..) | Failure::File { .. } | Failure::Problems(_) => Exit::BadInput,
            Failure::Runs(exit, _) | Failure::Judged(exit) => *exit,
            Failure::Claims(_) => Exit::ClaimFailed,
            Failure::NotDeterministic(_) => Exit::NotDeterministic,
            Failure::System(..) | Failure::Lacking(..) | Failure::Command(..) => {
                Exit::MachineCannot
            }
        }
    }

    /// Reports the failure on standard error; if that cannot be written to, nothing changes.
    pub fn report(&self) {
        let text = match json::is_wanted() {
            true => json::of(self).to_string(),
            false => self.text(),
        };
        if !text.is_empty() {
            output::say(text.trim_end());
        }
    }

    fn text(&self) -> String {
        match self {
            Failure::Usage(what, help) | Failure::Lacking(what, help) if help.is_empty() => {
                format!("warmq: {what}")
            }
            Failure::Usage(what, help) | Failure::Lacking(what, help) => {
                format!("warmq: {what}; {help}")
            }
            Failure::File { file, what, help } => {
                format!("warmq: {}: {what}; {help}", printable(file))
            }
            Failure::Problems(files) => files.iter().map(snippet::problems).collect(),
            Failure::Runs(_, sentences) => listed("no measurement from", sentences),
            Failure::Judged(_) => String::new(),
            Failure::Claims(1) => "warmq: 1 claim failed".to_owned(),
            Failure::Claims(count) => format!("warmq: {count} claims failed"),
            Failure::NotDeterministic(differences) => different(differences),
            Failure::System(action, answer) => format!("warmq: cannot {action}: {answer}"),
            Failure::Command(_, word) if word.is_empty() => String::new(),
            Failure::Command(_, word) => format!("warmq: {word}"),
            Failure::Several(all) => {
                let texts = all.iter().map(|one| one.text().trim_end().to_owned());
                itertools::join(texts, "\n")
            }
        }
    }
}

/// All of `results`, or what is wrong in any of them.
///
/// # Errors
/// That.
pub fn all<T>(results: impl Iterator<Item = Result<T, Failure>>) -> Result<Vec<T>, Failure> {
    let (mut all, mut failed) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(one) => all.push(one),
            Err(failure) => failed.push(failure),
        }
    }
    match failed.len() {
        0 => Ok(all),
        1 => Err(failed.remove(0)),
        _ => Err(Failure::Several(failed)),
    }
}

/// More sentences than this say nothing new.
const MOST_SHOWN: usize = 10;

fn listed(lead: &str, sentences: &[String]) -> String {
    let shown = sentences.iter().take(MOST_SHOWN);
    let lines = shown.map(|sentence| format!("warmq: {lead} {sentence}"));
    let mut lines: Vec<String> = lines.collect();
    if sentences.len() > MOST_SHOWN {
        lines.push(format!(
            "warmq: … and {} more",
            sentences.len() - MOST_SHOWN
        ));
    }
    lines.join("\n")
}

fn different(differences: &[Difference]) -> String {
    let say = |two: &Difference| format!("{}: {} and then {}", two.plan, two.first, two.second);
    let sentences: Vec<String> = differences.iter().map(say).collect();
    listed("two different results from", &sentences)
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Failure {
        Failure::Problems(vec![problems])
    }
}

impl From<NoThreads> for Failure {
    fn from(error: NoThreads) -> Failure {
        let help = "give it fewer with --jobs, or allow more processes (ulimit -u)";
        Failure::Lacking(error.to_string(), help.to_owned())
    }
}

impl From<NotDone> for Failure {
    fn from(why: NotDone) -> Failure {
        match why {
            NotDone::Usage(what, help) => Failure::Usage(what, help),
            NotDone::File { file, what, help } => Failure::File { file, what, help },
            NotDone::Problems(problems) => Failure::Problems(problems),
            NotDone::Part(kind, name, error) => machines::not_found(kind, &name, error),
            NotDone::Unreadable(name, error) => Failure::system(format!("read {name}"), &error),
            NotDone::Threads(error) => error.into(),
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Failure {
        Failure::System("write the rows".to_owned(), error.to_string())
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Failure {
        Failure::System("describe this machine".to_owned(), error.to_string())
    }
}

impl From<WalkError> for Failure {
    fn from(error: WalkError) -> Failure {
        match error {
            WalkError::Setting {
                field,
                value,
                problem,
                fix: help,
            } => {
                let option = field.replace('_', "-");
                Failure::usage(format!("--{option} {value}: {problem}"), help)
            }
            WalkError::System {
                action,
                source,
                fix: help,
            } => Failure::System(action, format!("{source}; {help}")),
            WalkError::Stacks(error) => Failure::usage(error.what(), error.fix()),
        }
    }
}

impl From<ConflictsError> for Failure {
    fn from(error: ConflictsError) -> Failure {
        match error {
            ConflictsError::Input { what, fix } => Failure::usage(what, fix),
            ConflictsError::File {
                file,
                what,
                fix: help,
            } => Failure::File { file, what, help },
            ConflictsError::Gone { .. } | ConflictsError::NoMemory { .. } => {
                Failure::usage(error.to_string(), "")
            }
            ConflictsError::Refused { .. } => Failure::Lacking(error.to_string(), String::new()),
        }
    }
}

impl From<VmError> for Failure {
    fn from(error: VmError) -> Failure {
        match error {
            VmError::Setting { .. } => Failure::usage(error.to_string(), ""),
            VmError::System { action, source } => Failure::system(action, &source),
            VmError::Missing { what, help } => Failure::Lacking(what, help),
            VmError::Tool { .. } => Failure::Lacking(error.to_string(), String::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_of_sentences_are_cut_and_the_rest_is_counted() {
        let sentences: Vec<String> = (0..13).map(|run| format!("run {run}")).collect();
        let text = listed("no measurement from", &sentences);
        assert_eq!(text.lines().count(), MOST_SHOWN + 1);
        assert!(text.ends_with("… and 3 more"), "{text}");
    }

    #[test]
    fn what_is_not_deterministic_has_a_code_of_its_own() {
        let failure = Failure::NotDeterministic(Vec::new());
        assert_eq!(failure.exit(), Exit::NotDeterministic);
    }
}
