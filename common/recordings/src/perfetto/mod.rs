//! Traces of Perfetto: packets of protobuf, of which those with events of ftrace are read.
//!
//! Packets of all CPUs follow each other in no order of time, so each is found first, and what all
//! CPUs say is put in order while it is read: memory does not grow with the trace, but for 24 bytes
//! a packet.

mod events;
mod index;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use warmq_trace::Header;
use warmq_units::CpuId;

use crate::contents::Contents;
use crate::damage::Damage;
use crate::event::{Item, Name, Said, Thread, What};
use crate::input::Input;
use crate::merge::{Merged, Pieces};
use crate::paths::{Paths, aside};
use crate::source::Source;
use events::Runs;
use index::{Machine, Place};

/// Clocks of ftrace by their numbers (`enum FtraceClock`).
const CLOCKS: [&str; 5] = ["boottime", "unknown", "global", "local", "monotonic_raw"];

/// A trace that is being read.
pub(crate) struct Trace {
    merged: Merged<Bundles>,
    shared: Rc<RefCell<Shared>>,
    release: String,
    /// What is known of processes, before the first event.
    early: VecDeque<Said>,
    notes: Vec<String>,
    clock: &'static str,
}

/// What the bundles of all CPUs share.
#[derive(Debug, Default)]
struct Shared {
    paths: Paths,
    /// Events that are not read.
    others: u64,
    damage: Option<Damage>,
}

impl Trace {
    /// Finds its packets.
    ///
    /// # Errors
    /// Nothing of it can be read.
    pub fn open(input: Input) -> Result<Trace, Damage> {
        let (input, index) = index::of(input)?;
        let machines = index.machines;
        let most = machines
            .iter()
            .rev()
            .max_by_key(|(_, machine)| machine.bytes);
        let chosen = most.map_or(0, |(id, _)| *id);
        let mut notes: Vec<String> = machines
            .iter()
            .filter(|(id, machine)| **id != chosen && machine.bytes > 0)
            .map(|(id, _)| {
                format!("the machine with the most events is read, and machine {id} is not")
            })
            .collect();
        let machine = machines.into_iter().find(|(id, _)| *id == chosen);
        let machine = machine.map(|(_, machine)| machine).unwrap_or_default();
        if machine.bundles.is_empty() {
            if let Some(damage) = index.damage {
                return Err(damage);
            }
            let note = "it has no events of the kernel: record with the data source linux.ftrace";
            notes.push(note.to_owned());
        }
        if machine.overrun() > 0 {
            let count = machine.overrun();
            notes.push(format!(
                "the kernel wrote over {count} events before they were read"
            ));
        }
        let shared = Rc::new(RefCell::new(Shared {
            damage: index.damage,
            ..Shared::default()
        }));
        let clock = clock_of(&input, &machine)?;
        let early = processes(&machine);
        let bundles = machine.bundles.into_iter().map(|(cpu, mut places)| {
            places.sort_by_key(|place| place.first_ns);
            let bundles = Bundles {
                cpu,
                input: input.clone(),
                places: places.into_iter(),
                runs: Runs::default(),
                shared: Rc::clone(&shared),
            };
            (cpu, bundles)
        });
        Ok(Trace {
            merged: Merged::new(&(), bundles.collect::<Vec<_>>().into_iter()),
            shared,
            release: machine.release,
            early,
            notes,
            clock,
        })
    }
}

/// The clock of the first bundle.
fn clock_of(input: &Input, machine: &Machine) -> Result<&'static str, Damage> {
    let Some(place) = machine.bundles.values().flatten().next() else {
        return Ok("");
    };
    let bundle = place.bundle(input)?;
    let clock = bundle.clock.and_then(|clock| usize::try_from(clock).ok());
    Ok(CLOCKS.get(clock.unwrap_or(0)).copied().unwrap_or("unknown"))
}

/// No process has this number (`PID_MAX_LIMIT`). Traces that WarmQ writes have all tasks in it
/// whose process is not known.
const NO_PROCESS: u32 = 1 << 22;

/// Who is of which process.
fn processes(machine: &Machine) -> VecDeque<Said> {
    let at = (0, CpuId(0));
    let processes = machine.processes.iter();
    let processes = processes.filter(|pid| **pid != NO_PROCESS);
    let processes = processes.map(|pid| What::Process {
        thread: Thread::of(*pid),
        tgid: *pid,
    });
    let threads = machine.threads.iter().filter_map(|thread| {
        let tid = thread.tid?.cast_unsigned();
        let name = thread.name.as_deref().unwrap_or_default();
        let tgid = Some(thread.tgid?.cast_unsigned()).filter(|tgid| *tgid != NO_PROCESS);
        Some(What::Process {
            thread: Thread {
                comm: Name::new(name),
                ..Thread::of(tid)
            },
            tgid: tgid.unwrap_or(0),
        })
    });
    processes
        .chain(threads)
        .map(|what| aside(at, what))
        .collect()
}

/// The bundles of a CPU, in the order of time.
struct Bundles {
    cpu: CpuId,
    input: Input,
    places: std::vec::IntoIter<Place>,
    runs: Runs,
    shared: Rc<RefCell<Shared>>,
}

impl Pieces for Bundles {
    type Way = ();

    fn next(&mut self, (): &(), said: &mut VecDeque<(u64, Item)>) -> bool {
        let Some(place) = self.places.next() else {
            return false;
        };
        let shared = &mut *self.shared.borrow_mut();
        match place.bundle(&self.input) {
            Ok(bundle) => {
                let (paths, others) = (&mut shared.paths, &mut shared.others);
                said.extend(events::of(&bundle, self.cpu, &mut self.runs, paths, others));
            }
            Err(damage) => {
                shared.damage.get_or_insert(damage);
                // What it had is missing.
                self.runs = Runs::default();
                said.push_back((place.first_ns, Item::Lost(0)));
            }
        }
        true
    }
}

impl Source for Trace {
    fn header(&self) -> Header {
        Header {
            world: "host".to_owned(),
            kernel: self.release.clone(),
            clock: self.clock.to_owned(),
            ..Header::default()
        }
    }

    fn next(&mut self) -> Result<Option<Said>, Damage> {
        if let Some(said) = self.early.pop_front() {
            return Ok(Some(said));
        }
        match self.merged.next(&()) {
            Some(said) => Ok(Some(said)),
            None => match self.shared.borrow_mut().damage.take() {
                Some(damage) => Err(damage),
                None => Ok(None),
            },
        }
    }

    fn describe(&self, contents: &mut Contents) {
        contents.clock = self.clock.to_owned();
        contents.notes.extend(self.notes.iter().cloned());
        let others = self.shared.borrow().others;
        if others > 0 {
            contents.others.insert(String::new(), others);
        }
    }
}
