//! A task that waited, and what rules ask of it.

use std::collections::BTreeMap;

use warmq_units::{CpuId, Duration, TaskId};

use crate::facts::Facts;
use crate::late::Late;
use crate::watch::{EndedWait, Program, Tally};
use crate::words::{part, rate, share, thousandths};

/// A task that wanted less of the time than this, in thousandths, is not looked at: it can have
/// waited for no more.
const LEAST_WANTED: u64 = 100;
const LEAST_SPAN: Duration = Duration::from_ms(50);
/// Who got less of what was due, in thousandths, starved: an estimate of what is due may be off by
/// a third.
const STARVED: u64 = 400;
/// Of whom less was due of what it wanted, in thousandths, what is due may be five times too much:
/// `cpu.shares` of 2, the least of cgroup v1, count as a `cpu.weight` of 1, the least of v2.
const COARSE_DUE: u64 = 10;
const COARSE: u64 = 5;
/// In a part of the time, who lost less than this of what was due did not starve: several slices of
/// the kernel's own. Whoever asks for a longer slice may have had two of these before
/// (`entity_lag()`).
const LEAST_LOSS: Duration = Duration::from_ms(20);
/// Who waited for so much of its waits, in thousandths, in long ones, waited long. Who did so once
/// and is served at once otherwise got what it asked for, if late.
const MOSTLY_LONG: u64 = 500;
/// Who is runnable for so much of its life, in thousandths, could always use a CPU. Whoever sleeps
/// in between may have got all that it asked for.
const ALWAYS: u64 = 800;
/// Moves between caches a second. A cache of some MB is filled in some 100 us: so many moves take a
/// hundredth of a CPU.
const LEAST_MOVES: u64 = 100;
/// Who is woken more often in a second does sleep, and is runnable most of the time because it
/// waits each time: that is a matter of slices and ticks as long as no wait is long.
const MOST_WOKEN: u64 = 10;
/// Whoever ran for less of the time that a task waited, in thousandths, is not named.
const LEAST_NAMED: u64 = 10;
/// So many of those are named who had the rest of a CPU.
const MOST_OF_REST: usize = 4;
const ALL: u64 = 1_000;
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
    /// It wanted a CPU for so much of the time that most rules can say something of it.
    pub wants_much: bool,
    /// The same, if it counts that a quota held it back, and waits that are not certain.
    pub asks_much: bool,
    /// It is woken often, and waits for longer than it runs.
    pub late: Option<Late>,
    /// It moves often between caches.
    pub moves: bool,
}

impl<'f, 'w> Case<'f, 'w> {
    /// The task, unless no rule can say anything of it.
    pub fn of(facts: &'f Facts<'w>, id: TaskId) -> Option<Case<'f, 'w>> {
        Case::new(facts, id, facts.tally(id))
    }

    /// One long wait of a task.
    pub fn of_wait(facts: &'f Facts<'w>, ended: &'f EndedWait) -> Option<Case<'f, 'w>> {
        Case::new(facts, ended.task, &ended.tally)
    }

    fn new(facts: &'f Facts<'w>, id: TaskId, tally: &'f Tally) -> Option<Case<'f, 'w>> {
        let task = facts.task(id);
        let wanted = tally.ran + tally.waited;
        let asked = wanted + tally.throttled + tally.doubted;
        let is_much = |span| span >= LEAST_SPAN && thousandths(span, facts.period) >= LEAST_WANTED;
        let (wants_much, asks_much) = (is_much(wanted), is_much(asked));
        let late = Late::of(facts, id);
        let moves = facts.whole && rate(tally.llc_moves, facts.period) >= LEAST_MOVES;
        if !asks_much && late.is_none() && !moves {
            return None;
        }
        let due = facts.dues.due(&task.who, facts.tally(id), tally);
        let always = thousandths(asked, facts.lived(task)) >= ALWAYS
            && rate(tally.wakeups, facts.period) <= MOST_WOKEN;
        let long = always || thousandths(tally.long_waits, tally.waited) >= MOSTLY_LONG;
        let least = LEAST_LOSS.max(task.who.slice * 2);
        let much = facts.whole || due.saturating_sub(tally.ran) >= least;
        let starved = match thousandths(due, wanted) {
            0..COARSE_DUE => part(due, STARVED / COARSE),
            _ => part(due, STARVED),
        };
        let starves = tally.ran < starved && long && much;
        let waited = thousandths(tally.waited, wanted);
        Some(Case {
            facts,
            id,
            tally,
            wanted,
            due,
            waited,
            starves,
            waited_long: waited >= WAITED_LONG && long,
            wants_much,
            asks_much,
            late,
            moves,
        })
    }

