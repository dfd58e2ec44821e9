//! A recording of events that another recorder than tracefs wrote.

use std::collections::BTreeMap;

use crate::beside::{Beside, missing, most_bytes};
use crate::{RecordError, Recording, Wanted};
use warmq_recordings::page::write::{HEADER_PAGE, Pages};
use warmq_recordings::recording::{CpuPages, Memory, Raw};

/// Makes a [`Recording`] of events that are written as the kernel would write them into its pages:
/// bytes of a format that is given as text, as `events/SYSTEM/NAME/format` of tracefs has it.
///
/// ```
/// # fn main() -> Result<(), warmq_record::RecordError> {
/// use warmq_record::{Gatherer, Wanted};
/// let format = "ID: 1\n\
///     field:unsigned short common_type; offset:0; size:2; signed:0;\n\
///     field:unsigned char common_flags; offset:2; size:1; signed:0;\n\
///     field:int common_pid; offset:4; size:4; signed:1;\n\
///     field:u32 state; offset:8; size:4; signed:0;\n";
/// let formats = vec![("power/cpu_idle".to_owned(), format.to_owned())];
/// let mut gatherer = Gatherer::start(&Wanted::default(), formats, Vec::new());
/// gatherer.event(0, 1_000, &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
/// gatherer.note_end();
/// assert!(gatherer.finish(0)?.size() > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Gatherer {
    raw: Raw,
    beside: Option<Beside>,
    cpus: BTreeMap<u16, Pages>,
    bytes: usize,
    most: usize,
    full: bool,
}

impl Gatherer {
    /// Begins a recording: what is noted beside the events is noted now. `formats` are the names
    /// (`SYSTEM/NAME`) and formats of the events, whose times are of CLOCK_MONOTONIC, and `lacking`
    /// says what of `wanted` cannot be had.
    pub fn start(
        wanted: &Wanted,
        formats: Vec<(String, String)>,
        lacking: Vec<String>,
    ) -> Gatherer {
        let mut missing = missing(wanted);
        missing.extend(lacking);
        Gatherer {
            raw: Raw {
                header_page: HEADER_PAGE.to_owned(),
                formats: formats.into_iter().collect(),
                missing,
                clock: "mono".to_owned(),
                ..Raw::default()
            },
            beside: Some(Beside::look()),
            cpus: BTreeMap::new(),
            bytes: 0,
            most: most_bytes(),
            full: false,
        }
    }

    /// Whether as many bytes were kept as may be while the recording runs: a quarter of the free
    /// memory, 1 GiB at most. Whoever gathers stops then until the end.
    pub fn is_full(&mut self) -> bool {
        self.full |= self.bytes >= self.most;
        self.full
    }

    /// An event of a CPU. Events of a CPU come in the order of time.
    ///
    /// # Panics
    /// If its length is no multiple of four, or it has no bytes or nearly a page of them.
    pub fn event(&mut self, cpu: u16, time_ns: u64, event: &[u8]) {
        let pages = self.cpus.entry(cpu).or_default();
        let before = pages.bytes();
        pages.event(time_ns, event);
        self.bytes += pages.bytes() - before;
    }

    /// So many events of a CPU are missing after those that came so far.
    pub fn lost(&mut self, cpu: u16, events: u64) {
        self.cpus.entry(cpu).or_default().lose(events);
    }

    /// Something else that is missing.
    pub fn missing(&mut self, what: String) {
        self.raw.missing.push(what);
    }

    /// Notes the end, after which nothing happens that is recorded. What happened before may still
    /// be given.
    pub fn note_end(&mut self) {
        if let Some(beside) = self.beside.take() {
            beside.end(&mut self.raw);
        }
    }

    /// The recording. `buffers` is how many bytes could have been left to be read at the end.
    ///
    /// # Errors
    /// When a format cannot be read.
    pub fn finish(mut self, buffers: usize) -> Result<Recording, RecordError> {
        self.note_end();
        let memory = Memory {
            most: self.most.saturating_add(buffers),
            full: self.full,
        };
        let cpus = self.cpus.into_iter().map(|(cpu, pages)| {
            let (pieces, dropped) = pages.finish();
            CpuPages {
                cpu,
                dropped,
                pieces,
            }
        });
        Ok(Recording::new(self.raw, cpus.collect(), 0)?.in_memory(memory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tasks;
    use warmq_trace::Record;

    const FORMAT: &str = "ID: 1\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
        \tfield:u32 state;\toffset:8;\tsize:4;\tsigned:0;\n";
    const EVENT: [u8; 12] = [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0];

    fn gatherer() -> Gatherer {
        let formats = vec![("power/cpu_idle".to_owned(), FORMAT.to_owned())];
        Gatherer::start(&Wanted::default(), formats, vec!["net: none".to_owned()])
    }

    #[test]
    fn what_was_gathered_comes_back_from_bytes_with_its_losses() {
        let mut gatherer = gatherer();
        gatherer.event(3, 1_000, &EVENT);
        gatherer.lost(3, 7);
        gatherer.event(3, 5_000, &EVENT);
        gatherer.lost(9, 2);
        gatherer.missing("skb: 1".to_owned());
        let recording = gatherer.finish(0).unwrap();
        let recording = Recording::from_bytes(&recording.to_bytes()).unwrap();
        let lacks = |what: &str| recording.missing().iter().any(|missing| missing == what);
        assert!(lacks("net: none") && lacks("skb: 1"));
        let mut idle = Vec::new();
        let mut lost = Vec::new();
        recording.records(&mut Tasks::new(), 0, &mut |at, record| match record {
            Record::Idle { .. } => idle.push(at.0 / 1_000),
            Record::Lost { cpu, events } => lost.push((cpu.0, events)),
            _ => {}
        });
        assert_eq!(idle, [1_000, 5_000]);
        assert_eq!(lost, [(3, 7), (9, 2)]);
    }

    #[test]
    fn a_gatherer_is_full_when_it_keeps_as_much_as_it_may() {
        let mut gatherer = gatherer();
        gatherer.most = 10_000;
        let mut events = 0;
        while !gatherer.is_full() {
            events += 1;
            gatherer.event(0, events, &EVENT);
        }
        assert!(events > 10_000 / 20 && gatherer.bytes < 20_000);
        let recording = gatherer.finish(5_000).unwrap();
        assert!(recording.was_full());
        assert_eq!(recording.most_size(), 15_000);
    }
}
