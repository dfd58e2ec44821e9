//! What is known of a task, and what is counted of it.

use warmq_trace::{Context, Who};
use warmq_units::{CpuId, Duration, Instant, TaskId};

/// Of those who ran while a task waited, at most so many are told apart.
const MOST_BESIDE: usize = 24;
/// Of those who wake a task, at most so many are told apart.
const MOST_WAKERS: usize = 8;

/// What a task does.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Life {
    #[default]
    Unknown,
    Running,
    Waits(Wait),
    Asleep,
}

/// A wait for a CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    /// In whose queue.
    pub cpu: CpuId,
    /// Among those who wait there.
    pub place: u64,
    /// Since when it has been runnable.
    pub since: Instant,
    /// Since when in this queue, or in this measurement.
    pub part_from: Instant,
    // What the sums of the machine were at that time.
    pub inside: Duration,
    pub outside: Duration,
    pub interrupted: Duration,
}

/// A task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Task {
    pub who: Who,
    pub tally: Tally,
    pub born: Option<Instant>,
    pub died: Option<Instant>,
    pub(super) life: Life,
    /// When it was woken, until it runs.
    pub(super) woken: Option<Instant>,
    /// Who is about to wake it.
    pub(super) wakes: Option<(Option<TaskId>, Context)>,
    /// It is about to be throttled.
    pub(super) throttles: bool,
    pub(super) held_since: Option<Instant>,
    last_cpu: Option<(CpuId, Option<u16>)>,
}

impl Task {
    pub(super) fn born(at: Instant, who: Who) -> Task {
        Task {
            who,
            born: Some(at),
            life: Life::Asleep,
            ..Task::default()
        }
    }

    /// The measurement begins.
    pub(super) fn restart(&mut self, from: Instant) {
        self.tally = Tally::default();
        self.held_since = self.held_since.map(|since| since.max(from));
        if let Life::Waits(wait) = &mut self.life {
            wait.since = from;
            wait.part_from = from;
            (wait.inside, wait.outside, wait.interrupted) = Default::default();
        }
    }

    /// It does not run any more, and nobody knows whether it waits or sleeps.
    pub(super) fn vanishes(&mut self) {
        self.life = Life::Unknown;
        self.woken = None;
        self.tally.doubts += 1;
    }

    /// It runs on `cpu`, which is under the cache `llc`.
    pub(super) fn comes_to(&mut self, cpu: CpuId, llc: Option<u16>) {
        if let Some((last, under)) = self.last_cpu.replace((cpu, llc)) {
            self.tally.cpu_moves += u64::from(last != cpu);
            self.tally.llc_moves += u64::from(llc.is_some() && under != llc);
        }
    }
}

/// The longest wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Longest {
    pub from: Instant,
    pub to: Instant,
}

impl Longest {
    pub fn span(self) -> Duration {
        self.to.since(self.from)
    }
}

/// What a task did on one CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Presence {
    pub cpu: CpuId,
    pub ran: Duration,
    pub waited: Duration,
    pub wakeups: u64,
}

/// What held a task back that is no lack of a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    pub throttled: Duration,
}

/// What is counted of a task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub ran: Duration,
    pub waited: Duration,
    pub held: Held,
    pub longest: Longest,
    pub wakeups: u64,
    /// How often it had a CPU at once when it was woken, and another task had to leave.
    pub took_at_wakeup: u64,
    /// How often records of it were missing: it was woken though it seemed to wait, or left its CPU
    /// unseen.
    pub doubts: u64,
    pub cpu_moves: u64,
    pub llc_moves: u64,
    /// While it waited, some CPU idled that it may use, or may not.
    pub idle_inside: Duration,
    pub idle_outside: Duration,
    /// While it ran or waited, interrupts had its CPU.
    pub interrupted: Duration,
    pub wakers: Wakers,
    pub places: Vec<Presence>,
    /// Who ran where it waited.
    pub beside: Vec<(TaskId, Duration)>,
    pub beside_others: Duration,
}

impl Tally {
    /// What it did on `cpu`.
    pub(super) fn on(&mut self, cpu: CpuId) -> &mut Presence {
        let known = self.places.iter().position(|it| it.cpu == cpu);
        let place = known.unwrap_or_else(|| {
            self.places.push(Presence {
                cpu,
                ran: Duration::ZERO,
                waited: Duration::ZERO,
                wakeups: 0,
            });
            self.places.len() - 1
        });
        &mut self.places[place]
    }

    /// `other` ran for `span` where it waits.
    pub(super) fn beside(&mut self, other: TaskId, span: Duration) {
        match self.beside.iter().position(|(task, _)| *task == other) {
            Some(place) => {
                self.beside[place].1 += span;
                // Whoever ran most is found first.
                if place > 0 && self.beside[place].1 > self.beside[place - 1].1 {
                    self.beside.swap(place, place - 1);
                }
            }
            None if self.beside.len() < MOST_BESIDE => self.beside.push((other, span)),
            None => self.beside_others += span,
        }
    }
}

/// Who woke a task how often.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wakers {
    pub known: Vec<((Option<TaskId>, Context), u64)>,
    pub others: u64,
}

impl Wakers {
    pub(super) fn count(&mut self, by: (Option<TaskId>, Context)) {
        match self.known.iter().position(|(known, _)| *known == by) {
            Some(place) => self.known[place].1 += 1,
            None if self.known.len() < MOST_WAKERS => self.known.push((by, 1)),
            None => self.others += 1,
        }
    }
}
