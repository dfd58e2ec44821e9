//! Events of the kernel out of their bytes, by the formats that the kernel printed.

use std::collections::HashMap;

use warmq_trace::{Context, Interrupt, State};

use crate::convert::VECTORS;
use crate::format::{Field, Format};

/// A thread as an event names it; 0 is the idle task of every CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thread<'a> {
    pub tid: u32,
    pub comm: &'a [u8],
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What<'a> {
    Switch {
        prev: Thread<'a>,
        state: State,
        next: Thread<'a>,
    },
    Waking(Thread<'a>),
    Wakeup {
        thread: Thread<'a>,
        target: u16,
    },
    Migrate {
        thread: Thread<'a>,
        from: u16,
        to: u16,
    },
    Fork {
        parent: Thread<'a>,
        child: Thread<'a>,
    },
    /// Thread `old` executed a program, and has the id `tid` from now on.
    Exec {
        tid: u32,
        old: u32,
    },
    Renamed(Thread<'a>),
    Enter(Interrupt),
    Leave(Interrupt),
    RescheduleSent {
        to: u16,
    },
    Idle(Option<u8>),
    Poll {
        packets: u32,
        budget: u32,
    },
    Packet {
        bytes: u32,
    },
    Drop {
        reason: u16,
    },
}

/// An event, and what its CPU was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event<'a> {
    /// The thread that ran there.
    pub tid: u32,
    pub context: Context,
    pub what: What<'a>,
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
struct States {
    letters: Vec<(u64, State)>,
}

impl States {
    /// From how `sched_switch` is printed. Bits that have no letter say that the task was
    /// preempted.
    /// `None` if there are no letters.
    fn of(format: &Format) -> Option<States> {
        let state = |letter| match letter {
            "S" => State::Interruptible,
            "D" => State::Uninterruptible,
            "T" | "t" => State::Stopped,
            "X" | "Z" => State::Dead,
            "I" => State::IdleThread,
            _ => State::Other,
        };
        let letters = format.symbols().map(|(bit, letter)| (bit, state(letter)));
        let letters: Vec<_> = letters.collect();
        (!letters.is_empty()).then_some(States { letters })
    }

    /// A dead task may have other bits as well.
    fn state(&self, bits: u64) -> State {
        let mut set = self.letters.iter().filter(|(bit, _)| bits & bit != 0);
        set.next_back().map_or(State::Runnable, |(_, state)| *state)
    }
}

impl Kind {
    /// How events of `name` are read; `None` if it has not the fields that are needed.
    fn of(name: &str, format: &Format) -> Option<Kind> {
        let field = |name| format.field(name);
        let names = |tid, comm| {
            Some(Names {
                tid: field(tid)?,
                comm: field(comm)?,
            })
        };
        let thread = || names("pid", "comm");
        Some(match name {
            "sched/sched_switch" => Kind::Switch {
                prev: names("prev_pid", "prev_comm")?,
                state: field("prev_state")?,
                states: States::of(format)?,
                next: names("next_pid", "next_comm")?,
            },
            "sched/sched_waking" => Kind::Waking(thread()?),
            "sched/sched_wakeup" | "sched/sched_wakeup_new" => Kind::Wakeup {
                thread: thread()?,
                target: field("target_cpu")?,
            },
            "sched/sched_migrate_task" => Kind::Migrate {
                thread: thread()?,
                from: field("orig_cpu")?,
                to: field("dest_cpu")?,
            },
            "sched/sched_process_fork" => Kind::Fork {
                parent: names("parent_pid", "parent_comm")?,
                child: names("child_pid", "child_comm")?,
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
    fn read<'a>(&self, event: &'a [u8], here: u32) -> Option<What<'a>> {
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
            Kind::Wakeup { thread, target } => What::Wakeup {
                thread: thread.read(event)?,
                target: cpu(target)?,
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
                comm: comm.text(event)?,
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
    fn read<'a>(&self, event: &'a [u8]) -> Option<Thread<'a>> {
        Some(Thread {
            tid: self.tid.number(event)? as u32,
            comm: self.comm.text(event)?,
        })
    }
}

/// All kinds of events of a recording.
#[derive(Debug)]
pub(crate) struct Decoders {
    kind_of: Field,
    decoders: HashMap<u64, Decoder>,
}

impl Decoders {
    /// The decoders of events by their names (`SYSTEM/NAME`) and formats, and the names of those
    /// that cannot be read. `None` if none can be.
    pub fn of<'a>(
        formats: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> (Option<Decoders>, Vec<&'a str>) {
        let (mut kind_of, mut decoders, mut unreadable) = (None, HashMap::new(), Vec::new());
        for (name, text) in formats {
            let decoder = Format::parse(text).and_then(|format| {
                // The same field in every event.
                let number = *kind_of.get_or_insert(format.field("common_type")?);
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
        let decoders = kind_of.map(|kind_of| Decoders { kind_of, decoders });
        (decoders, unreadable)
    }

    /// The event of these bytes; `None` if it is of no kind that is known, or says nothing of
    /// interest.
    #[inline]
    pub fn read<'a>(&self, event: &'a [u8]) -> Option<Event<'a>> {
        let decoder = self.decoders.get(&self.kind_of.number(event)?)?;
        let tid = decoder.tid.number(event)? as u32;
        let flags = decoder.flags.number(event)?;
        let context = match tid {
            _ if flags & HARDIRQ != 0 => Context::Interrupt,
            _ if flags & SOFTIRQ != 0 => Context::Softirq,
            // The idle loop, which takes wakeups that other CPUs left for this one.
            0 => Context::Unknown,
            _ => Context::Task,
        };
        let what = decoder.kind.read(event, tid)?;
        Some(Event { tid, context, what })
    }
}
