//! Why nothing was recorded, and what helps.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use warmq_output::Refused;
use warmq_record::RecordError;

/// Why nothing was recorded.
#[derive(Debug, Error)]
pub enum Refusal {
    /// The recording would fill a terminal.
    #[error("standard output is a terminal; give a file with --out FILE")]
    Terminal,
    /// This kernel does not describe its types, or not to this process.
    #[error(
        "cannot read {}: {source}; use a kernel with CONFIG_DEBUG_INFO_BTF=y",
        warmq_units::printable(path)
    )]
    NoBtf {
        /// Where it would.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// This process may not use BPF.
    #[error(
        "this process may not use BPF ({task}: {why}); run as root, or with CAP_BPF and CAP_PERFMON"
    )]
    NotAllowed {
        /// What was attempted.
        task: &'static str,
        /// The system's answer.
        why: String,
    },
    /// There is no memory for the buffers.
    #[error("no memory for a buffer of {bytes} bytes for each CPU: {why}; give less --buffer")]
    NoMemory {
        /// The size of a buffer.
        bytes: u32,
        /// The system's answer.
        why: String,
    },
    /// BPF failed otherwise.
    #[error("cannot {task}: {why}; record by tracefs, or on another kernel")]
    Bpf {
        /// What was attempted.
        task: &'static str,
        /// The system's answer.
        why: String,
    },
    /// The recording has no place.
    #[error("cannot write the recording to {name}: {why}")]
    Output {
        /// The file, as it can be shown.
        name: String,
        /// Why not.
        why: Refused,
    },
    /// The operating system failed.
    #[error("cannot {task}: {source}")]
    System {
        /// What was attempted.
        task: String,
        /// The system's answer.
        source: io::Error,
    },
    /// What was recorded is no recording.
    #[error(transparent)]
    Recording(#[from] RecordError),
}

impl Refusal {
    /// The exit code, as `warmq` has them: 2 for what was asked wrongly, 6 for what this machine
    /// cannot do.
    pub fn code(&self) -> u8 {
        match self {
            Refusal::Terminal => 2,
            _ => 6,
        }
    }

    /// libbpf's answer to `task`, for `map_err`.
    pub fn of_bpf(task: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Refusal {
        move |error| {
            let why = error.to_string();
            match error.kind() {
                libbpf_rs::ErrorKind::PermissionDenied => Refusal::NotAllowed { task, why },
                _ => Refusal::Bpf { task, why },
            }
        }
    }

    /// The system's answer to `task`, for `map_err`.
    pub fn system<E: Into<io::Error>>(task: impl Into<String>) -> impl FnOnce(E) -> Refusal {
        let task = task.into();
        move |source| Refusal::System {
            task,
            source: source.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_says_what_helps() {
        let denied = || libbpf_rs::Error::from_raw_os_error(1);
        let all = [
            Refusal::Terminal,
            Refusal::NoBtf {
                path: "/sys/kernel/btf/vmlinux".into(),
                source: io::Error::from(io::ErrorKind::NotFound),
            },
            Refusal::of_bpf("load the programs")(denied()),
            Refusal::NoMemory {
                bytes: 8 << 20,
                why: "out of memory".to_owned(),
            },
            Refusal::of_bpf("load the programs")(libbpf_rs::Error::from_raw_os_error(22)),
            Refusal::system("write the recording")(io::Error::from(io::ErrorKind::StorageFull)),
        ];
        let lines = all
            .iter()
            .map(|refusal| format!("{} {refusal}\n", refusal.code()));
        insta::assert_snapshot!(lines.collect::<String>());
    }
}
