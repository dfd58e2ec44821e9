//! Events of the kernel out of their bytes, by the formats that the kernel printed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use warmq_trace::{Context, Interrupt, State};

use crate::convert::VECTORS;
use crate::event::{Event, Name, Other, Thread, What, edge};
use crate::format::{Field, Format};
use crate::order::Order;

/// What a CPU was doing on which `tid` runs.
#[inline]
pub(crate) fn context(in_interrupt: bool, in_softirq: bool, tid: u32) -> Context {
    match tid {
        _ if in_interrupt => Context::Interrupt,
        _ if in_softirq => Context::Softirq,
        // The idle loop, which takes wakeups that other CPUs left for this one.
        0 => Context::Unknown,
        _ => Context::Task,
    }
}

/// Bits of `common_flags`.
const HARDIRQ: u64 = 0x08;
const SOFTIRQ: u64 = 0x10;

/// What happened in an event, of these bytes, while this thread runs; `None` if it is too short or
/// says nothing of interest.
type Read = Box<dyn Fn(&[u8], u32) -> Option<What> + Send>;

/// How one kind of event is read.
struct Decoder {
    flags: Field,
    tid: Field,
    what: Read,
}

/// Where a thread's id and name are.
struct Names {
    tid: Field,
    comm: Field,
    priority: Option<Field>,
}

/// The letters of a task's state, as bits of `prev_state`.
#[derive(Debug)]
pub(crate) struct States {
    letters: Vec<(u64, State)>,
}

/// The state that a letter of `sched_switch` stands for, which is not R.
pub(crate) fn state_of(letter: &str) -> State {
    match letter {
        "S" => State::Interruptible,
        "D" => State::Uninterruptible,
        "T" | "t" => State::Stopped,
        "X" | "Z" => State::Dead,
        "I" => State::IdleThread,
        _ => State::Other,
    }
}

impl States {
    /// As Linux has had them since 4.14, for text that has their bits only.
    pub fn usual() -> States {
        let letters = ["S", "D", "T", "t", "X", "Z", "P", "I"].into_iter();
        let letters = letters.enumerate();
        let letters = letters.map(|(bit, letter)| (1 << bit, state_of(letter)));
        States {
            letters: letters.collect(),
        }
    }

    /// From how `sched_switch` is printed. Bits that have no letter say that the task was
    /// preempted.
    /// Without letters they are the usual ones.
    fn of(format: &Format) -> States {
        let letters = format.symbols();
        let letters = letters.map(|(bit, letter)| (bit, state_of(letter)));
        let letters: Vec<_> = letters.collect();
        match letters.is_empty() {
            true => States::usual(),
            false => States { letters },
        }
    }

    /// A dead task may have other bits as well.
    pub fn state(&self, bits: u64) -> State {
        let mut set = self.letters.iter().filter(|(bit, _)| bits & bit != 0);
        set.next_back().map_or(State::Runnable, |(_, state)| *state)
    }
}

/// How events of `name` are read; `None` if it has not the fields that are needed.
fn reader(name: &str, format: &Format) -> Option<Read> {
    let field = |name: &str| format.field(name);
    Some(match name {
        "ipi/ipi_send_cpu" => {
            let (to, callback) = (field("cpu")?, field("callback")?);
            // All others ask for a function to be called.
            Box::new(move |event, _| match callback.number(event)? {
                0 => Some(What::RescheduleSent { to: to.cpu(event)? }),
                _ => None,
            })
        }
        "power/cpu_idle" => {
            let state = field("state")?;
            Box::new(move |event, _| state.word(event).map(What::idle))
        }
        "napi/napi_poll" => {
            let (packets, budget) = (field("work")?, field("budget")?);
            Box::new(move |event, _| {
                let (packets, budget) = (packets.word(event)?, budget.word(event)?);
                Some(What::Poll { packets, budget })
            })
        }
        "net/netif_receive_skb" => {
            let bytes = field("len")?;
            Box::new(move |event, _| {
                let bytes = bytes.word(event)?;
                Some(What::Packet { bytes })
            })
        }
        "skb/kfree_skb" => {
            let reason = field("reason")?;
            let mut reasons = format.symbols();
            let not_specified = reasons.find(|(_, name)| *name == "NOT_SPECIFIED");
            let not_specified = not_specified.map(|(number, _)| number);
            Box::new(move |event, _| {
                let reason = reason.number(event)?;
                // Those of subsystems are above 16 bits.
                let known = u16::try_from(reason).unwrap_or(0);
                (Some(reason) != not_specified).then_some(What::Drop { reason: known })
            })
        }
        "sched/sched_process_exit" => Box::new(|_, _| Some(What::Other(Other::Exit))),
        "sched/sched_stat_runtime" => Box::new(|_, _| Some(What::Other(Other::Runtime))),
        _ if name.starts_with("preemptirq/") => {
            Box::new(|_, _| Some(What::Other(Other::InterruptsOff)))
        }
        _ => of_threads(name, format).or_else(|| of_interrupts(name, format))?,
    })
}

