//! Where the parts of a perf.data are.

use crate::damage::Damage;
use crate::input::Input;
use crate::order::Order;

/// The bytes of the header of a file, and of that of a pipe.
const FILE: u64 = 104;
const PIPE: u64 = 16;

/// Where its parts are.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The order of bytes.
    pub order: Order,
    /// Where the records begin and end.
    pub records: (u64, u64),
    /// What else a file has; nothing of a pipe, which has it as records.
    pub file: Option<Sections>,
    /// What is unusual: a sentence.
    pub note: Option<String>,
}

/// The sections of a file: offset and length, in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Sections {
    /// Attributes of events, of `attribute` bytes each.
    pub attributes: (u64, u64),
    /// The bytes of one.
    pub attribute: u64,
    /// Which features there are: bits.
    pub features: [u64; 4],
    /// Where the list of their sections begins.
    pub list: u64,
}

impl Place {
    /// Reads the header.
    ///
    /// # Errors
    /// It is cut off, or contradicts itself.
    pub fn read(input: &Input) -> Result<Place, Damage> {
        let mut stream = input.from(0, FILE);
        let order = match stream.take(8)? {
            b"2ELIFREP" => Order::Big,
            b"PERFFILE" => {
                let what = "it is of the first version of perf.data (before Linux 2.6.34); \
                            record it with a perf that is newer";
                return Err(Damage::at(0, what));
            }
            _ => Order::Little,
        };
        let size = stream.long(order)?;
        if size == PIPE {
            return Ok(Place {
                order,
                records: (PIPE, input.length()),
                file: None,
                note: None,
            });
        }
        let attribute = stream.long(order)?;
        let mut section = || Ok((stream.long(order)?, stream.long(order)?));
        let (attributes, records, _types) = (section()?, section()?, section()?);
        let mut features = [0; 4];
        for word in &mut features {
            *word = stream.long(order)?;
        }
        let (begin, length) = records;
        let end = begin.checked_add(length);
        let Some(end) = end.filter(|_| begin >= FILE) else {
            return Err(Damage::at(40, "the records have an impossible place"));
        };
        // perf writes the length at its end: one that was killed has not.
        let killed = length == 0 && input.length() > begin;
        let note = killed
            .then(|| "perf was killed before its end: nothing is known of the machine".to_owned());
        Ok(Place {
            order,
            records: (begin, if killed { input.length() } else { end }),
            file: Some(Sections {
                attributes,
                attribute,
                features: if killed { [0; 4] } else { features },
                list: end,
            }),
            note,
        })
    }
}

/// A record's kind, flags and length.
pub(crate) fn split(head: [u8; 8], order: Order) -> (u32, u16, u16) {
    let [a, b, c, d, e, f, g, h] = head;
    (
        order.word([a, b, c, d]),
        order.half([e, f]),
        order.half([g, h]),
    )
}

/// Four bytes at `offset` as a number, if they are there.
#[inline]
pub(crate) fn word(bytes: &[u8], offset: usize, order: Order) -> Option<u32> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(order.word(*bytes))
}

/// Eight bytes at `offset` as a number, if they are there.
#[inline]
pub(crate) fn long(bytes: &[u8], offset: usize, order: Order) -> Option<u64> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(order.long(*bytes))
}
