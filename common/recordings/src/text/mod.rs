//! Text of events, a line each: of tracefs' `trace` file, of `trace-cmd report` and of
//! `perf script`. Whatever stands between them (stacks, heads of tables) is passed over.

mod event;
mod head;
mod line;
#[cfg(test)]
mod tests;
mod values;

use std::collections::{BTreeMap, VecDeque};

use warmq_trace::Header;
use warmq_units::CpuId;

use crate::contents::Contents;
use crate::damage::Damage;
use crate::event::{Event, Item, Said, Thread, What};
use crate::input::{Input, Stream};
use crate::paths::{Paths, aside};
use crate::source::Source;
use event::Known;
use head::Head;
pub(crate) use line::Line;

/// No line is read further than this, in bytes.
const LONGEST: usize = 1 << 16;
/// No more names of other events are kept.
const MOST_OTHERS: usize = 1000;

/// A text that is being read.
pub(crate) struct Text {
    lines: Lines,
    head: Head,
    events: Events,
    seen: Seen,
    /// The instance of the first event: others are left out.
    instance: Option<String>,
    last_ns: u64,
}

/// What lines of events say.
#[derive(Default)]
struct Events {
    said: VecDeque<Said>,
    paths: Paths,
    /// Events that are not read.
    others: BTreeMap<String, u64>,
    /// Of the process of each thread, the last that was said.
    processes: BTreeMap<u32, u32>,
}

impl Text {
    /// A text, whose first lines are read.
    ///
    /// # Errors
    /// The clock of its first event counts no time.
    pub fn open(input: Input) -> Result<Text, Damage> {
        let mut text = Text {
            lines: Lines {
                stream: input.from(0, u64::MAX),
                line: Vec::new(),
            },
            head: Head::default(),
            events: Events::default(),
            seen: Seen::default(),
            instance: None,
            last_ns: 0,
        };
        while text.events.said.is_empty() && text.read_line()? {}
        Ok(text)
    }

    /// Reads a line. False at the end.
    fn read_line(&mut self) -> Result<bool, Damage> {
        let offset = self.lines.stream.offset();
        let Some(bytes) = self.lines.next()? else {
            return Ok(false);
        };
        let text = String::from_utf8_lossy(bytes);
        if let Some(line) = Line::parse(&text) {
            let Some(ns) = line.ns else {
                let what =
                    "its clock counts no time: write `mono` into trace_clock and record again";
                return Err(Damage::at(offset, what));
            };
            let instance = self
                .instance
                .get_or_insert_with(|| line.instance.to_owned());
            if *instance != line.instance {
                self.seen.of_others += 1;
                return Ok(true);
            }
            self.seen.events += 1;
            self.seen.back += u64::from(ns < self.last_ns);
            self.last_ns = ns;
            self.events.see(ns, &line);
        } else if let Some((cpu, events)) = line::lost(&text) {
            let (ns, item) = (self.last_ns, Item::Lost(events));
            self.events.said.push_back(Said { ns, cpu, item });
        } else {
            self.seen.strange += u64::from(Line::is_like_one(&text));
            self.seen.option = self.seen.option.or_else(|| line::option(&text));
            self.head.learn(&text);
        }
        Ok(true)
    }
}

impl Events {
    fn see(&mut self, ns: u64, line: &Line<'_>) {
        let Events {
            said,
            paths,
            others,
            processes,
        } = self;
        let at = (ns, line.cpu);
        if let (Some(tid), Some(tgid)) = (line.tid, line.tgid)
            && tid != 0
            && processes.insert(tid, tgid) != Some(tgid)
        {
            let thread = Thread {
                comm: line.comm,
                ..Thread::of(tid)
            };
            said.push_back(aside(at, What::Process { thread, tgid }));
        }
        let what = match event::of(line.event, line.values, line.tid) {
            Some(Known::Event(what)) => what,
            Some(Known::Grouped { tid, path }) => {
                let group = paths.number(path, at, said);
                What::Grouped { tid, group }
            }
            None => {
                if let Some(count) = others.get_mut(line.event) {
                    *count += 1;
                } else if others.len() < MOST_OTHERS {
                    others.insert(line.event.to_owned(), 1);
                }
                return;
            }
        };
        let event = Event {
            tid: line.tid,
            context: line.context,
            what,
        };
        let (cpu, item) = (line.cpu, Item::Event(event));
        said.push_back(Said { ns, cpu, item });
    }
}

impl Source for Text {
    fn header(&self) -> Header {
        self.head.header()
    }

    fn next(&mut self) -> Result<Option<Said>, Damage> {
        loop {
            if let Some(said) = self.events.said.pop_front() {
                return Ok(Some(said));
            }
            if !self.read_line()? {
                return Ok(None);
            }
        }
    }

    fn describe(&self, contents: &mut Contents) {
        contents.command.clone_from(&self.head.command);
        for (name, count) in &self.events.others {
            contents.others.insert(name.clone(), *count);
        }
        contents.notes.extend(self.head.notes());
        self.seen.describe(contents);
    }
}

/// What lines there were.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    events: u64,
    /// The option with which a line was written that is none of an event.
    option: Option<&'static str>,
    /// Of trace instances that are left out.
    of_others: u64,
    /// With a time, and none of an event as any tool prints it.
    strange: u64,
    /// Whose time is before that of the line before.
    back: u64,
}

/// Of so many lines one may go back in time: tools put events in order, but for a few.
const ONE_BACK_OF: u64 = 100;

impl Seen {
    fn describe(&self, contents: &mut Contents) {
        contents.option = self.option.filter(|_| self.events == 0);
        if self.of_others > 0 {
            let (lines, instance) = (
                self.of_others,
                "the trace instance of the first event is read",
            );
            contents
                .notes
                .push(format!("{instance}, and {lines} lines of others are not"));
        }
        if self.strange > 0 {
            let what = "lines have a time, and are not understood: a column may be missing \
                        (thread, CPU, time and event are needed)";
            contents.notes.push(format!("{} {what}", self.strange));
        }
        if self.strange > self.events {
            contents
                .partial
                .push("most of its lines are not understood".to_owned());
        }
        if self.back * ONE_BACK_OF > self.events {
            let (back, all) = (self.back, self.events);
            let what = format!("{back} of {all} times go back: they may be differences");
            contents.partial.push(what);
        }
    }
}

/// The lines of a file.
struct Lines {
    stream: Stream,
    line: Vec<u8>,
}

impl Lines {
    /// The next line, without its end; what is too long is cut.
    fn next(&mut self) -> Result<Option<&[u8]>, Damage> {
        self.line.clear();
        let mut any = false;
        loop {
            let ahead = self.stream.ahead()?;
            if ahead.is_empty() {
                return Ok(any.then_some(self.line.as_slice()));
            }
            any = true;
            let end = memchr::memchr(b'\n', ahead);
            let part = &ahead[..end.unwrap_or(ahead.len())];
            let room = LONGEST.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            let read = part.len() as u64;
            match end {
                Some(_) => {
                    self.stream.skip(read + 1);
                    return Ok(Some(self.line.as_slice()));
                }
                None => self.stream.skip(read),
            }
        }
    }
}

/// The CPU of a number that was printed.
fn cpu_of(text: &str) -> Option<CpuId> {
    text.parse().ok().map(CpuId)
}
