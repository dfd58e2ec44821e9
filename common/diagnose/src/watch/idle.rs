//! For how long some CPU idled that a task may use, or may not.

use std::collections::BTreeMap;

use warmq_units::{CpuId, Duration, Instant};

const WORD: usize = u64::BITS as usize;

/// More sets of CPUs than these are not told apart: tasks of the others count as free to run
/// anywhere. A machine has one for each of its CPUs, and some for groups of its programs.
const MOST_SETS: usize = 1_024;

/// A time that is counted while a number is more than zero.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    cpus: u32,
    since: Instant,
    total: Duration,
}

impl Clock {
    fn until(&self, at: Instant) -> Duration {
        match self.cpus {
            0 => self.total,
            _ => self.total + at.since(self.since),
        }
    }

    fn change(&mut self, at: Instant, more: bool) {
        self.total = self.until(at);
        self.since = at;
        self.cpus = match more {
            true => self.cpus + 1,
            false => self.cpus.saturating_sub(1),
        };
    }
}

/// The idle CPUs, and the time that there were some within and outside of each set of CPUs that a
/// task was bound to.
#[derive(Debug, Default)]
pub(super) struct Idle {
    idle: Vec<bool>,
    any: Clock,
    /// By set: the clock of the CPUs in it, and that of the others.
    sets: BTreeMap<Vec<u64>, (Clock, Clock)>,
}

fn has(set: &[u64], cpu: usize) -> bool {
    let word = set.get(cpu / WORD).copied();
    word.unwrap_or(u64::MAX) >> (cpu % WORD) & 1 == 1
}

impl Idle {
    /// `cpu` idles from now on, or does not.
    pub fn set(&mut self, at: Instant, cpu: CpuId, idles: bool) {
        let index = cpu.index();
        if self.idle.len() <= index {
            self.idle.resize(index + 1, false);
        }
        if std::mem::replace(&mut self.idle[index], idles) == idles {
            return;
        }
        self.any.change(at, idles);
        for (set, (inside, outside)) in &mut self.sets {
            match has(set, index) {
                true => inside.change(at, idles),
                false => outside.change(at, idles),
            }
        }
    }

    /// For how long there have been idle CPUs in `set` and outside of it; none stands for all.
    pub fn beside(&mut self, at: Instant, set: Option<&[u64]>) -> (Duration, Duration) {
        let Some(set) = set else {
            return (self.any.until(at), Duration::ZERO);
        };
        if !self.sets.contains_key(set) {
            if self.sets.len() >= MOST_SETS {
                return (self.any.until(at), Duration::ZERO);
            }
            let clocks = self.clocks_of(at, set);
            self.sets.insert(set.to_vec(), clocks);
        }
        let (inside, outside) = self.sets[set];
        (inside.until(at), outside.until(at))
    }

    fn clocks_of(&self, at: Instant, set: &[u64]) -> (Clock, Clock) {
        let count = |wanted: bool| {
            let idle = self.idle.iter().enumerate();
            let those = idle.filter(|(cpu, idles)| **idles && has(set, *cpu) == wanted);
            Clock {
                cpus: those.count() as u32,
                since: at,
                total: Duration::ZERO,
            }
        };
        (count(true), count(false))
    }

    /// The measurement begins.
    pub fn restart(&mut self, from: Instant) {
        let all = self.sets.values_mut();
        let all = all.flat_map(|(inside, outside)| [inside, outside]);
        for clock in all.chain([&mut self.any]) {
            (clock.since, clock.total) = (from, Duration::ZERO);
        }
    }
}
