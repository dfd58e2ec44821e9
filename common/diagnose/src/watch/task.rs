//! What is known of a task, and what is counted of it.

use std::sync::Arc;

use warmq_trace::{Comm, Context, Who};
use warmq_units::{CpuId, Duration, Instant, TaskId};

use super::idle::Beside;
use super::sums::sums;
use super::waits::Waits;
use crate::weight;

/// Of those who ran while a task waited, at most so many are listed by name; of the others, so many
/// programs.
const MOST_BESIDE: usize = 24;
/// Of those who wake a task, at most so many are listed by name.
const MOST_WAKERS: usize = 8;

/// The names of the threads that run softirqs where these are too many begin so.
const SOFTIRQS: &str = "ksoftirqd/";

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
    pub idle: Beside,
    pub interrupted: Duration,
    pub stolen: Duration,
    /// For how long its own CPU had idled when it began to wait there.
    pub idled_here: Duration,
    /// Something happened on its CPU since then that no record shows: it may have run.
    pub doubtful: bool,
}

/// A task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Task {
    pub who: Who,
    /// What is certain. Shared with what was remembered of earlier times, and copied on change.
    pub tally: Arc<Tally>,
    /// Of the wait that goes on: only its end says whether it counts.
    pub(super) pending: Tally,
    /// Of waits whose beginning and end were recorded, during which it may have run unseen: the
    /// kernel's own account says whether it did.
    doubtful: Tally,
    /// How long it waited after its wakeups, of the whole time alone.
    pub waits: Waits,
    /// How long it had waited when the trace ended, if it did so then.
    pub unfinished: Duration,
    pub born: Option<Instant>,
    pub died: Option<Instant>,
    /// If it waits.
    pub(super) wait: Option<Wait>,
    last_cpu: Option<(CpuId, Option<u16>)>,
}

impl Task {
    pub(super) fn born(at: Instant, who: Who) -> Task {
        Task {
            who,
            born: Some(at),
            ..Task::default()
        }
    }

    /// The measurement begins. `interrupted` says for how long interrupts had had a CPU by then.
    pub(super) fn restart(&mut self, from: Instant, interrupted: impl Fn(CpuId) -> Duration) {
        self.tally = Arc::default();
        (self.pending, self.doubtful) = Default::default();
        self.waits = Waits::default();
        if let Some(wait) = &mut self.wait {
            wait.since = from;
            wait.part_from = from;
            wait.idle = Beside::default();
            (wait.idled_here, wait.stolen) = Default::default();
            wait.interrupted = interrupted(wait.cpu);
        }
    }

    /// Whether it is a thread that runs softirqs where these are too many.
    pub(crate) fn is_softirqd(&self) -> bool {
        self.who.comm.raw().starts_with(SOFTIRQS)
    }

    /// What it weighs among tasks of its group, as a [`Presence`] has it.
    pub(super) fn weight(&self) -> u64 {
        match self.who.is_realtime() {
            true => 0,
            false => weight::of_task(self.who.policy(), self.who.nice),
        }
    }

    /// Of which program and group it is.
    pub(crate) fn program(&self) -> Program {
        (self.who.comm, self.who.group)
    }

    /// The sums that change.
    pub(super) fn sums(&mut self) -> &mut Tally {
        Arc::make_mut(&mut self.tally)
    }

    /// What is certain, and what is so far of the wait that goes on.
    pub(super) fn so_far(&self) -> Arc<Tally> {
        match self.wait {
            Some(wait) if !wait.doubtful => {
                let mut tally = Tally::clone(&self.tally);
                let unlisted = tally.add(&self.pending);
                tally.beside_others += unlisted.into_iter().map(|(_, span)| span).sum();
                Arc::new(tally)
            }
            _ => Arc::clone(&self.tally),
        }
    }

    /// The wait that went on does not count: nobody knows when it ended.
    pub(super) fn forget_wait(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        let sums = self.sums();
        sums.doubts += 1;
        sums.doubted += pending.waited;
    }

    /// The wait that went on ends; whether it ran meanwhile is not recorded.
    pub(super) fn doubts_wait(&mut self, longest: Longest) {
        self.pending.longest = longest;
        let unlisted = self.doubtful.add(&self.pending);
        self.doubtful.beside_others += unlisted.into_iter().map(|(_, span)| span).sum();
        self.forget_wait();
    }

    /// The kernel counted that it waited for so long, all waits together that have ended: those
    /// that seemed to be ones count, if they fit into that.
    pub(super) fn waited_by_account(&mut self, waited: Duration) {
        let certain = self.tally.waited.saturating_sub(self.unfinished);
        if certain + self.doubtful.waited > waited {
            return;
        }
        let doubtful = std::mem::take(&mut self.doubtful);
        let sums = self.sums();
        sums.doubted = sums.doubted.saturating_sub(doubtful.waited);
        let unlisted = sums.add(&doubtful);
        sums.beside_others += unlisted.into_iter().map(|(_, span)| span).sum();
    }

    /// It does not run any more, and nobody knows whether it waits or sleeps.
    pub(super) fn vanishes(&mut self) {
        self.sums().doubts += 1;
    }

