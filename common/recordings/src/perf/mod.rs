//! perf.data, as `perf record` and `perf sched record` write it: to files and through pipes,
//! compressed or not, of machines of either order of bytes.
//!
//! A file begins with a header that says where the attributes of events, the records and the
//! features (release, topology, formats of events) are (`perf.data-file-format.txt` in the kernel's
//! `tools/perf/Documentation`); a pipe has all of these as records. Records of all CPUs follow each
//! other in rounds: what comes after the end of a round is not older than the newest record of the
//! round before.

mod attribute;
mod command;
mod features;
mod header;
mod packed;
mod sample;
mod sorted;

use std::collections::{BTreeMap, VecDeque};

use warmq_trace::Header;
use warmq_units::CpuId;

use crate::contents::Contents;
use crate::damage::Damage;
use crate::decode::Decoders;
use crate::event::{Item, Name, Said, Thread, What};
use crate::input::{Input, Stream};
use crate::paths::{Paths, aside};
use crate::source::Source;
use crate::tracing_data::TracingData;
use attribute::Attributes;
use features::Features;
use header::Place;
use packed::Packed;
use sample::Sample;
pub use sample::Touched;
use sorted::Sorted;

/// Kinds of records (`enum perf_event_type` of the kernel, and those of perf itself from 64 on).
mod kind {
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const FORK: u32 = 7;
    pub const SAMPLE: u32 = 9;
    pub const LOST_SAMPLES: u32 = 13;
    pub const CGROUP: u32 = 19;
    pub const HEADER_ATTR: u32 = 64;
    pub const TRACING_DATA: u32 = 66;
    pub const FINISHED_ROUND: u32 = 68;
    pub const AUXTRACE: u32 = 71;
    pub const HEADER_FEATURE: u32 = 80;
    pub const COMPRESSED: u32 = 81;
    pub const COMPRESSED2: u32 = 83;
}

/// The bytes of a record's header: kind (4), flags (2), length of the record (2).
const HEADER: usize = 8;

/// A perf.data that is being read.
pub(crate) struct PerfData {
    place: Place,
    stream: Stream,
    input: Input,
    attributes: Attributes,
    features: Features,
    decoders: Option<Decoders>,
    packed: Packed,
    sorted: Sorted,
    paths: Paths,
    /// The group of each id that a record named.
    groups: BTreeMap<u64, u32>,
    /// The group in which each thread was sampled last.
    grouped: BTreeMap<u32, u32>,
    /// Samples that say nothing of scheduling.
    others: u64,
    /// The addresses of samples, where these are asked for instead.
    touched: Option<Vec<Touched>>,
    damage: Option<Damage>,
    ended: bool,
}

impl PerfData {
    /// Reads what stands before the records.
    ///
    /// # Errors
    /// It is damaged there.
    pub fn open(input: Input) -> Result<PerfData, Damage> {
        let place = Place::read(&input)?;
        let mut attributes = Attributes::default();
        let mut features = Features::default();
        if let Some(file) = &place.file {
            attributes.read_section(&input, file, place.order)?;
            features.read_sections(&input, file, place.order)?;
        }
        let mut data = PerfData {
            stream: input.from(place.records.0, place.records.1),
            place,
            input,
            attributes,
            features,
            decoders: None,
            packed: Packed::default(),
            sorted: Sorted::default(),
            paths: Paths::default(),
            groups: BTreeMap::new(),
            grouped: BTreeMap::new(),
            others: 0,
            touched: None,
            damage: None,
            ended: false,
        };
        if let Some((offset, length)) = data.features.tracing {
            let mut stream = data.input.from(offset, offset.saturating_add(length));
            data.learn_formats(&TracingData::read(&mut stream)?);
        }
        // A pipe says what it is of first.
        while data.place.file.is_none() && data.is_at_metadata()? {
            data.read_record()?;
        }
        Ok(data)
    }

    fn learn_formats(&mut self, tracing: &TracingData) {
        let (decoders, _) = Decoders::of(tracing.formats(), tracing.order);
        self.decoders = decoders;
    }

