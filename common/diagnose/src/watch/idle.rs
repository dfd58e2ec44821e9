//! For how long some CPU idled that a task may use, or may not.

use std::collections::{BTreeMap, VecDeque};

use warmq_trace::Allowed;
use warmq_units::{CpuId, Duration, Instant};

/// More sets of CPUs than these are not distinguished: tasks of the others count as free to run
/// anywhere. A machine has one for each of its CPUs, and some for groups of its programs.
const MOST_SETS: usize = 1_024;

/// A CPU counts as idle when it has been so for this long. On a machine with many CPUs some CPU is
/// idle for a moment at nearly any time, and nobody could have used it.
const LONG: Duration = Duration::from_ms(1);

/// What a CPU does, as far as it matters here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Busy,
    /// It idles since then, which is not long yet.
    Since(Instant),
    Idle,
    /// Nobody knows.
    Unknown,
}

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
    cpus: Vec<State>,
    /// When CPUs that began to idle will have done so for long; in the order of time.
    soon: VecDeque<(Instant, usize)>,
    any: Clock,
    /// By set: the clock of the CPUs in it, and that of the others.
    sets: BTreeMap<Allowed, (Clock, Clock)>,
}

impl Idle {
    /// What `cpu` does is not known: it never counts as idle any more.
    pub fn distrust(&mut self, at: Instant, cpu: CpuId) {
        self.set(at, cpu, false);
        self.cpus[cpu.index()] = State::Unknown;
    }

    /// `cpu` idles from now on, or does not.
    pub fn set(&mut self, at: Instant, cpu: CpuId, idles: bool) {
        self.reach(at);
        let index = cpu.index();
        if self.cpus.len() <= index {
            self.cpus.resize(index + 1, State::Busy);
        }
        match (self.cpus[index], idles) {
            (State::Busy, true) => {
                self.cpus[index] = State::Since(at);
                self.soon.push_back((at + LONG, index));
            }
            (State::Idle, false) => {
                self.cpus[index] = State::Busy;
                self.change(at, index, false);
            }
            (State::Since(_), false) => self.cpus[index] = State::Busy,
            (State::Unknown, _) | (State::Busy, false) | (State::Since(_) | State::Idle, true) => {}
        }
    }

    /// Counts the CPUs that have been idle for long by now.
    fn reach(&mut self, at: Instant) {
        while let Some((then, index)) = self.soon.pop_front_if(|(then, _)| *then <= at) {
            let since = State::Since(Instant(then.0 - LONG.0));
            // Otherwise it was busy in between.
            if self.cpus[index] == since {
                self.cpus[index] = State::Idle;
                self.change(then, index, true);
            }
        }
    }

    fn change(&mut self, at: Instant, index: usize, idles: bool) {
        self.any.change(at, idles);
        for (set, (inside, outside)) in &mut self.sets {
            match set.has(CpuId(index as u16)) {
                true => inside.change(at, idles),
                false => outside.change(at, idles),
            }
        }
    }

    /// For how long there have been idle CPUs in `set` and outside of it.
    pub fn beside(&mut self, at: Instant, set: &Allowed) -> (Duration, Duration) {
        self.reach(at);
        if set.is_unknown() {
            return (self.any.until(at), Duration::ZERO);
        }
        if !self.sets.contains_key(set) {
            if self.sets.len() >= MOST_SETS {
                return (self.any.until(at), Duration::ZERO);
            }
            let clocks = self.clocks_of(at, set);
            self.sets.insert(set.clone(), clocks);
        }
        let (inside, outside) = self.sets[set];
        (inside.until(at), outside.until(at))
    }

    fn clocks_of(&self, at: Instant, set: &Allowed) -> (Clock, Clock) {
        let count = |wanted: bool| {
            let idle = self.cpus.iter().enumerate();
            let idle = idle.filter(|(_, state)| **state == State::Idle);
            let those = idle.filter(|(cpu, _)| set.has(CpuId(*cpu as u16)) == wanted);
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
        self.reach(from);
        let all = self.sets.values_mut();
        let all = all.flat_map(|(inside, outside)| [inside, outside]);
        for clock in all.chain([&mut self.any]) {
            (clock.since, clock.total) = (from, Duration::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::START + Duration::from_ms(ms)
    }

    #[test]
    fn only_a_long_idle_time_counts_within_and_outside_of_a_set() {
        let mut idle = Idle::default();
        let mut only_0 = Allowed::default();
        only_0.set(CpuId(0), 1);
        assert_eq!(idle.beside(ms(0), &only_0), Default::default());
        for (at, cpu, idles) in [(10, 1, true), (20, 0, true), (21, 0, false), (30, 1, false)] {
            idle.set(ms(at), CpuId(cpu), idles);
        }
        let inside_and_outside = (Duration::ZERO, Duration::from_ms(19));
        assert_eq!(idle.beside(ms(40), &only_0), inside_and_outside);
        assert_eq!(
            idle.beside(ms(40), &Allowed::default()).0,
            Duration::from_ms(19)
        );
    }
}