    /// It runs on `cpu`, which is under the cache `llc`.
    pub(super) fn comes_to(&mut self, cpu: CpuId, llc: Option<u16>) {
        if let Some((last, under)) = self.last_cpu.replace((cpu, llc)) {
            let sums = self.sums();
            sums.cpu_moves += u64::from(last != cpu);
            sums.llc_moves += u64::from(llc.is_some() && under != llc);
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

sums! {
    /// What a task did on one CPU while it had one weight.
    Did {
        ran: Duration,
        waited: Duration,
        wakeups: u64,
    }

    /// What is summed of a task.
    Summed {
        ran: Duration,
        waited: Duration,
        /// For how long its group was out of quota: no lack of a CPU.
        throttled: Duration,
        /// Of what it waited, all waits that are judged by themselves.
        long_waits: Duration,
        wakeups: u64,
        /// How often it got a CPU.
        turns: u64,
        /// How often it had a CPU at once when it was woken, and another task had to leave.
        took_at_wakeup: u64,
        /// How often records of it were missing: it was woken though it seemed to wait, or left its
        /// CPU unseen.
        doubts: u64,
        /// How long it seemed to wait where that is not certain.
        doubted: Duration,
        cpu_moves: u64,
        llc_moves: u64,
        /// While it waited, CPUs idled.
        idle: Beside,
        /// While it ran or waited, interrupts had its CPU.
        interrupted: Duration,
        /// While it ran or waited, a hypervisor had its CPU.
        stolen: Duration,
        beside_others: Duration,
    }
}

/// What a task did on a CPU while it had one weight.
#[derive(Clone, Copy, Debug, derive_more::Deref, derive_more::DerefMut)]
pub(crate) struct Presence {
    pub cpu: CpuId,
    /// 0 while it was a real-time or deadline task, which has no fair share.
    pub weight: u64,
    #[deref]
    #[deref_mut]
    did: Did,
}

/// What is counted of a task.
#[derive(Clone, Debug, Default, derive_more::Deref, derive_more::DerefMut)]
pub(crate) struct Tally {
    #[deref]
    #[deref_mut]
    sums: Summed,
    pub longest: Longest,
    pub wakers: Wakers,
    pub places: Vec<Presence>,
    /// Who ran where it waited.
    pub beside: Vec<(TaskId, Duration)>,
    /// Of those who are not distinguished, which programs of which groups.
    pub programs: Vec<(Program, Duration)>,
}

/// A program in a group.
pub(crate) type Program = (Comm, u32);

impl Tally {
    /// What it did on `cpu` while it weighed so much.
    pub(super) fn on(&mut self, cpu: CpuId, weight: u64) -> &mut Presence {
        let mut known = self.places.iter();
        let known = known.position(|place| (place.cpu, place.weight) == (cpu, weight));
        let place = known.unwrap_or_else(|| {
            let did = Did::default();
            self.places.push(Presence { cpu, weight, did });
            self.places.len() - 1
        });
        &mut self.places[place]
    }

    /// Counts all of `more`, too, but for those who ran beside it of whom there is no room left to
    /// list them by name: these are returned. Of two longest waits the longer one is the longest.
    #[must_use]
    pub(super) fn add(&mut self, more: &Tally) -> Vec<(TaskId, Duration)> {
        self.sums += more.sums;
        if more.longest.span() > self.longest.span() {
            self.longest = more.longest;
        }
        for there in &more.places {
            self.on(there.cpu, there.weight).did += there.did;
        }
        for (program, span) in &more.programs {
            self.beside_program(*program, *span);
        }
        let beside = more.beside.iter();
        let more = beside.filter(|(other, span)| !added(&mut self.beside, *other, *span));
        more.copied().collect()
    }

    /// Somebody of `program` ran for `span` where it waits.
    pub(super) fn beside_program(&mut self, program: Program, span: Duration) {
        if !added(&mut self.programs, program, span) {
            self.beside_others += span;
        }
    }

    /// What was counted since it was `before`. Wakers are not among it, nor is the longest wait,
    /// unless it ended since then.
    pub fn since(&self, before: &Tally) -> Tally {
        let place = |now: &Presence| {
            let mut then = before.places.iter();
            let then = then.rfind(|then| (then.cpu, then.weight) == (now.cpu, now.weight));
            let then = then.map_or(Did::default(), |then| then.did);
            let did = now.did.saturating_sub(then);
            Presence { did, ..*now }
        };
        Tally {
            sums: self.sums.saturating_sub(before.sums),
            longest: match self.longest == before.longest {
                true => Longest::default(),
                false => self.longest,
            },
            wakers: Wakers::default(),
            places: self.places.iter().map(place).collect(),
            beside: grown(&self.beside, &before.beside),
            programs: grown(&self.programs, &before.programs),
        }
    }

    /// `other`, which is of `program`, ran for `span` where it waits.
    pub(super) fn beside(&mut self, other: TaskId, program: Program, span: Duration) {
        if !added(&mut self.beside, other, span) {
            self.beside_program(program, span);
        }
    }
}

/// Adds `span` to that of `key`, if there is room for it.
fn added<K: PartialEq>(sums: &mut Vec<(K, Duration)>, key: K, span: Duration) -> bool {
    match sums.iter().position(|(known, _)| *known == key) {
        Some(place) => {
            sums[place].1 += span;
            // Whoever ran most is found first.
            if place > 0 && sums[place].1 > sums[place - 1].1 {
                sums.swap(place, place - 1);
            }
        }
        None if sums.len() < MOST_BESIDE => sums.push((key, span)),
        None => return false,
    }
    true
}

/// What was added to `now` since it was `before`.
fn grown<K: Clone + PartialEq>(
    now: &[(K, Duration)],
    before: &[(K, Duration)],
) -> Vec<(K, Duration)> {
    let since = |(key, span): &(K, Duration)| {
        let then = before.iter().find(|(known, _)| known == key);
        let then = then.map_or(Duration::ZERO, |(_, span)| *span);
        (key.clone(), span.saturating_sub(then))
    };
    now.iter().map(since).collect()
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