    /// Whether a record follows that is none of events.
    fn is_at_metadata(&mut self) -> Result<bool, Damage> {
        let order = self.place.order;
        let head = self.stream.peek(HEADER)?;
        let kind = head.first_chunk().map(|kind| order.word(*kind));
        Ok(matches!(
            kind,
            Some(kind::HEADER_ATTR | kind::TRACING_DATA | kind::HEADER_FEATURE)
        ))
    }

    /// Reads the next record of the file. False at the end.
    fn read_record(&mut self) -> Result<bool, Damage> {
        if self.stream.left() == 0 {
            return Ok(false);
        }
        let (order, offset) = (self.place.order, self.stream.offset());
        let head: [u8; HEADER] = self.stream.take(HEADER)?.try_into().expect("as many");
        let (kind, _, length) = header::split(head, order);
        let Some(length) = usize::from(length).checked_sub(HEADER) else {
            let what = format!("a record of kind {kind} is shorter than its header");
            return Err(Damage::at(offset, what));
        };
        let body = self.stream.take(length)?;
        match kind {
            kind::HEADER_ATTR => self.attributes.read_record(body, order),
            kind::HEADER_FEATURE => self.features.read_record(body, order),
            kind::TRACING_DATA => {
                let bytes = header::word(body, 0, order).unwrap_or(0);
                let begins = self.stream.offset();
                let end = begins.saturating_add(bytes.into());
                let mut stream = self.input.from(begins, end);
                let tracing = TracingData::read(&mut stream)?;
                self.learn_formats(&tracing);
                self.stream.pass(u64::from(bytes).next_multiple_of(8))?;
            }
            kind::AUXTRACE => {
                let bytes = header::long(body, 0, order).unwrap_or(0);
                self.stream.pass(bytes)?;
            }
            kind::FINISHED_ROUND => self.sorted.end_round(),
            kind::COMPRESSED | kind::COMPRESSED2 => {
                let bytes = match kind {
                    kind::COMPRESSED2 => {
                        let bytes = header::long(body, 0, order).unwrap_or(0);
                        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                        body.get(8..).and_then(|body| body.get(..bytes))
                    }
                    _ => Some(body),
                };
                let Some(bytes) = bytes else {
                    return Err(Damage::at(offset, "a compressed record is too short"));
                };
                self.sorted.has_no_rounds();
                self.packed.add(bytes, offset)?;
                self.read_unpacked(offset)?;
            }
            _ => {
                let body = body.to_vec();
                self.read_event(kind, &body);
                self.packed.keep(body);
            }
        }
        Ok(true)
    }

    /// Reads the records that were unpacked.
    fn read_unpacked(&mut self, offset: u64) -> Result<(), Damage> {
        let order = self.place.order;
        while let Some((kind, body)) = self.packed.record(order, offset)? {
            match kind {
                kind::FINISHED_ROUND => {}
                _ => self.read_event(kind, &body),
            }
            self.packed.keep(body);
        }
        Ok(())
    }

    /// A record of events. What cannot be read of it is none of ours.
    fn read_event(&mut self, kind: u32, body: &[u8]) {
        let order = self.place.order;
        if kind == kind::SAMPLE {
            let Some(fields) = self.attributes.of_sample(body, order) else {
                return self.others += 1;
            };
            match Sample::read(body, fields, order) {
                Some(sample) => self.see(&sample),
                None => self.others += 1,
            }
            return;
        }
        let Some(fields) = self.attributes.first() else {
            return;
        };
        let Some(at) = sample::aside(body, fields, order) else {
            return;
        };
        let number = |offset| header::word(body, offset, order);
        let what = match kind {
            kind::COMM => self.comm(body, number),
            kind::FORK => self.fork(number),
            kind::CGROUP => {
                let end = body.len().saturating_sub(fields.aside_bytes());
                return self.cgroup(&body[..end], at);
            }
            kind::LOST | kind::LOST_SAMPLES => {
                let count = header::long(body, if kind == kind::LOST { 8 } else { 0 }, order);
                let (ns, cpu) = at;
                let item = Item::Lost(count.unwrap_or(0));
                return self.sorted.add(Said { ns, cpu, item });
            }
            _ => None,
        };
        if let Some(what) = what {
            self.sorted.add(aside(at, what));
        }
    }

