//! What a perf.data says of the machine: release, processor, topology, caches, the command.

use warmq_trace::Header;
use warmq_units::Bytes as Size;

use super::header::{Sections, long, word};
use crate::damage::Damage;
use crate::input::Input;
use crate::machine::{CacheOf, Seen, cpus_of, size_of};
use crate::order::Order;

/// Numbers of features (`enum` of perf's `util/header.h`).
const TRACING_DATA: u64 = 1;
const RELEASE: u64 = 4;
const PROCESSOR: u64 = 8;
const MEMORY: u64 = 10;
const COMMAND: u64 = 11;
const TOPOLOGY: u64 = 13;
const NODES: u64 = 14;
const CACHES: u64 = 20;

/// No feature that is read here is longer, in bytes.
const LONGEST: u64 = 1 << 24;

/// What is known of a machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Features {
    /// Where the formats of events are: offset and length.
    pub tracing: Option<(u64, u64)>,
    release: String,
    /// The command that recorded.
    pub command: String,
    machine: Seen,
}

impl Features {
    /// Reads the sections of a file.
    ///
    /// # Errors
    /// One of them is not where it should be.
    pub fn read_sections(
        &mut self,
        input: &Input,
        sections: &Sections,
        order: Order,
    ) -> Result<(), Damage> {
        let all = (0..256_u64).filter(|bit| {
            let word = sections.features[(bit / 64) as usize];
            word >> (bit % 64) & 1 != 0
        });
        let mut list = input.from(sections.list, u64::MAX);
        for feature in all {
            let (offset, length) = (list.long(order)?, list.long(order)?);
            match feature {
                TRACING_DATA => self.tracing = Some((offset, length)),
                RELEASE | PROCESSOR | MEMORY | COMMAND | TOPOLOGY | NODES | CACHES => {
                    let bytes = input.bytes(offset, length.min(LONGEST))?;
                    self.learn(feature, &bytes, order);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads a record of a pipe: the number of the feature, and what it says.
    pub fn read_record(&mut self, body: &[u8], order: Order) {
        if let Some(feature) = long(body, 0, order) {
            let bytes = body[8..].to_vec();
            self.learn(feature, &bytes, order);
        }
    }

    fn learn(&mut self, feature: u64, bytes: &[u8], order: Order) {
        let mut from = Bytes { bytes, order };
        match feature {
            RELEASE => self.release = from.text().unwrap_or_default(),
            PROCESSOR => self.machine.processor = from.text().unwrap_or_default(),
            MEMORY => {
                let kilobytes = long(bytes, 0, order).filter(|kilobytes| *kilobytes > 0);
                self.machine.memory = kilobytes.map(|kilobytes| Size::from_mb(kilobytes >> 10));
            }
            COMMAND => self.command = from.texts().unwrap_or_default().join(" "),
            TOPOLOGY => self.machine.cores = from.cores().unwrap_or_default(),
            NODES => self.machine.nodes = from.nodes().unwrap_or_default(),
            CACHES => self.machine.caches = from.caches().unwrap_or_default(),
            _ => {}
        }
    }

    /// What a recording is of.
    pub fn header(&self, clock: &str) -> Header {
        let mut header = Header {
            world: "host".to_owned(),
            kernel: self.release.clone(),
            clock: clock.to_owned(),
            ..Header::default()
        };
        self.machine.put_into(&mut header);
        header
    }
}

/// Bytes of a feature.
struct Bytes<'a> {
    bytes: &'a [u8],
    order: Order,
}

impl Bytes<'_> {
    fn number(&mut self) -> Option<u32> {
        let number = word(self.bytes, 0, self.order)?;
        self.bytes = &self.bytes[4..];
        Some(number)
    }

    /// A text behind its length, filled up with zeros.
    fn text(&mut self) -> Option<String> {
        let length = self.number()? as usize;
        let (text, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        Some(String::from_utf8_lossy(text).into_owned())
    }

    fn texts(&mut self) -> Option<Vec<String>> {
        (0..self.number()?).map(|_| self.text()).collect()
    }

    /// Lists of CPUs that share a package, and a core; then core and package of each CPU.
    fn cores(&mut self) -> Option<Vec<(u32, u32)>> {
        self.texts()?;
        let cpus = self.texts()?.iter().map(|list| cpus_of(list).len()).sum();
        let mut cores = Vec::new();
        while cores.len() < cpus
            && let (Some(core), Some(socket)) = (self.number(), self.number())
        {
            cores.push((core, socket));
        }
        Some(cores)
    }

    /// Memory nodes: number, memory in all and free in kB, CPUs.
    fn nodes(&mut self) -> Option<Vec<(u32, Vec<u16>)>> {
        (0..self.number()?).map(|_| self.node()).collect()
    }

    fn node(&mut self) -> Option<(u32, Vec<u16>)> {
        let node = self.number()?;
        (0..4).try_for_each(|_| self.number().map(drop))?;
        Some((node, cpus_of(&self.text()?)))
    }

    /// A version, and the caches: level, line, sets, ways, kind, size, CPUs.
    fn caches(&mut self) -> Option<Vec<CacheOf>> {
        self.number()?;
        (0..self.number()?).map(|_| self.cache()).collect()
    }

    fn cache(&mut self) -> Option<CacheOf> {
        let (level, line) = (self.number()?, self.number()?);
        let (_sets, ways) = (self.number()?, self.number()?);
        let kind = self.text()?;
        let size = size_of(&self.text()?).unwrap_or(0);
        let cpus = cpus_of(&self.text()?);
        Some(CacheOf {
            level,
            size,
            ways,
            line,
            kind,
            cpus,
        })
    }
}
