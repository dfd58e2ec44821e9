//! trace.dat of versions 6 and 7, as `trace-cmd record` writes it: the kernel's pages of each CPU,
//! and what is needed to read them (`trace-cmd.dat(5)`).

mod options;
mod pages;
mod sections;

use std::cell::RefCell;
use std::rc::Rc;

use warmq_trace::Header;
use warmq_units::CpuId;

use crate::contents::Contents;
use crate::damage::Damage;
use crate::decode::Decoders;
use crate::event::Said;
use crate::input::Input;
use crate::merge::{Merged, Paged, Way};
use crate::page::Layout;
use crate::source::Source;
use crate::tracing_data::TracingData;
use options::{Buffer, Options};
use pages::Pages;

/// A trace.dat that is being read.
pub(crate) struct TraceDat {
    way: Way,
    merged: Merged<Paged<Pages>>,
    options: Options,
    clock: String,
    notes: Vec<String>,
    /// What the pages of a CPU met.
    damage: Rc<RefCell<Option<Damage>>>,
}

/// Clocks that count something else than time.
const COUNTERS: [&str; 3] = ["counter", "x86-tsc", "ppc-tb"];

impl TraceDat {
    /// Reads all but the pages.
    ///
    /// # Errors
    /// It is damaged there, or of another version, or has nothing that can be read.
    pub fn open(input: Input) -> Result<TraceDat, Damage> {
        let tracing = TracingData::begin(&mut input.from(0, u64::MAX))?;
        let (tracing, options) = match tracing.version.as_str() {
            "6" => old(&input)?,
            "7" => sections::read(&input, tracing)?,
            version => {
                let what = format!("it is of version {version}, and 6 and 7 are read");
                return Err(Damage::at(10, what));
            }
        };
        let order = tracing.order;
        let layout = Layout::parse(&tracing.header_page, order);
        let layout =
            layout.ok_or_else(|| Damage::at(0, "the layout of pages is not understood"))?;
        let (decoders, _) = Decoders::of(tracing.formats(), order);
        let decoders = decoders.ok_or_else(|| Damage::at(0, "it has no event of the scheduler"))?;
        let way = Way { layout, decoders };
        let (buffer, notes) = largest(&options.buffers);
        let Some(buffer) = buffer else {
            return Err(Damage::at(
                0,
                "it has no events: tracers that print text are not read",
            ));
        };
        let clock = options.clock_of(buffer).to_owned();
        if COUNTERS.contains(&clock.as_str()) && options.scale.is_none() {
            let what = format!(
                "its clock is {clock}, which counts no time: record with `trace-cmd record -C mono`"
            );
            return Err(Damage::at(0, what));
        }
        let damage = Rc::default();
        let cpus = buffer.cpus.iter().map(|cpu| {
            let pages = Pages::of(&input, cpu, &options, way.layout.size, order, &damage);
            (CpuId(cpu.cpu), Paged::of(pages))
        });
        Ok(TraceDat {
            merged: Merged::new(&way, cpus.collect::<Vec<_>>().into_iter()),
            way,
            options,
            clock,
            notes,
            damage,
        })
    }
}

/// The buffer with the most bytes, and that others are left out.
fn largest(buffers: &[Buffer]) -> (Option<&Buffer>, Vec<String>) {
    let largest = buffers.iter().rev().max_by_key(|buffer| buffer.bytes());
    let others = buffers.iter().filter(|buffer| {
        buffer.bytes() > 0 && largest.is_some_and(|largest| largest.name != buffer.name)
    });
    let notes = others.map(|buffer| {
        let name = warmq_units::printable(&buffer.name).to_string();
        let name = if name.is_empty() {
            "the top one".to_owned()
        } else {
            name
        };
        format!("the trace instance with the most events is read, and {name} is not")
    });
    (largest, notes.collect())
}

/// A file of version 6: one part after the other.
fn old(input: &Input) -> Result<(TracingData, Options), Damage> {
    let mut stream = input.from(0, u64::MAX);
    let tracing = TracingData::read(&mut stream)?;
    let order = tracing.order;
    let names = stream.long(order)?;
    stream.pass(names)?;
    let cpus = stream.word(order)?;
    let mut options = Options::default();
    loop {
        let offset = stream.offset();
        match stream.take(10)? {
            b"options  \0" => options.read(&mut stream, order)?,
            b"flyrecord\0" => break,
            b"latency  \0" => return Ok((tracing, options)),
            _ => return Err(Damage::at(offset, "options or events should follow here")),
        }
    }
    let mut buffer = Buffer::default();
    for cpu in 0..cpus.min(u16::MAX.into()) {
        let place = (stream.long(order)?, stream.long(order)?);
        buffer.add(cpu, place);
    }
    options.read_clock(&mut stream, order)?;
    options.buffers.push(buffer);
    Ok((tracing, options))
}

impl Source for TraceDat {
    fn header(&self) -> Header {
        Header {
            world: "host".to_owned(),
            kernel: self.options.release().to_owned(),
            clock: self.clock.clone(),
            ..Header::default()
        }
    }

    fn next(&mut self) -> Result<Option<Said>, Damage> {
        let Some(said) = self.merged.next(&self.way) else {
            return match self.damage.take() {
                Some(damage) => Err(damage),
                None => Ok(None),
            };
        };
        let ns = match self.options.scale {
            Some(scale) => scale.ns(said.ns),
            None => said.ns,
        };
        Ok(Some(Said { ns, ..said }))
    }

    fn describe(&self, contents: &mut Contents) {
        contents.clock.clone_from(&self.clock);
        contents.notes.extend(self.notes.iter().cloned());
        contents.others.extend(self.way.decoders.others());
    }
}