    /// A thread has a name: process (4), thread (4), name.
    fn comm(&self, body: &[u8], number: impl Fn(usize) -> Option<u32>) -> Option<What> {
        let thread = Thread {
            comm: Name::new(body.get(8..)?),
            ..Thread::of(number(4)?)
        };
        let tgid = number(0)?;
        Some(What::Process { thread, tgid })
    }

    /// A thread was made: process, parent's process, thread, parent (4 each).
    fn fork(&self, number: impl Fn(usize) -> Option<u32>) -> Option<What> {
        let thread = Thread::of(number(8)?);
        let tgid = number(0)?;
        Some(What::Process { thread, tgid })
    }

    /// A group has an id (8) and a path.
    fn cgroup(&mut self, body: &[u8], at: (u64, CpuId)) {
        let (id, path) = (header::long(body, 0, self.place.order), body.get(8..));
        let (Some(id), Some(path)) = (id, path) else {
            return;
        };
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        let mut said = VecDeque::new();
        let group = self
            .paths
            .number(&String::from_utf8_lossy(path), at, &mut said);
        self.groups.insert(id, group);
        said.into_iter().for_each(|said| self.sorted.add(said));
    }

    fn see(&mut self, sample: &Sample<'_>) {
        if let Some(touched) = &mut self.touched {
            return touched.extend(sample.touched);
        }
        let Some(at) = sample.at else {
            return self.others += 1;
        };
        if let (Some(cgroup), Some(tid)) = (sample.cgroup, sample.tid)
            && tid != 0
            && let Some(group) = self.groups.get(&cgroup).copied()
            && self.grouped.insert(tid, group) != Some(group)
        {
            self.sorted.add(aside(at, What::Grouped { tid, group }));
        }
        let Some((raw, decoders)) = sample.raw.zip(self.decoders.as_ref()) else {
            return self.others += 1;
        };
        if let Some(event) = decoders.read(raw) {
            let (ns, cpu) = at;
            let item = Item::Event(event);
            self.sorted.add(Said { ns, cpu, item });
        }
    }
}

impl PerfData {
    /// The addresses of data that samples have, in the order of the file.
    ///
    /// # Errors
    /// It is damaged.
    pub fn touched(mut self) -> Result<Vec<Touched>, Damage> {
        self.touched = Some(Vec::new());
        while self.read_record()? {}
        self.read_rest()?;
        Ok(self.touched.unwrap_or_default())
    }

    /// Reads what was unpacked and has not been read yet.
    fn read_rest(&mut self) -> Result<(), Damage> {
        self.packed.end()?;
        self.read_unpacked(self.stream.offset())
    }

    /// Why it has a part only of what happened.
    fn partial(&self) -> Vec<String> {
        let sampled = self.attributes.are_sampled();
        let sampled = sampled.then_some("not every event of its tracepoints was recorded (-c, -F)");
        let filters = command::left_out(&self.features.command);
        sampled
            .map(str::to_owned)
            .into_iter()
            .chain(filters)
            .collect()
    }
}

impl Source for PerfData {
    fn header(&self) -> Header {
        self.features.header(self.attributes.clock())
    }

    fn next(&mut self) -> Result<Option<Said>, Damage> {
        loop {
            if let Some(said) = self.sorted.next() {
                return Ok(Some(said));
            }
            if self.ended {
                return match self.damage.take() {
                    Some(damage) => Err(damage),
                    None => Ok(None),
                };
            }
            // What was read before the damage comes first.
            let more = self.read_record().unwrap_or_else(|damage| {
                self.damage = Some(damage);
                false
            });
            if !more {
                self.ended = true;
                if self.damage.is_none() {
                    self.damage = self.read_rest().err();
                }
                self.sorted.end();
            }
        }
    }

    fn describe(&self, contents: &mut Contents) {
        contents.clock = self.attributes.clock().to_owned();
        contents.command.clone_from(&self.features.command);
        if let Some(decoders) = &self.decoders {
            contents.others.extend(decoders.others());
        }
        if self.others > 0 {
            *contents.others.entry(String::new()).or_default() += self.others;
        }
        contents.partial.extend(self.partial());
        contents.notes.extend(self.place.note.clone());
        contents.notes.extend(self.sorted.note());
        if self.decoders.is_none() {
            let note = "it has no formats of tracepoints: it is a profile, without events of the \
                        scheduler";
            contents.notes.push(note.to_owned());
        }
    }
}
