//! Events of the kernel out of their bytes, by the formats that the kernel printed.

use std::cell::RefCell;
use std::collections::BTreeMap;

use warmq_trace::{Context, Interrupt, State};

use crate::convert::VECTORS;
use crate::event::{Event, Name, Other, Thread, What};
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

/// How one kind of event is read.
#[derive(Debug)]
struct Decoder {
    flags: Field,
    tid: Field,
    kind: Kind,
}

/// Where a thread's id and name are.
#[derive(Debug)]
struct Names {
    tid: Field,
    comm: Field,
    priority: Option<Field>,
}

#[derive(Debug)]
enum Kind {
    Switch {
        prev: Names,
        state: Field,
        states: States,
        next: Names,
    },
    Waking(Names),
    Wakeup {
        thread: Names,
        target: Field,
        first: bool,
    },
    Migrate {
        thread: Names,
        from: Field,
        to: Field,
    },
    Fork {
        parent: Names,
        child: Names,
    },
    Exec {
        tid: Field,
        old: Field,
    },
    /// Without a field for it, the thread renamed itself.
    Renamed {
        tid: Option<Field>,
        comm: Field,
    },
    Interrupt {
        enters: bool,
        source: Source,
    },
    RescheduleSent {
        to: Field,
        callback: Field,
    },
    Idle(Field),
    Poll {
        packets: Field,
        budget: Field,
    },
    Packet(Field),
    Drop {
        reason: Field,
        not_specified: Option<u64>,
    },
    Other(Other),
}

/// What interrupts.
#[derive(Debug)]
enum Source {
    Line(Field),
    Softirq(Field),
    Vector(Field),
    Timer,
    Reschedule,
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

impl Kind {
    /// How events of `name` are read; `None` if it has not the fields that are needed.
    fn of(name: &str, format: &Format) -> Option<Kind> {
        let field = |name: &str| format.field(name);
        let names = |of: &str| {
            Some(Names {
                tid: field(&format!("{of}pid"))?,
                comm: field(&format!("{of}comm"))?,
                priority: field(&format!("{of}prio")),
            })
        };
        let thread = || names("");
        Some(match name {
            "sched/sched_switch" => Kind::Switch {
                prev: names("prev_")?,
                state: field("prev_state")?,
                states: States::of(format),
                next: names("next_")?,
            },
            "sched/sched_waking" => Kind::Waking(thread()?),
            "sched/sched_wakeup" | "sched/sched_wakeup_new" => Kind::Wakeup {
                thread: thread()?,
                target: field("target_cpu")?,
                first: name.ends_with("_new"),
            },
            "sched/sched_migrate_task" => Kind::Migrate {
                thread: thread()?,
                from: field("orig_cpu")?,
                to: field("dest_cpu")?,
            },
            "sched/sched_process_fork" => Kind::Fork {
                parent: names("parent_")?,
                child: names("child_")?,
            },
            "sched/sched_process_exec" => Kind::Exec {
                tid: field("pid")?,
                old: field("old_pid")?,
            },
            "task/task_rename" => Kind::Renamed {
                tid: field("pid"),
                comm: field("newcomm")?,
            },
            "ipi/ipi_send_cpu" => Kind::RescheduleSent {
                to: field("cpu")?,
                callback: field("callback")?,
            },
            "power/cpu_idle" => Kind::Idle(field("state")?),
            "napi/napi_poll" => Kind::Poll {
                packets: field("work")?,
                budget: field("budget")?,
            },
            "net/netif_receive_skb" => Kind::Packet(field("len")?),
            "skb/kfree_skb" => Kind::Drop {
                reason: field("reason")?,
                not_specified: format
                    .symbols()
                    .find_map(|(number, name)| (name == "NOT_SPECIFIED").then_some(number)),
            },
            "sched/sched_process_exit" => Kind::Other(Other::Exit),
            "sched/sched_stat_runtime" => Kind::Other(Other::Runtime),
            _ if name.starts_with("preemptirq/") => Kind::Other(Other::InterruptsOff),
            _ => Kind::interrupt(name, format)?,
        })
    }

