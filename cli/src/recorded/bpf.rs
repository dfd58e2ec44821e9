//! `warmq-record`: the program that records by BPF. It is not part of this one, which links no
//! libbpf.
//!
//! It records until its standard input ends, so it ends with this process, however that dies. It is
//! in a process group of its own, so that Ctrl-C does not reach it.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};

use warmq_record::Recording;
use warmq_units::printable;

use super::recorder::Stopped;
use crate::failure::Failure;
use crate::worlds::programs;

/// Its name.
const PROGRAM: &str = "warmq-record";
/// What its lines on standard error begin with.
const SAYS: &str = "warmq-record: ";

/// The program, while it records.
#[derive(Debug)]
pub struct Bpf {
    child: Child,
    said: BufReader<ChildStderr>,
}

/// Why it does not record, and what helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub why: String,
    pub fix: String,
}

impl Bpf {
    /// Starts it: what happens after the return is recorded. `buffer_kb` is for each CPU.
    ///
    /// # Errors
    /// It is not there, or does not record.
    pub fn start(buffer_kb: u32) -> Result<Bpf, Refused> {
        let program = programs::find(PROGRAM).ok_or_else(absent)?;
        let started = Command::new(&program)
            .arg(format!("--buffer={buffer_kb}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn();
        let mut child = started.map_err(|error| Refused {
            why: format!("cannot start {}: {error}", printable(&program)),
            fix: String::new(),
        })?;
        let said = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut bpf = Bpf { child, said };
        let mut first = String::new();
        // One that cannot be read is one that says nothing.
        let _ = bpf.said.read_line(&mut first);
        match first.strip_prefix(SAYS).map(str::trim_end) {
            Some("ready") => Ok(bpf),
            Some(why) => Err(refused(why)),
            None => Err(Refused {
                why: format!("{} says nothing that is understood", printable(&program)),
                fix: "use the warmq-record that was built with this warmq".to_owned(),
            }),
        }
    }

    /// Ends it, and takes what it recorded.
    ///
    /// # Errors
    /// It failed meanwhile.
    pub fn stop(mut self) -> Result<Stopped, Failure> {
        drop(self.child.stdin.take());
        let (mut bytes, mut said) = (Vec::new(), String::new());
        let mut out = self.child.stdout.take().expect("it is piped");
        let read = out.read_to_end(&mut bytes);
        read.map_err(|error| Failure::system("read what warmq-record recorded", &error))?;
        let read = self.said.read_to_string(&mut said);
        read.map_err(|error| Failure::system("read what warmq-record says", &error))?;
        let mut lines = said.lines().filter_map(|line| line.strip_prefix(SAYS));
        let Some(last) = lines.next_back() else {
            let what = "warmq-record ended without a word; nothing was recorded";
            return Err(Failure::Lacking(what.to_owned(), String::new()));
        };
        let Some(facts) = last.strip_prefix("stopped: ") else {
            let Refused { why, fix } = refused(last);
            return Err(Failure::Lacking(format!("warmq-record failed: {why}"), fix));
        };
        let recording = Recording::from_bytes(&bytes);
        let recording =
            recording.map_err(|error| Failure::Lacking(error.to_string(), String::new()))?;
        Ok(Stopped {
            recording,
            cpu_ns: fact(facts, "cpu_ns"),
            most_bytes: fact(facts, "most_bytes"),
            full: fact(facts, "full") != 0,
        })
    }
}

impl Drop for Bpf {
    fn drop(&mut self) {
        // It has ended, or nobody wants what it recorded.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn absent() -> Refused {
    Refused {
        why: "there is no program warmq-record beside warmq or on PATH".to_owned(),
        fix: "build it (cargo build -p warmq-record-bpf)".to_owned(),
    }
}

/// `WHY; FIX`.
fn refused(text: &str) -> Refused {
    let (why, fix) = text.rsplit_once("; ").unwrap_or((text, ""));
    Refused {
        why: why.to_owned(),
        fix: fix.to_owned(),
    }
}

/// `cpu_ns=5 most_bytes=7`: the number of that name; 0 if there is none.
fn fact(facts: &str, name: &str) -> u64 {
    let mut facts = facts.split_whitespace();
    let value = facts.find_map(|fact| fact.strip_prefix(name)?.strip_prefix('='));
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_says_is_understood() {
        let facts = "cpu_ns=5 most_bytes=70 full=1";
        let read = ["cpu_ns", "most_bytes", "full", "cpu"].map(|name| fact(facts, name));
        assert_eq!(read, [5, 70, 1, 0]);
        let refused = refused("this process may not use BPF (a; b); run as root");
        assert_eq!(refused.why, "this process may not use BPF (a; b)");
        assert_eq!(refused.fix, "run as root");
    }
}
