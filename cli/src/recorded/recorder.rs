//! Who records: tracefs, or BPF where that cannot be had.

use warmq_record::{RecordError, Recorder, Recording, Wanted};
use warmq_units::printable;

use super::bpf::{Bpf, Refused};
use super::options::Choice;
use super::sweeper::Sweeper;
use crate::failure::Failure;

/// A recorder that runs.
pub struct Running {
    by: By,
    /// Why it is another one than the usual.
    pub note: Option<String>,
}

enum By {
    // The recorder is stopped before the process that would sweep after it.
    Tracefs(Box<Recorder>, Sweeper),
    Bpf(Bpf),
}

/// A recording, and what making it took.
#[derive(Debug)]
pub struct Stopped {
    pub recording: Recording,
    /// CPU time of the recorder outside of this process, in ns.
    pub cpu_ns: u64,
    /// How many bytes could have been kept at most.
    pub most_bytes: u64,
    /// Whether no more could be kept before the end.
    pub full: bool,
}

impl Running {
    /// Starts recording: what happens after the return is recorded.
    ///
    /// # Errors
    /// A machine that cannot be recorded.
    pub fn start(choice: Choice, wanted: &Wanted) -> Result<Running, Failure> {
        let bpf = || Bpf::start(wanted.buffer_kb_per_cpu).map(By::Bpf);
        let (by, note) = match choice {
            Choice::Tracefs => (tracefs(wanted).map_err(|error| cannot(&error))?, None),
            Choice::Bpf => (bpf().map_err(|refused| cannot_by_bpf(&refused))?, None),
            Choice::Auto => match tracefs(wanted) {
                Err(error @ RecordError::Refused { .. }) => {
                    let by = bpf().map_err(|refused| neither(&error, &refused))?;
                    let why = reason(&error);
                    let note = format!("tracefs cannot be had ({why}): recorded by BPF");
                    (by, Some(note))
                }
                tried => (tried.map_err(|error| cannot(&error))?, None),
            },
        };
        Ok(Running { by, note })
    }

    /// Stops recording.
    ///
    /// # Errors
    /// The recorder failed.
    pub fn stop(self) -> Result<Stopped, Failure> {
        match self.by {
            By::Tracefs(recorder, _sweeper) => {
                let recording = recorder.stop().map_err(|error| cannot(&error))?;
                Ok(Stopped {
                    cpu_ns: 0,
                    most_bytes: recording.most_size() as u64,
                    full: recording.was_full(),
                    recording,
                })
            }
            By::Bpf(bpf) => bpf.stop(),
        }
    }
}

fn tracefs(wanted: &Wanted) -> Result<By, RecordError> {
    let sweeper = Sweeper::start();
    Ok(By::Tracefs(Box::new(Recorder::start(wanted)?), sweeper))
}

/// Why tracefs refuses, with the file.
fn reason(error: &RecordError) -> String {
    match error {
        RecordError::Refused { path, why, .. } => format!("{}: {why}", printable(path)),
        other => other.to_string(),
    }
}

/// What this machine refuses, and what helps.
fn cannot(error: &RecordError) -> Failure {
    match error {
        RecordError::Refused { .. } => Failure::Lacking(
            format!("this machine cannot be recorded: {}", reason(error)),
            "run it as root (sudo warmq watch), on a kernel with CONFIG_FTRACE".to_owned(),
        ),
        RecordError::System { .. } | RecordError::Damaged { .. } => {
            Failure::Lacking(error.to_string(), String::new())
        }
    }
}

fn cannot_by_bpf(refused: &Refused) -> Failure {
    let what = format!("this machine cannot be recorded by BPF: {}", refused.why);
    Failure::Lacking(what, refused.fix.clone())
}

/// Both reasons, and what helps.
fn neither(error: &RecordError, refused: &Refused) -> Failure {
    let what = format!(
        "this machine cannot be recorded: by tracefs: {}; by BPF: {}",
        reason(error),
        refused.why
    );
    let mut fix = "run it as root (sudo warmq watch), on a kernel with CONFIG_FTRACE".to_owned();
    if !refused.fix.is_empty() {
        fix.push_str(&format!("; or, for BPF: {}", refused.fix));
    }
    Failure::Lacking(what, fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied() -> RecordError {
        RecordError::Refused {
            path: "/sys/kernel/tracing".into(),
            why: "permission denied".to_owned(),
            fix: String::new(),
        }
    }

    fn text(failure: Failure) -> String {
        let Failure::Lacking(what, fix) = failure else {
            panic!("it is what the machine lacks");
        };
        format!("{what}\n{fix}")
    }

    #[test]
    fn a_refusal_names_the_reasons_and_the_fix() {
        let refused = Refused {
            why: "cannot read /sys/kernel/btf/vmlinux: no such file".to_owned(),
            fix: "use a kernel with CONFIG_DEBUG_INFO_BTF=y".to_owned(),
        };
        let all = [
            cannot(&denied()),
            cannot_by_bpf(&refused),
            neither(&denied(), &refused),
        ];
        let texts: Vec<String> = all.into_iter().map(text).collect();
        insta::assert_snapshot!(texts.join("\n"));
    }
}
