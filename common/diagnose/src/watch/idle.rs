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

/// For how long CPUs idled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Beside {
    /// In a set.
    pub inside: Duration,
    /// Outside of it.
    pub outside: Duration,
    /// In it and under one cache.
    pub near: Duration,
}

/// The clocks of a set of CPUs, seen from under a cache.
#[derive(Clone, Copy, Debug, Default)]
struct Clocks {
    inside: Clock,
    outside: Clock,
    near: Clock,
}

/// A set that a task may use, and the last-level cache of the CPU where it waits, if that is known.
type Seen = (Allowed, Option<u16>);

/// The idle CPUs, and the time that there were some within and outside of each set of CPUs that a
/// task was bound to.
#[derive(Debug, Default)]
pub(super) struct Idle {
    cpus: Vec<State>,
    /// The last-level cache of each CPU, as far as these are known.
    llcs: Vec<u16>,
    /// When CPUs that began to idle will have done so for long; in the order of time.
    soon: VecDeque<(Instant, usize)>,
    any: Clock,
    sets: BTreeMap<Seen, Clocks>,
}

impl Idle {
    /// Of CPUs under these caches.
    pub fn of(llcs: &[u16]) -> Idle {
        Idle {
            llcs: llcs.to_vec(),
            ..Idle::default()
        }
    }

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
        let llc = self.llcs.get(index);
        for ((set, under), clocks) in &mut self.sets {
            match set.has(CpuId(index as u16)) {
                true => clocks.inside.change(at, idles),
                false => clocks.outside.change(at, idles),
            }
            if set.has(CpuId(index as u16)) && under.as_ref() == llc {
                clocks.near.change(at, idles);
            }
        }
    }

    /// For how long there have been idle CPUs in `set`, outside of it, and in it under the cache of
    /// `cpu`.
    pub fn beside(&mut self, at: Instant, set: &Allowed, cpu: CpuId) -> Beside {
        self.reach(at);
        let seen = (set.clone(), self.llcs.get(cpu.index()).copied());
        if !self.sets.contains_key(&seen) {
            if self.sets.len() >= MOST_SETS {
                let inside = self.any.until(at);
                return Beside {
                    inside,
                    near: inside,
                    outside: Duration::ZERO,
                };
            }
            let clocks = self.clocks_of(at, &seen);
            self.sets.insert(seen.clone(), clocks);
        }
        let clocks = &self.sets[&seen];
        Beside {
            inside: clocks.inside.until(at),
            outside: clocks.outside.until(at),
            near: clocks.near.until(at),
        }
    }

    fn clocks_of(&self, at: Instant, (set, under): &Seen) -> Clocks {
        let count = |wanted: &dyn Fn(usize) -> bool| {
            let idle = self.cpus.iter().enumerate();
            let idle = idle.filter(|(cpu, state)| **state == State::Idle && wanted(*cpu));
            Clock {
                cpus: idle.count() as u32,
                since: at,
                total: Duration::ZERO,
            }
        };
        let has = |cpu: usize| set.has(CpuId(cpu as u16));
        Clocks {
            inside: count(&has),
            outside: count(&|cpu| !has(cpu)),
            near: count(&|cpu| has(cpu) && under.as_ref() == self.llcs.get(cpu)),
        }
    }

    /// The measurement begins.
    pub fn restart(&mut self, from: Instant) {
        self.reach(from);
        let all = self.sets.values_mut();
        let all =
            all.flat_map(|clocks| [&mut clocks.inside, &mut clocks.outside, &mut clocks.near]);
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
        // CPUs 0 and 1 share a cache, which CPU 2 does not.
        let mut idle = Idle::of(&[0, 0, 1]);
        let [mut only_0, mut but_1] = [Allowed::default(), Allowed::default()];
        only_0.set(CpuId(0), 1);
        but_1.set(CpuId(0), 0b101);
        let all = Allowed::default();
        let spans = |idle: &mut Idle, set: &Allowed, cpu| {
            let beside = idle.beside(ms(40), set, CpuId(cpu));
            [beside.inside, beside.outside, beside.near].map(|span| span.as_ns() / 1_000_000)
        };
        for set in [&only_0, &but_1, &all] {
            for cpu in [0, 2] {
                assert_eq!(idle.beside(ms(0), set, CpuId(cpu)), Beside::default());
            }
        }
        for (at, cpu, idles) in [(10, 1, true), (20, 0, true), (21, 0, false), (30, 1, false)] {
            idle.set(ms(at), CpuId(cpu), idles);
        }
        assert_eq!(spans(&mut idle, &only_0, 0), [0, 19, 0]);
        assert_eq!(spans(&mut idle, &all, 0), [19, 0, 19]);
        assert_eq!(spans(&mut idle, &all, 2), [19, 0, 0]);
        idle.set(ms(30), CpuId(2), true);
        assert_eq!(spans(&mut idle, &but_1, 0), [9, 19, 0]);
        assert_eq!(spans(&mut idle, &but_1, 2), [9, 19, 9]);
    }
}
