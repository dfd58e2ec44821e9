//! The option that says who records.

use clap::{Args, ValueEnum};

/// `--recorder`, of every command that records.
#[derive(Args, Debug)]
pub struct Recorder {
    /// Who records: tracefs, BPF (the program warmq-record), or BPF where tracefs cannot be had.
    #[arg(
        long = "recorder",
        value_name = "tracefs|bpf|auto",
        value_enum,
        default_value_t,
        hide_possible_values = true
    )]
    pub choice: Choice,
}

/// Who is to record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// tracefs, and BPF where it cannot be had.
    #[default]
    Auto,
    /// The kernel's tracing file system.
    Tracefs,
    /// The program warmq-record, beside this one or on PATH.
    Bpf,
}
