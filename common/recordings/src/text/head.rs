//! What stands before the events of a text: `perf script --header` says of which machine it is.

use warmq_trace::Header;

use crate::machine::{CacheOf, Seen, cpus_of, size_of};

/// What is known of a machine.
#[derive(Clone, Debug, Default)]
pub(super) struct Head {
    release: String,
    /// The command that recorded.
    pub command: String,
    machine: Seen,
    /// Events that tracefs had, and those that it wrote over.
    overwritten: u64,
}

impl Head {
    /// Takes in a line, which may be anything.
    pub fn learn(&mut self, line: &str) {
        let Some(line) = line.strip_prefix('#').map(str::trim) else {
            return;
        };
        let value = |key: &str| {
            let rest = line.strip_prefix(key)?.trim_start();
            Some(rest.strip_prefix(':')?.trim().to_owned())
        };
        if let Some(release) = value("os release") {
            self.release = release;
        } else if let Some(processor) = value("cpudesc") {
            self.machine.processor = processor;
        } else if let Some(command) = value("cmdline") {
            self.command = command;
        } else if let Some(cache) = cache(line) {
            self.machine.caches.push(cache);
        } else if let Some(core) = core(line) {
            self.machine.cores.push(core);
        } else if let Some(counts) = value("entries-in-buffer/entries-written") {
            let counts = counts.split([' ', '/']).map(|number| number.parse().ok());
            let mut counts = counts.map(Option::<u64>::unwrap_or_default);
            let (kept, written) = (counts.next(), counts.next());
            self.overwritten = written.unwrap_or(0).saturating_sub(kept.unwrap_or(0));
        }
    }

    /// What a recording is of.
    pub fn header(&self) -> Header {
        let mut header = Header {
            world: "host".to_owned(),
            kernel: self.release.clone(),
            ..Header::default()
        };
        self.machine.put_into(&mut header);
        header
    }

    /// What is to be known: a sentence each.
    pub fn notes(&self) -> Option<String> {
        let count = self.overwritten;
        (count > 0).then(|| format!("{count} events before the first were written over"))
    }
}

/// `CPU 0: Core ID 0, Socket ID 0`, with a die between where there are several.
fn core(line: &str) -> Option<(u32, u32)> {
    let (_, core) = line.strip_prefix("CPU ")?.split_once(": Core ID ")?;
    let (core, socket) = core.split_once(',')?;
    let (_, socket) = socket.rsplit_once("Socket ID ")?;
    Some((core.trim().parse().ok()?, socket.trim().parse().ok()?))
}

/// `L2 Unified             1024K [0-1]`.
fn cache(line: &str) -> Option<CacheOf> {
    let (level, rest) = line.strip_prefix('L')?.split_once(' ')?;
    let (kind, rest) = rest.trim_start().split_once(' ')?;
    let (size, list) = rest.split_once('[')?;
    Some(CacheOf {
        level: level.parse().ok()?,
        size: size_of(size.trim()).unwrap_or(0),
        kind: kind.to_owned(),
        cpus: cpus_of(list.strip_suffix(']')?),
        ..CacheOf::default()
    })
}