    /// For how long it was kept from running.
    pub fn lost(&self) -> Duration {
        self.tally.waited + self.tally.throttled
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
        let mut by_cpu: BTreeMap<CpuId, Duration> = BTreeMap::new();
        for place in &self.tally.places {
            *by_cpu.entry(place.cpu).or_default() += place.waited;
        }
        let mut places: Vec<(CpuId, Duration)> = by_cpu.into_iter().collect();
        places.sort_by_key(|(cpu, waited)| (std::cmp::Reverse(*waited), *cpu));
        let mut left = part(self.tally.waited, 900);
        let mut cpus = Vec::new();
        for (cpu, waited) in places {
            if left == Duration::ZERO {
                break;
            }
            left = left.saturating_sub(waited);
            cpus.push(cpu);
        }
        cpus
    }

    /// How long those ran where it waited of whom `is` is true. Of those who are not distinguished,
    /// a task of the same program and group stands for all.
    pub fn beside(&self, is: impl Fn(TaskId) -> bool) -> Duration {
        let tasks = self.tally.beside.iter().filter(|(id, _)| is(*id));
        let programs = self.tally.programs.iter();
        let programs = programs.filter(|(program, _)| self.stands_for(*program, &is));
        let tasks: Duration = tasks.map(|(_, span)| *span).sum();
        tasks + programs.map(|(_, span)| *span).sum()
    }

    /// Whether `is` is true of somebody of `program`.
    fn stands_for(&self, program: Program, is: impl Fn(TaskId) -> bool) -> bool {
        self.facts.of_program(program).is_some_and(is)
    }

    /// How long anybody ran there.
    fn all_beside(&self) -> Duration {
        self.beside(|_| true) + self.tally.beside_others
    }

    /// The same of those of whom `is` is true, in thousandths of all that ran there.
    pub fn share_beside(&self, is: impl Fn(TaskId) -> bool) -> u64 {
        thousandths(self.beside(is), self.all_beside())
    }

    /// Who ran there for long of whom `is` is true, most first.
    pub fn names_beside(&self, is: impl Fn(TaskId) -> bool) -> Vec<String> {
        let all = self.beside(|_| true);
        let long = |span: Duration| thousandths(span, all) >= LEAST_NAMED;
        let beside = self.tally.beside.iter();
        let mut those: Vec<_> = beside.filter(|(id, span)| is(*id) && long(*span)).collect();
        those.sort_by_key(|(id, span)| (std::cmp::Reverse(*span), *id));
        those.iter().map(|(id, _)| self.facts.name(*id)).collect()
    }

    /// `They had 62 % of the CPU while it waited; the rest: make (7) 30 %, others 8 %`: what those
    /// had of whom `is` is true, and who had the rest.
    pub fn had(&self, who: &str, is: impl Fn(TaskId) -> bool) -> String {
        let share_of = |span| thousandths(span, self.all_beside());
        let had = share_of(self.beside(&is));
        let tasks = self.tally.beside.iter().filter(|(id, _)| !is(*id));
        let tasks = tasks.map(|(id, span)| (self.facts.name(*id), *span));
        let programs = self.tally.programs.iter();
        let programs = programs.filter(|(program, _)| !self.stands_for(*program, &is));
        let programs = programs.map(|(program, span)| (self.facts.program(*program), *span));
        let mut rest: Vec<(String, Duration)> = tasks.chain(programs).collect();
        rest.sort_by_key(|(name, span)| (std::cmp::Reverse(*span), name.clone()));
        rest.retain(|(_, span)| share_of(*span) >= LEAST_NAMED);
        rest.truncate(MOST_OF_REST);
        let described =
            |(name, span): &(String, Duration)| format!("{name} {}", share(share_of(*span)));
        let mut parts: Vec<String> = rest.iter().map(described).collect();
        let named: u64 = rest.iter().map(|(_, span)| share_of(*span)).sum();
        let others = ALL.saturating_sub(had + named);
        if others >= LEAST_NAMED {
            parts.push(format!("others {}", share(others)));
        }
        let rest = match parts.is_empty() {
            true => String::new(),
            false => format!("; the rest: {}", parts.join(", ")),
        };
        format!("{who} had {} of the CPU while it waited{rest}", share(had))
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