fn of_threads(name: &str, format: &Format) -> Option<Read> {
    let field = |name: &str| format.field(name);
    let names = |of: &str| {
        Some(Names {
            tid: field(&format!("{of}pid"))?,
            comm: field(&format!("{of}comm"))?,
            priority: field(&format!("{of}prio")),
        })
    };
    Some(match name {
        "sched/sched_switch" => {
            let (prev, next) = (names("prev_")?, names("next_")?);
            let (state, states) = (field("prev_state")?, States::of(format));
            Box::new(move |event, _| {
                Some(What::Switch {
                    prev: prev.read(event)?,
                    state: states.state(state.number(event)?),
                    next: next.read(event)?,
                })
            })
        }
        "sched/sched_waking" => {
            let thread = names("")?;
            Box::new(move |event, _| thread.read(event).map(What::Waking))
        }
        "sched/sched_wakeup" | "sched/sched_wakeup_new" => {
            let (thread, target) = (names("")?, field("target_cpu")?);
            let first = name.ends_with("_new");
            Box::new(move |event, _| {
                Some(What::Wakeup {
                    thread: thread.read(event)?,
                    target: target.cpu(event)?,
                    first,
                })
            })
        }
        "sched/sched_migrate_task" => {
            let thread = names("")?;
            let (from, to) = (field("orig_cpu")?, field("dest_cpu")?);
            Box::new(move |event, _| {
                Some(What::Migrate {
                    thread: thread.read(event)?,
                    from: from.cpu(event)?,
                    to: to.cpu(event)?,
                })
            })
        }
        "sched/sched_process_fork" => {
            let (parent, child) = (names("parent_")?, names("child_")?);
            Box::new(move |event, _| {
                let (parent, child) = (parent.read(event)?, child.read(event)?);
                Some(What::Fork { parent, child })
            })
        }
        "sched/sched_process_exec" => {
            let (tid, old) = (field("pid")?, field("old_pid")?);
            Box::new(move |event, _| {
                let (tid, old) = (tid.word(event)?, old.word(event)?);
                Some(What::Exec { tid, old })
            })
        }
        "task/task_rename" => {
            let (tid, comm) = (field("pid"), field("newcomm")?);
            // Without a field for it, the thread renamed itself.
            Box::new(move |event, here| {
                Some(What::Renamed(Thread {
                    comm: Name::new(comm.text(event)?),
                    ..Thread::of(tid.map_or(Some(here), |tid| tid.word(event))?)
                }))
            })
        }
        _ => return None,
    })
}

fn of_interrupts(name: &str, format: &Format) -> Option<Read> {
    let (name, happens) = edge(name)?;
    // Which one of its kind it is, and what that makes it.
    let (number, interrupt): (Option<Field>, fn(u64) -> Interrupt) = match name {
        "irq_vectors/local_timer" => (None, |_| Interrupt::Timer),
        "irq_vectors/reschedule" => (None, |_| Interrupt::Reschedule),
        "irq/irq_handler" => (Some(format.field("irq")?), |line| {
            Interrupt::Line(line as u16)
        }),
        "irq/softirq" => (Some(format.field("vec")?), |vector| {
            Interrupt::softirq(vector as u8)
        }),
        _ if name.starts_with("irq_vectors/") => (Some(format.field("vector")?), |vector| {
            Interrupt::Line(VECTORS | vector as u8 as u16)
        }),
        _ => return None,
    };
    Some(Box::new(move |event, _| {
        let number = number.map_or(Some(0), |number| number.number(event))?;
        Some(happens(interrupt(number)))
    }))
}

