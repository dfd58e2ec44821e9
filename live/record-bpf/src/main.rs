//! `warmq-record`: records what a running kernel says by BPF, where tracefs cannot be had.
//!
//! Purpose: to give the same recording as [`warmq_record::Recorder`] does, where tracefs is not
//! mounted and may not be, is masked, or is not in the kernel.
//!
//! Key decision: what a BPF program writes of an event has the form of an event of tracefs, with a
//! format to read it by (`table.rs`), so that it only has to be packed into pages, and everything
//! that reads a recording reads this one.
//!
//! Not here: what is done with a recording. `warmq watch` starts this program, closes its standard
//! input when it has seen enough, and reads the recording from its standard output.
//!
//! It is a program of its own because it needs clang and libbpf to be built, and `warmq` does not.

mod bpf_skel;
mod libbpf;
mod options;
mod program;
mod record;
mod refusal;
mod rings;
mod table;
mod wait;

use std::process::ExitCode;

use clap::Parser;

use crate::options::Options;

fn main() -> ExitCode {
    match record::run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            eprintln!("warmq-record: {refusal}");
            libbpf::said();
            ExitCode::from(refusal.code())
        }
    }
}
