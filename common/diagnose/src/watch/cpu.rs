//! What is counted of a CPU: for how long who ran, who waits there, interrupts.

use std::collections::BTreeMap;

use warmq_trace::{Board, Interrupt};
use warmq_units::{CpuId, Duration, Instant, TaskId};

use super::raised::Raised;

/// Of those who wait in a queue, at most so many learn who ran meanwhile: those who have waited
/// longest. With more, everybody waits for many others, and who they are says little.
const MOST_WAITING: usize = 24;

/// A CPU whose first record is later than this was not recorded before: `perf record -a` switches
/// CPUs on one after another. All others have an interrupt of their timer by then, or a switch.
pub(super) const LATE: Duration = Duration::from_ms(10);

/// For how long interrupts had a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interrupted {
    pub all: Duration,
    pub softirqs: Duration,
    pub network: Duration,
}

impl Interrupted {
    pub fn add(&mut self, interrupt: Interrupt, span: Duration) {
        self.all += span;
        if interrupt.is_softirq() {
            self.softirqs += span;
        }
        if interrupt == Interrupt::NetworkSoftirq {
            self.network += span;
        }
    }
}

/// A time on a CPU that has not been counted yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub from: Instant,
    pub span: Duration,
    pub interrupted: Duration,
    pub stolen: Duration,
}

/// A CPU.
#[derive(Debug, Default)]
pub(super) struct Cpu {
    /// From when on it was recorded, as far as that is known: see [`Cpu::begins`].
    pub recorded: Option<Instant>,
    /// Whether that is certain.
    begun: bool,
    /// Until when it has been counted who ran, and for how long interrupts had had the CPU by then.
    counted: Instant,
    interrupted_before: Duration,
    /// For how long a hypervisor has had it, and had had it by then.
    pub stolen: Duration,
    stolen_before: Duration,
    waiting: BTreeMap<u64, TaskId>,
    pub interrupted: Interrupted,
    /// How often a device interrupted it.
    pub devices: u64,
    pub raised: Raised,
    /// Switches of it were not recorded: what seems to go on to the end may have ended before.
    pub unsure: bool,
    /// Since when it idles, and for how long it had before.
    idle_since: Option<Instant>,
    idled: Duration,
}

impl Cpu {
    /// The measurement begins.
    pub fn restart(&mut self, from: Instant, id: CpuId, board: &Board) {
        self.counts_until(from, id, board);
        self.idled = Duration::ZERO;
        self.devices = 0;
        (self.stolen, self.stolen_before) = Default::default();
        self.idle_since = self.idle_since.map(|_| from);
    }

    /// A record of it says that it `idled` until now, or did not, or nothing of that; records of
    /// any CPU begin with `all`. Returns from when on it was recorded, if that is certain now and
    /// was not before: of a CPU that did not idle until its first record nobody knows what it did
    /// before.
    pub fn begins(
        &mut self,
        (all, at): (Instant, Instant),
        idled: Option<bool>,
    ) -> Option<Instant> {
        if self.begun {
            return None;
        }
        let first = *self.recorded.get_or_insert(at);
        self.begun = idled.is_some();
        if idled? || first.since(all) < LATE {
            self.recorded = Some(Instant::START);
        }
        self.recorded
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

    /// Of the time `all` that interrupts had it, what the tasks that ran there did not raise.
    pub fn interrupted_until(&self, all: Duration) -> Duration {
        all.saturating_sub(self.raised.until(all))
    }

    /// What has not been counted yet; it is from now on.
    pub fn counts_until(&mut self, at: Instant, id: CpuId, board: &Board) -> Part {
        let interrupted = self.interrupted_until(board.interrupted(at, id));
        let from = std::mem::replace(&mut self.counted, at);
        let before = std::mem::replace(&mut self.interrupted_before, interrupted);
        let stolen_before = std::mem::replace(&mut self.stolen_before, self.stolen);
        Part {
            from,
            span: at.since(from),
            interrupted: interrupted.saturating_sub(before),
            stolen: self.stolen.saturating_sub(stolen_before),
        }
    }

    /// Until when it has been counted who ran.
    pub fn counted(&self) -> Instant {
        self.counted
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
}
