//! Everything that can end a command early, as values; and what people see of it.

use std::io::{self, Write};
use std::process::ExitCode;

use warmq_bench::BenchError;
use warmq_experiment::{Difference, Problems};
use warmq_host::HostError;
use warmq_machine::MachineError;
use warmq_report::WriteError;
use warmq_vm::VmError;

use crate::exit::Exit;
use crate::snippet;

/// Why a command ended early.
#[derive(Debug)]
pub enum Failure {
    /// What was asked for cannot be meant: what is wrong, and the mend (may be empty).
    Usage(String, String),
    /// Experiments' files with something wrong in them.
    Problems(Vec<Problems>),
    /// A machine's file with something wrong in it, and its text.
    Machine(Box<MachineError>, String),
    /// Runs that gave no measurement: the worst of their exit codes, and a sentence each.
    Runs(Exit, Vec<String>),
    /// So many claims failed, under `--strict`.
    Claims(usize),
    /// Plans whose two runs differ.
    NotDeterministic(Vec<Difference>),
    /// The operating system refused: what was tried, its answer.
    System(String, String),
    /// This machine lacks something: what, and the mend (may be empty).
    Lacking(String, String),
    /// What a command in a guest ended with: its status, and a word on it if the guest failed.
    Guest(u8, String),
}

impl Failure {
    /// Something that the user can mend.
    pub fn usage(what: impl Into<String>, mend: impl Into<String>) -> Failure {
        Failure::Usage(what.into(), mend.into())
    }

    /// A refusal of the operating system, as the answer to `action`.
    pub fn system(action: impl Into<String>, error: &io::Error) -> Failure {
        Failure::System(action.into(), error.to_string())
    }

    /// The exit code, as a process ends with it.
    pub fn code(&self) -> ExitCode {
        match self {
            Failure::Guest(status, _) => ExitCode::from(*status),
            other => other.exit().into(),
        }
    }

    /// The exit code of ours; a guest's is the guest's business.
    fn exit(&self) -> Exit {
        match self {
            Failure::Usage(..) | Failure::Problems(_) | Failure::Machine(..) => Exit::BadInput,
            Failure::Runs(exit, _) => *exit,
            Failure::Claims(_) => Exit::ClaimFailed,
            Failure::NotDeterministic(_) => Exit::NotDeterministic,
            Failure::System(..) | Failure::Lacking(..) | Failure::Guest(..) => Exit::MachineCannot,
        }
    }

    /// Tells the user, on standard error. That it cannot be written to changes nothing.
    pub fn tell(&self) {
        let text = self.text();
        if !text.is_empty() {
            let _ = writeln!(io::stderr(), "{}", text.trim_end());
        }
    }

    fn text(&self) -> String {
        match self {
            Failure::Usage(what, mend) | Failure::Lacking(what, mend) if mend.is_empty() => {
                format!("warmq: {what}")
            }
            Failure::Usage(what, mend) | Failure::Lacking(what, mend) => {
                format!("warmq: {what}; {mend}")
            }
            Failure::Problems(files) => files.iter().map(snippet::problems).collect(),
            Failure::Machine(error, text) => snippet::machine(error, text),
            Failure::Runs(_, sentences) => told("no measurement from", sentences),
            Failure::Claims(1) => "warmq: 1 claim failed".to_owned(),
            Failure::Claims(count) => format!("warmq: {count} claims failed"),
            Failure::NotDeterministic(differences) => different(differences),
            Failure::System(action, answer) => format!("warmq: cannot {action}: {answer}"),
            Failure::Guest(_, word) if word.is_empty() => String::new(),
            Failure::Guest(_, word) => format!("warmq: {word}"),
        }
    }
}

/// More sentences than this say nothing new.
const MOST_TOLD: usize = 10;

fn told(lead: &str, sentences: &[String]) -> String {
    let shown = sentences.iter().take(MOST_TOLD);
    let mut lines: Vec<String> = shown.map(|it| format!("warmq: {lead} {it}")).collect();
    if sentences.len() > MOST_TOLD {
        lines.push(format!("warmq: … and {} more", sentences.len() - MOST_TOLD));
    }
    lines.join("\n")
}

fn different(differences: &[Difference]) -> String {
    let sentence = |it: &Difference| format!("{}: {} and then {}", it.plan, it.first, it.second);
    let sentences: Vec<String> = differences.iter().map(sentence).collect();
    told("two different results from", &sentences)
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

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Failure {
        match error {
            BenchError::Setting {
                field,
                value,
                problem,
                mend,
            } => {
                let option = field.replace('_', "-");
                Failure::usage(format!("--{option} {value}: {problem}"), mend)
            }
            BenchError::System {
                action,
                source,
                mend,
            } => Failure::System(action, format!("{source}; {mend}")),
            BenchError::Astray(_) | BenchError::Server(_) => {
                Failure::System("chat".to_owned(), error.to_string())
            }
            BenchError::TimeUp { problem, mend } => Failure::usage(problem, mend),
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
    fn long_lists_of_sentences_are_cut_with_a_word_on_how_many() {
        let sentences: Vec<String> = (0..13).map(|it| format!("run {it}")).collect();
        let text = told("no measurement from", &sentences);
        assert_eq!(text.lines().count(), MOST_TOLD + 1);
        assert!(text.ends_with("… and 3 more"), "{text}");
    }

    #[test]
    fn what_is_not_deterministic_has_a_code_of_its_own() {
        let failure = Failure::NotDeterministic(Vec::new());
        assert_eq!(failure.exit(), Exit::NotDeterministic);
    }
}
