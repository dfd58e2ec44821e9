//! A task that waited, and what rules ask of it.

use warmq_units::{CpuId, Duration, TaskId};

use crate::facts::Facts;
use crate::watch::Tally;
use crate::words::{part, rate, thousandths};

/// A task that wanted less of the time than this, in thousandths, is not looked at: it can have
/// waited for no more.
const LEAST_WANTED: u64 = 100;
const LEAST_SPAN: Duration = Duration::from_ms(50);
/// Who got less of what was due, in thousandths, starved: an estimate of what is due may be off by
/// a third.
const STARVED: u64 = 400;
/// One wait of this length is more than slices and ticks explain.
const LONG_WAIT: Duration = Duration::from_ms(100);
/// Who is runnable for so much of its life, in thousandths, could always use a CPU. Whoever sleeps
/// in between may have got all that it asked for.
const ALWAYS: u64 = 800;
/// Who is woken more often in a second does sleep, and is runnable most of the time because it waits
/// each time: that is a matter of slices and ticks as long as no wait is long.
const MOST_WOKEN: u64 = 10;
/// Whoever ran for less of the time that a task waited, in thousandths, is not named.
const TOLD_BESIDE: u64 = 10;
/// Who waited for so much of what it wanted, in thousandths, waited long, be it fair or not.
const WAITED_LONG: u64 = 750;

/// A task, and what is asked of it by most rules.
pub(crate) struct Case<'f, 'w> {
    pub facts: &'f Facts<'w>,
    pub id: TaskId,
    pub tally: &'f Tally,
    /// For how long it was runnable, and not held back by a quota.
    pub wanted: Duration,
    /// What of that was due.
    pub due: Duration,
    /// In thousandths of what it wanted.
    pub waited: u64,
    /// It got much less than was due.
    pub starves: bool,
    /// It waited long, be it fair or not.
    pub waited_long: bool,
}

impl<'f, 'w> Case<'f, 'w> {
    /// The task, unless it hardly wanted a CPU.
    pub fn of(facts: &'f Facts<'w>, id: TaskId) -> Option<Case<'f, 'w>> {
        let task = facts.task(id);
        let tally = &task.tally;
        let wanted = tally.ran + tally.waited;
        let asked = wanted + tally.held.throttled;
        if asked < LEAST_SPAN || thousandths(asked, facts.period) < LEAST_WANTED {
            return None;
        }
        let due = facts.dues.due(task, facts.period);
        let always = thousandths(asked, facts.lived(task)) >= ALWAYS
            && rate(tally.wakeups, facts.period) <= MOST_WOKEN;
        let starves =
            tally.ran < part(due, STARVED) && (tally.longest.span() >= LONG_WAIT || always);
        let waited = thousandths(tally.waited, wanted);
        Some(Case {
            facts,
            id,
            tally,
            wanted,
            due,
            waited,
            starves,
            waited_long: waited >= WAITED_LONG && (tally.longest.span() >= LONG_WAIT || always),
        })
    }

    /// What it is called.
    pub fn name(&self) -> String {
        self.facts.name(self.id)
    }

    pub fn group(&self) -> u32 {
        self.facts.task(self.id).who.group
    }

    /// Where it waited for most of its time: the fewest CPUs that have nine tenths of it.
    pub fn where_it_waited(&self) -> Vec<CpuId> {
        let mut places = self.tally.places.clone();
        places.sort_by_key(|it| (std::cmp::Reverse(it.waited), it.cpu));
        let mut left = part(self.tally.waited, 900);
        let mut cpus = Vec::new();
        for place in places {
            if left == Duration::ZERO {
                break;
            }
            left = left.saturating_sub(place.waited);
            cpus.push(place.cpu);
        }
        cpus
    }

    /// How long those ran where it waited of whom `is` is true.
    pub fn beside(&self, is: impl Fn(TaskId) -> bool) -> Duration {
        let those = self.tally.beside.iter().filter(|(id, _)| is(*id));
        those.map(|(_, span)| *span).sum()
    }

    /// The same in thousandths of all that ran there.
    pub fn share_beside(&self, is: impl Fn(TaskId) -> bool) -> u64 {
        let all = self.beside(|_| true) + self.tally.beside_others;
        thousandths(self.beside(is), all)
    }

    /// The same in thousandths of those that are listed: of very many some are not.
    pub fn share_of_known(&self, is: impl Fn(TaskId) -> bool) -> u64 {
        thousandths(self.beside(is), self.beside(|_| true))
    }

    /// Who ran there for long of whom `is` is true, most first.
    pub fn names_beside(&self, is: impl Fn(TaskId) -> bool) -> Vec<String> {
        let all = self.beside(|_| true);
        let long = |span: Duration| thousandths(span, all) >= TOLD_BESIDE;
        let beside = self.tally.beside.iter();
        let mut those: Vec<_> = beside.filter(|(id, span)| is(*id) && long(*span)).collect();
        those.sort_by_key(|(id, span)| (std::cmp::Reverse(*span), *id));
        those.iter().map(|(id, _)| self.facts.name(*id)).collect()
    }

    /// What it got, in thousandths of what it wanted.
    pub fn got(&self) -> u64 {
        thousandths(self.tally.ran, self.wanted)
    }

    /// What it was due, in thousandths of what it wanted.
    pub fn was_due(&self) -> u64 {
        thousandths(self.due, self.wanted)
    }
}
