//! What events were recorded with (`struct perf_event_attr`).

use std::collections::BTreeMap;

use super::header::{Sections, long, word};
use super::sample::Fields;
use crate::damage::Damage;
use crate::input::Input;
use crate::order::Order;

/// No file has more attributes, or ids of them.
const MOST: u64 = 1 << 20;

/// Clocks of events (`clockid_t`).
const CLOCKS: [(u32, &str); 5] = [
    (0, "realtime"),
    (1, "monotonic"),
    (4, "monotonic_raw"),
    (7, "boottime"),
    (11, "tai"),
];
/// Flags: what is no sample has fields of samples at its end; the clock is not perf's own.
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCKID: u64 = 1 << 25;
const FREQUENCY: u64 = 1 << 10;
/// Events of this type are tracepoints (`PERF_TYPE_TRACEPOINT`).
const TRACEPOINT: u32 = 2;

/// The attributes of all events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes {
    all: Vec<Fields>,
    /// Whether some have other fields than the first one.
    unlike: bool,
    /// Which attribute an event's id is of.
    of: BTreeMap<u64, usize>,
    clock: Option<&'static str>,
    /// Whether not every event of a tracepoint was recorded.
    sampled: bool,
}

impl Attributes {
    /// Reads the section of a file.
    ///
    /// # Errors
    /// It is cut off, or too long.
    pub fn read_section(
        &mut self,
        input: &Input,
        sections: &Sections,
        order: Order,
    ) -> Result<(), Damage> {
        let (offset, length) = sections.attributes;
        // Each is followed by the place of its ids.
        let Some(attribute) = sections
            .attribute
            .checked_sub(16)
            .filter(|size| *size >= 48)
        else {
            return Err(Damage::at(16, "the attributes of events are too short"));
        };
        let count = length / sections.attribute;
        if count > MOST {
            return Err(Damage::at(
                offset,
                "there are too many attributes of events",
            ));
        }
        for index in 0..count {
            let offset = offset.saturating_add(index * sections.attribute);
            let bytes = input.bytes(offset, sections.attribute)?;
            let place = attribute as usize;
            let ids = (long(&bytes, place, order), long(&bytes, place + 8, order));
            let (Some(from), Some(length)) = ids else {
                return Err(Damage::at(offset, "an attribute of an event is too short"));
            };
            let ids = input.bytes(from, length.min(8 * MOST))?;
            self.add(&bytes[..place], &ids, order);
        }
        Ok(())
    }

    /// Reads a record of a pipe: the attribute, and its ids.
    pub fn read_record(&mut self, body: &[u8], order: Order) {
        let size = word(body, 4, order).map_or(0, |size| size as usize);
        if let Some((attribute, ids)) = body.split_at_checked(size) {
            let (attribute, ids) = (attribute.to_vec(), ids.to_vec());
            self.add(&attribute, &ids, order);
        }
    }

    fn add(&mut self, attribute: &[u8], ids: &[u8], order: Order) {
        let number = |offset| long(attribute, offset, order).unwrap_or(0);
        // The first flag is the lowest bit, or the highest one of its byte.
        let flags = match order {
            Order::Little => number(40),
            Order::Big => number(40).reverse_bits(),
        };
        if flags & USE_CLOCKID != 0 {
            let clock = word(attribute, 92, order);
            let known = CLOCKS.iter().find(|(number, _)| Some(*number) == clock);
            self.clock = known.map(|(_, name)| *name);
        }
        let every = flags & FREQUENCY == 0 && number(16) <= 1;
        self.sampled |= word(attribute, 0, order) == Some(TRACEPOINT) && !every;
        let index = self.all.len();
        let all = flags & SAMPLE_ID_ALL != 0;
        let fields = Fields::of(number(24), number(32), all);
        self.unlike |= self.all.first().is_some_and(|first| *first != fields);
        self.all.push(fields);
        let ids = ids.chunks_exact(8).filter_map(|id| long(id, 0, order));
        self.of.extend(ids.map(|id| (id, index)));
    }

    /// The fields of the first one, which all that is no sample has.
    pub fn first(&self) -> Option<&Fields> {
        self.all.first()
    }

    /// The fields of the sample in `body`.
    #[inline]
    pub fn of_sample(&self, body: &[u8], order: Order) -> Option<&Fields> {
        let first = self.all.first()?;
        match first.id_offset() {
            Some(offset) if self.all.len() > 1 => {
                let id = long(body, offset, order)?;
                Some(self.of.get(&id).map_or(first, |index| &self.all[*index]))
            }
            _ => (!self.unlike).then_some(first),
        }
    }

    /// Whether not every event of a tracepoint was recorded (`-c`, `-F`).
    pub fn are_sampled(&self) -> bool {
        self.sampled
    }

    /// The clock: perf's own, if no other one was asked for.
    pub fn clock(&self) -> &'static str {
        self.clock.unwrap_or("perf")
    }
}
