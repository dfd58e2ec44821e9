//! The control messages of client and server, one line of JSON each.
//!
//! The client orders ([`Order`]), the server answers that it listens, and, once everybody is
//! connected, that it is ready. Any further line from the client, or the end of its lines, ends the
//! server, which then tells what it did.

use std::io::{self, BufRead, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::compare::{Mode, Usage};
use crate::error::BenchError;

use super::settings::Case;

/// What the server is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    pub case: Case,
    pub mode: Mode,
    /// Each connection starts with it, so that no other program is taken for a user.
    pub token: u64,
}

/// What the server says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// It listens on this port of the loopback.
    Listening(u16),
    /// All users are connected.
    Ready,
    /// What it did.
    Ended(Account),
    /// Why it gave up.
    Failed(String),
}

/// What the server did between being ready and its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Account {
    /// Messages that users sent.
    pub read: u64,
    /// Messages that it sent to users.
    pub written: u64,
    /// CPU time and switches.
    pub usage: Usage,
    /// Hints that a scheduler heard.
    pub heard: u64,
}

const MEND: &str = "run it again, and report it if it comes again";

pub(super) fn say(out: &mut dyn Write, words: &impl Serialize) -> Result<(), BenchError> {
    let mut line = serde_json::to_string(words).expect("plain data becomes JSON");
    line.push('\n');
    let said = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    said.map_err(|error| BenchError::system("speak to the other process", error, MEND))
}

/// The next line.
pub(super) fn hear<T: DeserializeOwned>(input: &mut dyn BufRead) -> Result<T, BenchError> {
    let mut line = String::new();
    let heard = input.read_line(&mut line).and_then(|length| match length {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => serde_json::from_str(&line).map_err(io::Error::from),
    });
    heard.map_err(|error| BenchError::system("hear from the other process", error, MEND))
}

/// Waits for any line, or for the end of them all.
pub(super) fn wait_for_end(input: &mut dyn BufRead) {
    // A line that cannot be read is an end as well.
    let _ = input.read_line(&mut String::new());
}
