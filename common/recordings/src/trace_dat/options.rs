//! Options of a trace.dat: what it is of, and where the events of each CPU are.

use crate::damage::Damage;
use crate::input::Stream;
use crate::order::Order;

/// Numbers of options.
mod number {
    pub const DONE: u16 = 0;
    pub const BUFFER: u16 = 3;
    pub const CLOCK: u16 = 4;
    pub const UNAME: u16 = 5;
    pub const SCALE: u16 = 14;
    pub const PAGES: u16 = 16;
    pub const FORMATS: u16 = 18;
}

/// No option is longer, in bytes.
const LONGEST: u32 = 1 << 24;

/// How a processor's count becomes ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    multiplier: u32,
    shift: u32,
    offset: u64,
}

impl Scale {
    /// The time of a count.
    pub fn ns(self, count: u64) -> u64 {
        let scaled = (u128::from(count) * u128::from(self.multiplier)) >> self.shift.min(127);
        u64::try_from(scaled)
            .unwrap_or(u64::MAX)
            .saturating_add(self.offset)
    }
}

/// Where the events of a CPU are: offset and length, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CpuData {
    pub cpu: u16,
    pub offset: u64,
    pub length: u64,
}

/// The events of a trace instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Buffer {
    /// Its name; that of the top one is empty.
    pub name: String,
    clock: String,
    pub cpus: Vec<CpuData>,
    /// Where its section begins, from version 7 on.
    pub section: u64,
    /// Whether the events are compressed, which its section says.
    pub packed: bool,
}

impl Buffer {
    /// A CPU has its events at this offset, in so many bytes.
    pub fn add(&mut self, cpu: u32, (offset, length): (u64, u64)) {
        if let Ok(cpu) = u16::try_from(cpu) {
            self.cpus.push(CpuData {
                cpu,
                offset,
                length,
            });
        }
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> u64 {
        let lengths = self.cpus.iter().map(|cpu| cpu.length);
        lengths.fold(0, u64::saturating_add)
    }
}

/// What options say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    clock: String,
    /// That the clocks stand behind the places of the CPUs, as trace-cmd 2 wrote them.
    pub clock_follows: bool,
    uname: String,
    pub scale: Option<Scale>,
    pub buffers: Vec<Buffer>,
    /// Where the layout of pages, and the formats of events are, from version 7 on.
    pub pages: Option<u64>,
    pub formats: Option<u64>,
    /// The program that compressed; empty for none.
    pub packed_by: String,
    /// Where more options are, from version 7 on; 0 for none.
    pub next: u64,
}

impl Options {
    /// Reads options up to the last one.
    ///
    /// # Errors
    /// They are cut off, or too long.
    pub fn read(&mut self, stream: &mut Stream, order: Order) -> Result<(), Damage> {
        while stream.left() >= 2 {
            let option = stream.half(order)?;
            // Version 6, which says of no program that it compressed, has nothing behind it.
            if option == number::DONE && self.packed_by.is_empty() {
                return Ok(());
            }
            let offset = stream.offset();
            let length = stream.word(order)?;
            if length > LONGEST || u64::from(length) > stream.left() {
                let what = format!("an option of {length} bytes cannot follow here");
                return Err(Damage::at(offset, what));
            }
            self.learn(option, &mut stream.within(length.into()), order)?;
            stream.skip(length.into());
            if option == number::DONE {
                return Ok(());
            }
        }
        Ok(())
    }

    fn learn(&mut self, option: u16, from: &mut Stream, order: Order) -> Result<(), Damage> {
        match option {
            number::DONE => self.next = from.long(order)?,
            number::CLOCK if from.left() == 0 => self.clock_follows = true,
            number::CLOCK => self.clock = from.text(1 << 12)?,
            number::UNAME => self.uname = from.text(1 << 12)?,
            number::PAGES => self.pages = Some(from.long(order)?),
            number::FORMATS => self.formats = Some(from.long(order)?),
            number::SCALE => {
                self.scale = Some(Scale {
                    multiplier: from.word(order)?,
                    shift: from.word(order)?,
                    offset: from.long(order)?,
                });
            }
            // Instances of version 6 are somewhere else in the file, and are not read.
            number::BUFFER if !self.packed_by.is_empty() => {
                let mut buffer = Buffer {
                    section: from.long(order)?,
                    name: from.text(1 << 12)?,
                    clock: from.text(1 << 12)?,
                    ..Buffer::default()
                };
                from.word(order)?;
                for _ in 0..from.word(order)?.min(u16::MAX.into()) {
                    let cpu = from.word(order)?;
                    buffer.add(cpu, (from.long(order)?, from.long(order)?));
                }
                self.buffers.push(buffer);
            }
            _ => {}
        }
        Ok(())
    }

    /// The clock of a buffer: its own, or the one in brackets among all that the kernel has.
    pub fn clock_of<'a>(&'a self, buffer: &'a Buffer) -> &'a str {
        let all = &self.clock;
        let chosen = all
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'));
        match (buffer.clock.as_str(), chosen) {
            ("", Some((chosen, _))) => chosen,
            ("", None) => all.trim(),
            (own, _) => own,
        }
    }

    /// Reads the clocks where they follow the places of the CPUs.
    ///
    /// # Errors
    /// They are cut off, or too long.
    pub fn read_clock(&mut self, stream: &mut Stream, order: Order) -> Result<(), Damage> {
        if self.clock_follows {
            self.clock = stream.counted(order, 1 << 12)?;
        }
        Ok(())
    }

    /// The kernel's release: the third word of `SYSTEM HOST RELEASE MACHINE`.
    pub fn release(&self) -> &str {
        self.uname.split(' ').nth(2).unwrap_or_default()
    }
}
