//! What a CPU does: who runs, who waits there, and interrupts.

use std::collections::BTreeMap;

use warmq_trace::Interrupt;
use warmq_units::{Duration, Instant, TaskId};

/// Of those who wait in a queue, at most so many learn who ran meanwhile: those who have waited
/// longest. With more, everybody waits for many others, and who they are says little.
const MOST_WAITING: usize = 24;

/// For how long interrupts had a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interrupted {
    pub all: Duration,
    pub softirqs: Duration,
}

/// A stretch of a task on a CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub task: TaskId,
    pub from: Instant,
    pub span: Duration,
    pub interrupted: Duration,
}

/// A CPU.
#[derive(Debug, Default)]
pub(super) struct Cpu {
    /// Who runs, since when, and for how long interrupts had had the CPU by then.
    running: Option<(TaskId, Instant, Duration)>,
    waiting: BTreeMap<u64, TaskId>,
    /// Since when it is in an interrupt; nested ones are part of the outermost.
    open: Option<(Instant, Interrupt)>,
    depth: u32,
    pub interrupted: Interrupted,
    /// A switch at this time was not told and must have happened.
    pub inferred: Option<Instant>,
    /// Switches of it were not told: what seems to go on to the end may have ended before.
    pub unsure: bool,
    /// Since when it idles, and for how long it had before.
    idle_since: Option<Instant>,
    idled: Duration,
}

impl Cpu {
    /// The measurement begins.
    pub fn restart(&mut self, from: Instant) {
        self.interrupted = Interrupted::default();
        if let Some((_, since, interrupted)) = &mut self.running {
            (*since, *interrupted) = (from, Duration::ZERO);
        }
        if let Some((since, _)) = &mut self.open {
            *since = from;
        }
        self.idled = Duration::ZERO;
        self.idle_since = self.idle_since.map(|_| from);
    }

    /// It idles from now on, or does not.
    pub fn idles(&mut self, at: Instant, idles: bool) {
        self.idled = self.idled_until(at);
        self.idle_since = idles.then_some(at);
    }

    /// For how long it has idled.
    pub fn idled_until(&self, at: Instant) -> Duration {
        let open = self.idle_since.map(|since| at.since(since));
        self.idled + open.unwrap_or_default()
    }

    pub fn begins(&mut self, at: Instant, task: TaskId) {
        self.running = Some((task, at, self.interrupted_until(at)));
    }

    /// Whoever runs has run until now.
    pub fn ends(&mut self, at: Instant) -> Option<Stretch> {
        let (task, from, before) = self.running.take()?;
        Some(Stretch {
            task,
            from,
            span: at.since(from),
            interrupted: self.interrupted_until(at).saturating_sub(before),
        })
    }

    /// Who runs, if that began before `at`.
    pub fn running(&self, at: Instant) -> Option<(TaskId, Instant)> {
        let running = self.running.map(|(task, since, _)| (task, since));
        running.filter(|(_, since)| *since <= at)
    }

    pub fn queue(&mut self, place: u64, task: TaskId) {
        self.waiting.insert(place, task);
    }

    pub fn unqueue(&mut self, place: u64) {
        self.waiting.remove(&place);
    }

    /// All who wait here.
    pub fn all_waiting(&self) -> Vec<TaskId> {
        self.waiting.values().copied().collect()
    }

    /// Those who have waited longest.
    pub fn first_waiting(&self) -> impl Iterator<Item = TaskId> {
        self.waiting.values().copied().take(MOST_WAITING)
    }

    /// For how long interrupts have had it.
    pub fn interrupted_until(&self, at: Instant) -> Duration {
        let open = self.open.map(|(since, _)| at.since(since));
        self.interrupted.all + open.unwrap_or_default()
    }

    pub fn enters(&mut self, at: Instant, interrupt: Interrupt) {
        self.depth += 1;
        self.open.get_or_insert((at, interrupt));
    }

    pub fn exits(&mut self, at: Instant, _: Interrupt) {
        // One that began before the trace has no beginning here.
        self.depth = self.depth.saturating_sub(1);
        if self.depth == 0
            && let Some((since, outermost)) = self.open.take()
        {
            let span = at.since(since);
            self.interrupted.all += span;
            if outermost.is_softirq() {
                self.interrupted.softirqs += span;
            }
        }
    }
}
