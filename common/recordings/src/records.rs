//! Records out of a recording, whoever made it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::rc::Rc;

use thiserror::Error;
use warmq_trace::file::{ReadError, Reader};

use warmq_trace::{Header, Record, Table};
use warmq_units::{CpuId, Instant};

use crate::Tasks;
use crate::contents::{Contents, Counter};
use crate::convert::{Known, Replay};
use crate::damage::Damage;
use crate::event::{Item, Said, What};
use crate::foreign::Foreign;
use crate::source::Source;

/// Why a recording cannot be read.
#[derive(Debug, Error)]
pub enum Unreadable {
    /// The system refuses.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is of WarmQ, and damaged.
    #[error(transparent)]
    Own(#[from] ReadError),
    /// It is no recording, or one that is not read.
    #[error("this is {0}, and no recording that is read here")]
    NotOne(Foreign),
    /// It is of a format that is read, and damaged before its first event.
    #[error("this is {format}, and it cannot be read: {damage}")]
    Damaged {
        /// The format.
        format: Foreign,
        /// What is wrong, and where.
        damage: Damage,
    },
    /// It cannot be unpacked.
    #[error("it is compressed by {by}, and cannot be unpacked: {why}")]
    Packed {
        /// By which program.
        by: &'static str,
        /// Why not.
        why: String,
    },
}

/// The records of a recording, in the order of time: an iterator. A recording of WarmQ that is
/// damaged ends with an error. One of somebody else that is damaged in its middle ends there, and
/// [`Records::contents`] says so.
pub struct Records {
    header: Header,
    from: From,
}

enum From {
    Own(Box<Reader<File>>),
    Foreign(Box<Converted>),
}

impl Records {
    /// Those of a trace of WarmQ.
    pub(crate) fn own(reader: Reader<File>) -> Records {
        Records {
            header: reader.header().clone(),
            from: From::Own(Box::new(reader)),
        }
    }

    /// Those of another format.
    pub(crate) fn foreign(
        source: Box<dyn Source>,
        format: Foreign,
        read: Rc<Cell<u64>>,
        cut: Option<Damage>,
    ) -> Records {
        let mut converted = Converted::new(source, format, read);
        converted.cut = cut;
        Records {
            header: converted.source.header(),
            from: From::Foreign(Box::new(converted)),
        }
    }

    /// How many bytes of the file were read so far.
    pub fn read_bytes(&self) -> u64 {
        match &self.from {
            From::Own(reader) => reader.offset(),
            From::Foreign(converted) => converted.read.get(),
        }
    }

    /// What the recording is of.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What is in a recording of another format, as far as it was read; `None` for one of WarmQ.
    pub fn contents(&self) -> Option<Contents> {
        match &self.from {
            From::Own(_) => None,
            From::Foreign(converted) => Some(converted.contents()),
        }
    }
}

impl Iterator for Records {
    type Item = Result<(Instant, Record), Unreadable>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.from {
            From::Own(reader) => Some(reader.next()?.map_err(Unreadable::from)),
            From::Foreign(converted) => converted.next().map(Ok),
        }
    }
}

/// Another format, and the records that it becomes.
struct Converted {
    source: Box<dyn Source>,
    read: Rc<Cell<u64>>,
    /// What is wrong with what the file was packed into.
    cut: Option<Damage>,
    replay: Option<Replay>,
    /// What was said before the first event that has a time.
    early: Vec<Said>,
    /// The thread that runs on each CPU after its last event, if known.
    runs: Table<CpuId, Option<u32>>,
    /// Nothing was before.
    last_ns: u64,
    counter: Counter,
    /// Without counts.
    contents: Contents,
    ended: bool,
}

impl Converted {
    fn new(source: Box<dyn Source>, format: Foreign, read: Rc<Cell<u64>>) -> Converted {
        Converted {
            source,
            read,
            cut: None,
            replay: None,
            early: Vec::new(),
            runs: Table::default(),
            last_ns: 0,
            counter: Counter::default(),
            contents: Contents::of(format),
            ended: false,
        }
    }

    fn next(&mut self) -> Option<(Instant, Record)> {
        loop {
            if let Some(replay) = &mut self.replay
                && let Some(record) = replay.records().pop_front()
            {
                return Some(record);
            }
            if self.ended {
                return None;
            }
            match self.source.next() {
                Ok(Some(said)) => self.take(said),
                Ok(None) => {
                    self.contents.damage = self.cut.take();
                    self.ended = true;
                }
                Err(damage) => {
                    self.contents.damage = self.cut.take().or(Some(damage));
                    self.ended = true;
                }
            }
        }
    }

    /// Takes in what is said. Time 0 of the records is that of the first event: what somebody says
    /// of processes before it may have no time.
    fn take(&mut self, said: Said) {
        if self.replay.is_none() && !is_timed(&said) {
            return self.early.push(said);
        }
        let ns = said.ns;
        let early = std::mem::take(&mut self.early);
        early
            .into_iter()
            .for_each(|early| self.see(Said { ns, ..early }));
        self.see(said);
    }

    fn see(&mut self, said: Said) {
        let ns = said.ns.max(self.last_ns);
        self.last_ns = ns;
        let said = Said { ns, ..said };
        self.counter.count(&said);
        let replay = self.replay.get_or_insert_with(|| {
            let known = Known {
                processes: BTreeMap::new(),
                network_lines: Vec::new(),
                events_only: true,
            };
            Replay::new(known, Tasks::new(), ns)
        });
        let runs = self.runs.touch(said.cpu);
        match said.item {
            Item::Event(event) => {
                // A switch is missing before an event of another thread than the one that runs.
                if let (Some(before), Some(tid)) = (*runs, event.tid)
                    && before != tid
                {
                    let item = Item::Runs(tid);
                    replay.take(&Said { item, ..said });
                }
                *runs = event.runs_after().or(*runs);
            }
            Item::Lost(_) | Item::Runs(_) => *runs = None,
        }
        replay.take(&said);
    }

    fn contents(&self) -> Contents {
        let mut contents = self.contents.clone();
        self.counter.finish(&mut contents);
        self.source.describe(&mut contents);
        contents.has_places = !self.source.header().places.is_empty();
        contents
    }
}

/// Whether an event of the kernel says it, and not somebody who looked around.
fn is_timed(said: &Said) -> bool {
    match said.item {
        Item::Event(event) => !matches!(
            event.what,
            What::Process { .. } | What::Group { .. } | What::Grouped { .. }
        ),
        Item::Lost(_) | Item::Runs(_) => true,
    }
}