impl Field {
    #[inline]
    fn word(&self, event: &[u8]) -> Option<u32> {
        self.number(event).map(|word| word as u32)
    }

    fn cpu(&self, event: &[u8]) -> Option<u16> {
        u16::try_from(self.number(event)?).ok()
    }
}

impl Names {
    #[inline]
    fn read(&self, event: &[u8]) -> Option<Thread> {
        let priority = self.priority.and_then(|field| field.number(event));
        Some(Thread {
            tid: self.tid.word(event)?,
            comm: Name::new(self.comm.text(event)?),
            priority: priority.map(|number| number as i16),
        })
    }
}

/// All kinds of events of a recording.
#[derive(Debug)]
pub struct Decoders {
    kind_of: Field,
    decoders: BTreeMap<u64, Decoder>,
    /// The name of each number of an event, without its system.
    names: BTreeMap<u64, String>,
    /// How many events of each number were not read.
    others: RefCell<BTreeMap<u64, u64>>,
}

impl Decoders {
    /// The decoders of events by their names (`SYSTEM/NAME`) and formats, whose numbers are in this
    /// order of bytes, and the names of those that cannot be read. `None` if none can be.
    pub fn of<'a>(
        formats: impl Iterator<Item = (&'a str, &'a str)>,
        order: Order,
    ) -> (Option<Decoders>, Vec<&'a str>) {
        let (mut kind_of, mut decoders, mut unreadable) = (None, BTreeMap::new(), Vec::new());
        let mut names = BTreeMap::new();
        for (name, text) in formats {
            let decoder = Format::parse(text, order).and_then(|format| {
                // The same field in every event.
                let number = *kind_of.get_or_insert(format.field("common_type")?);
                let own = name.rsplit_once('/').map_or(name, |(_, own)| own);
                names.insert(format.id.into(), own.to_owned());
                let decoder = Decoder {
                    flags: format.field("common_flags")?,
                    tid: format.field("common_pid")?,
                    what: reader(name, &format)?,
                };
                (Some(number) == format.field("common_type"))
                    .then(|| decoders.insert(format.id.into(), decoder))
            });
            if decoder.is_none() {
                unreadable.push(name);
            }
        }
        let decoders = kind_of.map(|kind_of| Decoders {
            kind_of,
            decoders,
            names,
            others: RefCell::default(),
        });
        (decoders, unreadable)
    }

    /// How many events were not read, by their names; those of no known number have none.
    pub fn others(&self) -> BTreeMap<String, u64> {
        let mut others = BTreeMap::new();
        for (number, count) in &*self.others.borrow() {
            let name = self.names.get(number).cloned().unwrap_or_default();
            *others.entry(name).or_default() += count;
        }
        others
    }

    /// The event of these bytes; `None` if it is of no kind that is known, or says nothing of
    /// interest.
    #[inline]
    pub fn read(&self, event: &[u8]) -> Option<Event> {
        let number = self.kind_of.number(event)?;
        let decoder = self.decoders.get(&number);
        let read = decoder.and_then(|decoder| decoder.read(event));
        if read.is_none() {
            *self.others.borrow_mut().entry(number).or_default() += 1;
        }
        read
    }
}

impl Decoder {
    #[inline]
    fn read(&self, event: &[u8]) -> Option<Event> {
        let tid = self.tid.number(event)? as u32;
        let flags = self.flags.number(event)?;
        let context = context(flags & HARDIRQ != 0, flags & SOFTIRQ != 0, tid);
        let what = (self.what)(event, tid)?;
        let tid = Some(tid);
        Some(Event { tid, context, what })
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Decoder").finish_non_exhaustive()
    }
}
