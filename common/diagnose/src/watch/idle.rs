//! For how long some CPU idled that a task may use, or may not.

use std::collections::{BTreeMap, VecDeque};

use warmq_trace::Allowed;
use warmq_units::{CpuId, Duration, Instant};

use super::sums::sums;

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

sums! {
    /// For how long some CPU idled, beside one where a task waits.
    Beside {
        /// One that the task may use.
        inside: Duration,
        /// One that it may not use.
        outside: Duration,
        /// One that it may use under the cache of the CPU where it waits.
        near: Duration,
        /// One that it may use of the memory node of that CPU.
        on_node: Duration,
    }
}

/// Where a CPU is, as far as that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    llc: Option<u16>,
    node: Option<u16>,
}

/// A set that a task may use, and where the CPU is where it waits.
type Seen = (Allowed, Place);

/// The clocks of a set of CPUs, seen from a place: those of [`Beside`], in its order.
type Clocks = [Clock; 4];

/// Which of the clocks count `cpu`, which is at `there`.
fn counting((set, from): &Seen, cpu: CpuId, there: Place) -> [bool; 4] {
    let inside = set.has(cpu);
    [
        inside,
        !inside,
        inside && from.llc == there.llc,
        inside && from.node == there.node,
    ]
}

/// The idle CPUs, and the time that there were some within and outside of each set of CPUs that a
/// task was bound to.
#[derive(Debug, Default)]
pub(super) struct Idle {
    cpus: Vec<State>,
    /// The last-level cache and the memory node of each CPU, as far as these are known.
    llcs: Vec<u16>,
    nodes: Vec<u16>,
    /// When CPUs that began to idle will have done so for long; in the order of time.
    soon: VecDeque<(Instant, usize)>,
    any: Clock,
    sets: BTreeMap<Seen, Clocks>,
}

impl Idle {
    /// Of CPUs under these caches and of these memory nodes.
    pub fn of(llcs: &[u16], nodes: &[u16]) -> Idle {
        Idle {
            llcs: llcs.to_vec(),
            nodes: nodes.to_vec(),
            ..Idle::default()
        }
    }

    fn place(&self, cpu: usize) -> Place {
        Place {
            llc: self.llcs.get(cpu).copied(),
            node: self.nodes.get(cpu).copied(),
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
        let there = self.place(index);
        for (seen, clocks) in &mut self.sets {
            let counts = counting(seen, CpuId(index as u16), there);
            let those = clocks.iter_mut().zip(counts).filter(|(_, counts)| *counts);
            those.for_each(|(clock, _)| clock.change(at, idles));
        }
    }

    /// For how long CPUs have idled beside a task that may use `set` and waits on `cpu`.
    pub fn beside(&mut self, at: Instant, set: &Allowed, cpu: CpuId) -> Beside {
        self.reach(at);
        let seen = (set.clone(), self.place(cpu.index()));
        if !self.sets.contains_key(&seen) {
            if self.sets.len() >= MOST_SETS {
                let inside = self.any.until(at);
                return Beside {
                    inside,
                    outside: Duration::ZERO,
                    near: inside,
                    on_node: inside,
                };
            }
            let clocks = self.clocks_of(at, &seen);
            self.sets.insert(seen.clone(), clocks);
        }
        let [inside, outside, near, on_node] = self.sets[&seen].map(|clock| clock.until(at));
        Beside {
            inside,
            outside,
            near,
            on_node,
        }
    }

    fn clocks_of(&self, at: Instant, seen: &Seen) -> Clocks {
        let mut clocks = Clocks::default();
        for (cpu, state) in self.cpus.iter().enumerate() {
            let counts = counting(seen, CpuId(cpu as u16), self.place(cpu));
            for (clock, counts) in clocks.iter_mut().zip(counts) {
                clock.cpus += u32::from(counts && *state == State::Idle);
                clock.since = at;
            }
        }
        clocks
    }

    /// The measurement begins.
    pub fn restart(&mut self, from: Instant) {
        self.reach(from);
        let all = self.sets.values_mut().flatten();
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
        // CPUs 0 and 1 share a cache, CPUs 0 and 2 a memory node.
        let mut idle = Idle::of(&[0, 0, 1], &[0, 1, 0]);
        let [mut only_0, mut but_1] = [Allowed::default(), Allowed::default()];
        only_0.set(CpuId(0), 1);
        but_1.set(CpuId(0), 0b101);
        let all = Allowed::default();
        let spans = |idle: &mut Idle, set: &Allowed, cpu| {
            let beside = idle.beside(ms(40), set, CpuId(cpu));
            let Beside {
                inside,
                outside,
                near,
                on_node,
            } = beside;
            [inside, outside, near, on_node].map(|span| span.as_ns() / 1_000_000)
        };
        for set in [&only_0, &but_1, &all] {
            for cpu in [0, 2] {
                assert_eq!(idle.beside(ms(0), set, CpuId(cpu)), Beside::default());
            }
        }
        for (at, cpu, idles) in [(10, 1, true), (20, 0, true), (21, 0, false), (30, 1, false)] {
            idle.set(ms(at), CpuId(cpu), idles);
        }
        assert_eq!(spans(&mut idle, &only_0, 0), [0, 19, 0, 0]);
        assert_eq!(spans(&mut idle, &all, 0), [19, 0, 19, 0]);
        assert_eq!(spans(&mut idle, &all, 2), [19, 0, 0, 0]);
        idle.set(ms(30), CpuId(2), true);
        assert_eq!(spans(&mut idle, &but_1, 0), [9, 19, 0, 9]);
        assert_eq!(spans(&mut idle, &but_1, 2), [9, 19, 9, 9]);
    }
}
