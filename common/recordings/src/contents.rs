//! What is in a recording: which events, of how many CPUs, for how long, what is missing.

use std::collections::{BTreeMap, BTreeSet};

use crate::foreign::Foreign;
use warmq_units::CpuId;

use crate::damage::Damage;
use crate::event::{Item, Other, Said, What};

warmq_units::named! {
    /// Kinds of events that say something of scheduling, as people choose them for a recording, in
    /// the order in which they are shown and as the kernel calls them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Kind {
        /// `sched_switch`.
        Switch = "sched_switch",
        /// `sched_waking`.
        Waking = "sched_waking",
        /// `sched_wakeup` and `sched_wakeup_new`.
        Wakeup = "sched_wakeup",
        /// `sched_migrate_task`.
        Migrate = "sched_migrate_task",
        /// `sched_process_fork`.
        Fork = "sched_process_fork",
        /// `sched_process_exit`.
        Exit = "sched_process_exit",
        /// `sched_stat_runtime`.
        Runtime = "sched_stat_runtime",
        /// Interrupts of devices and of timers.
        Interrupt = "irq",
        /// Softirqs.
        Softirq = "softirq",
        /// Interrupts that are switched off.
        InterruptsOff = "irq off",
        /// Which tasks are in which groups.
        Group = "cgroup",
        /// Idle states.
        Idle = "cpu_idle",
    }
}

impl Kind {
    /// That of an event; `None` of one that nobody chooses for scheduling.
    fn of(what: &What) -> Option<Kind> {
        Some(match what {
            What::Switch { .. } => Kind::Switch,
            What::Waking(_) => Kind::Waking,
            What::Wakeup { .. } => Kind::Wakeup,
            What::Migrate { .. } => Kind::Migrate,
            What::Fork { .. } => Kind::Fork,
            What::Other(Other::Exit) => Kind::Exit,
            What::Other(Other::Runtime) => Kind::Runtime,
            What::Other(Other::InterruptsOff) => Kind::InterruptsOff,
            What::Enter(interrupt) if interrupt.is_softirq() => Kind::Softirq,
            What::Enter(_) => Kind::Interrupt,
            What::Grouped { .. } => Kind::Group,
            What::Idle(_) => Kind::Idle,
            _ => return None,
        })
    }
}

/// What is in a recording, as far as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Its format.
    pub format: Foreign,
    /// How many events of each kind there are.
    counts: BTreeMap<Kind, u64>,
    /// Events of other kinds, by their names where these are known.
    pub others: BTreeMap<String, u64>,
    /// Whether switches have priorities, and so nice values.
    pub has_priorities: bool,
    /// Whether tasks are woken, and nobody knows if by the thread that ran or in an interrupt.
    pub lacks_contexts: bool,
    /// Whether it is known which CPUs share a core and a cache.
    pub has_places: bool,
    /// The CPUs that had events.
    pub cpus: BTreeSet<u16>,
    /// When the first and the last event were, by the recording's clock, in ns.
    pub span_ns: Option<(u64, u64)>,
    /// How many events were lost, as far as whoever recorded counted.
    pub lost: u64,
    /// Its clock; empty if unknown.
    pub clock: String,
    /// The command that recorded; empty if unknown.
    pub command: String,
    /// Why it has a part only of what happened, some words each: nothing can be judged by it.
    pub partial: Vec<String>,
    /// What else is to be known: a sentence each.
    pub notes: Vec<String>,
    /// The option of tracefs by which no line of a text can be read as an event.
    pub option: Option<&'static str>,
    /// Why reading ended before the end.
    pub damage: Option<Damage>,
}

impl Contents {
    /// Nothing yet, of this format.
    pub fn of(format: Foreign) -> Contents {
        Contents {
            format,
            ..Contents::default()
        }
    }

    /// How many events of this kind there are.
    pub fn count(&self, kind: Kind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or(0)
    }

    /// Whether there is no event of any kind.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Whether there are any.
    pub fn has(&self, kind: Kind) -> bool {
        self.count(kind) > 0
    }
}

/// Counts what is in a recording while it is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counter {
    counts: [u64; Kind::ALL.len()],
    priorities: bool,
    lacks_contexts: bool,
    cpus: Vec<bool>,
    /// CPUs to which tasks went.
    targets: BTreeSet<u16>,
    first: Option<u64>,
    last: u64,
    lost: u64,
}

impl Counter {
    /// Counts what is said.
    #[inline]
    pub fn count(&mut self, said: &Said) {
        let CpuId(cpu) = said.cpu;
        if usize::from(cpu) >= self.cpus.len() {
            self.cpus.resize(usize::from(cpu) + 1, false);
        }
        match &said.item {
            Item::Event(event) => {
                self.first.get_or_insert(said.ns);
                self.last = self.last.max(said.ns);
                match event.what {
                    What::Switch { next, .. } => self.priorities |= next.priority.is_some(),
                    What::Wakeup { target, .. } => drop(self.targets.insert(target)),
                    What::Migrate { to, .. } => drop(self.targets.insert(to)),
                    _ => {}
                }
                if let Some(kind) = Kind::of(&event.what) {
                    let of_wakeup = matches!(kind, Kind::Waking | Kind::Wakeup);
                    self.lacks_contexts |= of_wakeup && event.lacks_context();
                    self.cpus[usize::from(cpu)] = true;
                    self.counts[kind as usize] += 1;
                }
            }
            Item::Lost(events) => self.lost = self.lost.saturating_add((*events).max(1)),
            Item::Runs(_) => {}
        }
    }

    /// Puts what was counted into `contents`.
    pub fn finish(&self, contents: &mut Contents) {
        let kinds = Kind::ALL.into_iter().zip(self.counts);
        contents.counts = kinds.filter(|(_, count)| *count > 0).collect();
        let cpus = (0..).zip(&self.cpus).filter(|(_, had)| **had);
        contents.cpus = cpus.map(|(cpu, _)| cpu).collect();
        let unseen: Vec<String> = self
            .targets
            .difference(&contents.cpus)
            .map(u16::to_string)
            .collect();
        if !unseen.is_empty() {
            let what = format!(
                "tasks went to CPUs that were not recorded: {}",
                unseen.join(", ")
            );
            contents.partial.push(what);
        }
        contents.span_ns = self.first.map(|first| (first, self.last));
        contents.lost = self.lost;
        contents.has_priorities = self.priorities;
        contents.lacks_contexts = self.lacks_contexts;
    }
}
