//! What can be asked of the program.

use std::path::PathBuf;

use clap::Parser;

/// Record this machine by BPF, where tracefs cannot be had.
///
/// Records until standard input ends, or until SIGINT or SIGTERM. Says `ready` on standard error
/// when everything that happens is recorded. What it writes is for `warmq watch`, which starts it.
/// That needs root, or CAP_BPF and CAP_PERFMON, and a kernel with BTF.
#[derive(Debug, Parser)]
#[command(name = "warmq-record", version, about)]
pub struct Options {
    /// Write the recording into this file [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The buffer for each CPU, in KiB, rounded up to a power of two, 1 GiB at most: more where
    /// events are lost and memory is left.
    #[arg(long, value_name = "KIB", default_value_t = 8192)]
    pub buffer: u32,
}