    fn interrupt(name: &str, format: &Format) -> Option<Kind> {
        let (name, enters) = match name.strip_suffix("_entry") {
            Some(name) => (name, true),
            None => (name.strip_suffix("_exit")?, false),
        };
        let field = |name| format.field(name);
        let source = match name {
            "irq/irq_handler" => Source::Line(field("irq")?),
            "irq/softirq" => Source::Softirq(field("vec")?),
            "irq_vectors/local_timer" => Source::Timer,
            "irq_vectors/reschedule" => Source::Reschedule,
            _ if name.starts_with("irq_vectors/") => Source::Vector(field("vector")?),
            _ => return None,
        };
        Some(Kind::Interrupt { enters, source })
    }

    /// What happened in `event`, or `None` if it is too short or says nothing of interest.
    #[inline]
    fn read(&self, event: &[u8], here: u32) -> Option<What> {
        let word = |field: &Field| field.number(event).map(|word| word as u32);
        let cpu = |field: &Field| u16::try_from(field.number(event)?).ok();
        Some(match self {
            Kind::Switch {
                prev,
                state,
                states,
                next,
            } => What::Switch {
                prev: prev.read(event)?,
                state: states.state(state.number(event)?),
                next: next.read(event)?,
            },
            Kind::Waking(thread) => What::Waking(thread.read(event)?),
            Kind::Wakeup {
                thread,
                target,
                first,
            } => What::Wakeup {
                thread: thread.read(event)?,
                target: cpu(target)?,
                first: *first,
            },
            Kind::Migrate { thread, from, to } => What::Migrate {
                thread: thread.read(event)?,
                from: cpu(from)?,
                to: cpu(to)?,
            },
            Kind::Fork { parent, child } => What::Fork {
                parent: parent.read(event)?,
                child: child.read(event)?,
            },
            Kind::Exec { tid, old } => What::Exec {
                tid: word(tid)?,
                old: word(old)?,
            },
            Kind::Renamed { tid, comm } => What::Renamed(Thread {
                tid: tid.as_ref().map_or(Some(here), word)?,
                comm: Name::new(comm.text(event)?),
                priority: None,
            }),
            Kind::Interrupt { enters, source } => {
                let interrupt = source.read(event)?;
                match enters {
                    true => What::Enter(interrupt),
                    false => What::Leave(interrupt),
                }
            }
            // All others ask for a function to be called.
            Kind::RescheduleSent { to, callback } => match callback.number(event)? {
                0 => What::RescheduleSent { to: cpu(to)? },
                _ => return None,
            },
            Kind::Idle(state) => What::Idle(match word(state)? {
                u32::MAX => None,
                state => Some(u8::try_from(state).unwrap_or(u8::MAX)),
            }),
            Kind::Poll { packets, budget } => What::Poll {
                packets: word(packets)?,
                budget: word(budget)?,
            },
            Kind::Other(other) => What::Other(*other),
            Kind::Packet(bytes) => What::Packet {
                bytes: word(bytes)?,
            },
            Kind::Drop {
                reason,
                not_specified,
            } => {
                let reason = reason.number(event)?;
                if Some(reason) == *not_specified {
                    return None;
                }
                // Those of subsystems are above 16 bits.
                What::Drop {
                    reason: u16::try_from(reason).unwrap_or(0),
                }
            }
        })
    }
}

impl Source {
    fn read(&self, event: &[u8]) -> Option<Interrupt> {
        Some(match self {
            Source::Line(number) => Interrupt::Line(number.number(event)? as u16),
            Source::Softirq(vector) => Interrupt::softirq(vector.number(event)? as u8),
            Source::Vector(vector) => Interrupt::Line(VECTORS | vector.number(event)? as u8 as u16),
            Source::Timer => Interrupt::Timer,
            Source::Reschedule => Interrupt::Reschedule,
        })
    }
}

impl Names {
    #[inline]
    fn read(&self, event: &[u8]) -> Option<Thread> {
        let priority = self.priority.and_then(|field| field.number(event));
        Some(Thread {
            tid: self.tid.number(event)? as u32,
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
                    kind: Kind::of(name, &format)?,
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
        let what = self.kind.read(event, tid)?;
        let tid = Some(tid);
        Some(Event { tid, context, what })
    }
}
