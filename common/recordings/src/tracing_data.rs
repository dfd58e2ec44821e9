//! The formats of events as `trace-cmd` and `perf` keep them: the first part of trace.dat up to
//! version 6, and `HEADER_TRACING_DATA` of perf.data.
//!
//! ```text
//!     magic "tracing"  version\0  order (0 little, 1 big)  bytes of a long  bytes of a page (4)
//!     "header_page\0"  length (8) text   "header_event\0"  length (8) text
//!     count (4)  (length (8) text)*                        formats of ftrace's own events
//!     count (4)  (system\0  count (4)  (length (8) text)*)*
//!     length (4) kallsyms   length (4) printk formats   length (8) names of threads (version 6)
//! ```

use crate::damage::Damage;
use crate::input::Stream;
use crate::order::Order;

/// The first bytes.
pub(crate) const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";
/// No format of an event is longer, in bytes.
const LONGEST_FORMAT: u64 = 1 << 20;
/// The longest name that is believed.
const LONGEST_NAME: usize = 1 << 12;

/// What is said of events.
#[derive(Clone, Debug, Default)]
pub(crate) struct TracingData {
    /// The version of the file.
    pub version: String,
    /// The order of bytes.
    pub order: Order,
    /// `events/header_page`.
    pub header_page: String,
    /// The name (`SYSTEM/NAME`) and format of each event.
    pub formats: Vec<(String, String)>,
}

impl TracingData {
    /// Reads the first fields: up to the size of a page.
    ///
    /// # Errors
    /// It is something else, or cut off.
    pub fn begin(from: &mut Stream) -> Result<TracingData, Damage> {
        let offset = from.offset();
        if from.take(MAGIC.len())? != MAGIC {
            return Err(Damage::at(offset, "formats of events should begin here"));
        }
        let version = from.text(LONGEST_NAME)?;
        let order = match from.take(1)? {
            [0] => Order::Little,
            [1] => Order::Big,
            _ => {
                let what = "the order of bytes is neither of the two";
                return Err(Damage::at(from.offset() - 1, what));
            }
        };
        from.take(1)?;
        from.word(order)?;
        Ok(TracingData {
            version,
            order,
            ..TracingData::default()
        })
    }

    /// Reads all of it.
    ///
    /// # Errors
    /// It is something else, or cut off.
    pub fn read(from: &mut Stream) -> Result<TracingData, Damage> {
        let mut data = TracingData::begin(from)?;
        let order = data.order;
        data.read_pages(from)?;
        data.read_formats("ftrace", from)?;
        data.read_systems(from)?;
        for _ in 0..2 {
            let length = from.word(order)?;
            from.pass(length.into())?;
        }
        Ok(data)
    }

    /// What pages are like, and entries.
    pub fn read_pages(&mut self, from: &mut Stream) -> Result<(), Damage> {
        for header in ["header_page", "header_event"] {
            let offset = from.offset();
            if from.text(LONGEST_NAME)? != header {
                return Err(Damage::at(offset, format!("{header} should stand here")));
            }
            let text = from.counted(self.order, LONGEST_FORMAT)?;
            if header == "header_page" {
                self.header_page = text;
            }
        }
        Ok(())
    }

    /// The formats of all events that are not ftrace's own.
    pub fn read_systems(&mut self, from: &mut Stream) -> Result<(), Damage> {
        for _ in 0..from.word(self.order)? {
            let system = from.text(LONGEST_NAME)?;
            self.read_formats(&system, from)?;
        }
        Ok(())
    }

    fn read_formats(&mut self, system: &str, from: &mut Stream) -> Result<(), Damage> {
        for _ in 0..from.word(self.order)? {
            let text = from.counted(self.order, LONGEST_FORMAT)?;
            let name = text.lines().find_map(|line| line.strip_prefix("name:"));
            let name = name.unwrap_or_default().trim();
            self.formats.push((format!("{system}/{name}"), text));
        }
        Ok(())
    }

    /// Events by their formats, in pairs of names and texts.
    pub fn formats(&self) -> impl Iterator<Item = (&str, &str)> {
        let formats = self.formats.iter();
        formats.map(|(name, text)| (name.as_str(), text.as_str()))
    }
}
