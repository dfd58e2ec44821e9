//! The kernel's log, which says of every scheduler why it was thrown out, also of those that do not
//! record it themselves.
//!
//! ```text
//! sched_ext: BPF scheduler "simple" disabled (runtime error)
//! sched_ext: simple: bad queue
//! ```

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use crate::AttachError;

const FILE: &str = "/dev/kmsg";
/// No record is longer.
const LONGEST: usize = 8 << 10;
/// What lines of sched_ext begin with.
const OURS: &str = "sched_ext: ";
/// How a line says that a scheduler is no longer there.
const GONE: &str = "\" disabled (";
/// The reason where a CPU has come or gone (`SCX_EXIT_UNREG_KERN`).
const ANEW: &str = "unregistered from the main kernel";
/// How long the kernel may take to say all of why it has thrown a scheduler out.
const MOMENT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// How a scheduler ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// Since a CPU has come or gone: its loader starts it anew.
    ToStartAnew,
    /// Why.
    ThrownOut(String),
}

/// The log from a time on.
pub struct Log(File);

impl Log {
    /// From now on.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn from_now() -> Result<Log, AttachError> {
        let opened = File::options()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(FILE);
        let end = opened.and_then(|mut file| file.seek(SeekFrom::End(0)).map(|_| file));
        end.map(Log)
            .map_err(AttachError::system(format!("read {FILE}")))
    }

    /// Waits until it says that a scheduler has gone, and why.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn ended(&mut self) -> Result<Ended, AttachError> {
        let mut said: Vec<String> = Vec::new();
        loop {
            let is_gone = said.iter().any(|line| line.contains(GONE));
            if !self.waits(is_gone.then_some(&MOMENT))? {
                return Ok(ended(&said));
            }
            while let Some(record) = self.record()? {
                said.extend(text(&record).map(str::to_owned));
            }
        }
    }

    /// Whether there is something to read, now or within a time.
    fn waits(&self, time: Option<&Timespec>) -> Result<bool, AttachError> {
        let mut files = [PollFd::new(&self.0, PollFlags::IN)];
        let ready = poll(&mut files, time);
        ready
            .map(|count| count > 0)
            .map_err(AttachError::system(format!("wait for {FILE}")))
    }

    /// The next record, if there is one. Those that were overwritten are left out.
    fn record(&mut self) -> Result<Option<String>, AttachError> {
        let mut bytes = [0; LONGEST];
        loop {
            match self.0.read(&mut bytes) {
                Ok(count) => {
                    return Ok(Some(String::from_utf8_lossy(&bytes[..count]).into_owned()));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                Err(error) => return Err(AttachError::system(format!("read {FILE}"))(error)),
            }
        }
    }
}

/// What a record says of sched_ext: `6,339,5140900,-;sched_ext: ...`.
fn text(record: &str) -> Option<&str> {
    let (_, text) = record.split_once(';')?;
    text.lines().next()?.strip_prefix(OURS)
}

/// How a scheduler ended of which these lines tell.
fn ended(lines: &[String]) -> Ended {
    let from = lines.iter().position(|line| line.contains(GONE));
    let lines = &lines[from.unwrap_or(0)..];
    match lines.first() {
        Some(first) if first.contains(ANEW) => Ended::ToStartAnew,
        _ => Ended::ThrownOut(lines.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end_of(records: &[&str]) -> Ended {
        let lines = records.iter().filter_map(|record| text(record));
        ended(&lines.map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn why_a_scheduler_was_thrown_out_is_in_the_lines_after_its_end() {
        let records = [
            "6,339,5140900,-;sched_ext: BPF scheduler \"simple\" enabled\n",
            "4,340,5140950,-;random: crng init done\n",
            "3,341,5141000,-;sched_ext: BPF scheduler \"simple\" disabled (runtime error)\n SUBSYSTEM=x\n",
            "3,342,5141001,-;sched_ext: simple: bad queue\n",
        ];
        let why = "BPF scheduler \"simple\" disabled (runtime error); simple: bad queue";
        assert_eq!(end_of(&records), Ended::ThrownOut(why.to_owned()));
    }

    #[test]
    fn one_that_ends_since_a_cpu_has_gone_starts_anew() {
        let record = "6,1,2,-;sched_ext: BPF scheduler \"simple\" disabled \
                      (unregistered from the main kernel)\n";
        assert_eq!(end_of(&[record]), Ended::ToStartAnew);
    }
}
