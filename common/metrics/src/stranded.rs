//! For how long a CPU idles beside a waiting task that it could run.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use warmq_trace::{Allowed, Table};
use warmq_units::{CpuId, Duration, Instant, TaskId};

/// The longest time for which one CPU was idle while one task that may run there waited.
///
/// Whoever owns it says who waits and which CPUs idle. A wait or an idle time that lasts to the end
/// counts ([`StrandedMeter::longest`]).
#[derive(Clone, Debug, Default)]
pub struct StrandedMeter {
    from: Instant,
    /// Since when each CPU idles, oldest first.
    idle: BTreeSet<(Instant, CpuId)>,
    idle_since: BTreeMap<CpuId, Instant>,
    /// Since when each task waits that may run anywhere, oldest first.
    waiting: BTreeSet<(Instant, TaskId)>,
    waiting_since: BTreeMap<TaskId, Instant>,
    /// The tasks that wait and may not run anywhere.
    bound: BTreeSet<TaskId>,
    allowed: Table<TaskId, Allowed>,
    longest: Duration,
}

impl StrandedMeter {
    /// Counts what happens at `from` or later.
    pub fn starting_at(from: Instant) -> StrandedMeter {
        StrandedMeter {
            from,
            ..StrandedMeter::default()
        }
    }

    /// `cpu` has nothing to run.
    pub fn idles(&mut self, at: Instant, cpu: CpuId) {
        if let Entry::Vacant(vacant) = self.idle_since.entry(cpu) {
            vacant.insert(at);
            self.idle.insert((at, cpu));
        }
    }

    /// `cpu` runs something, or goes offline.
    pub fn is_busy(&mut self, at: Instant, cpu: CpuId) {
        let Some(since) = self.idle_since.remove(&cpu) else {
            return;
        };
        let beside = self.beside_cpu(since, cpu);
        self.overlap(at, beside);
        self.idle.remove(&(since, cpu));
    }

    /// `task` waits for a CPU.
    pub fn waits(&mut self, at: Instant, task: TaskId) {
        if self.waiting_since.contains_key(&task) {
            return;
        }
        self.waiting_since.insert(task, at);
        match self.allowed.get(task).is_none_or(Allowed::is_all) {
            true => drop(self.waiting.insert((at, task))),
            false => drop(self.bound.insert(task)),
        }
    }

    /// `task` waits no more.
    pub fn leaves(&mut self, at: Instant, task: TaskId) {
        let Some(since) = self.waiting_since.get(&task).copied() else {
            return;
        };
        let beside = self.beside_task(since, task);
        self.overlap(at, beside);
        self.waiting_since.remove(&task);
        self.waiting.remove(&(since, task));
        self.bound.remove(&task);
    }

    /// The CPUs of `task` from `first` on, at most 64, are now those of `cpus`.
    pub fn binds(&mut self, at: Instant, task: TaskId, first: CpuId, cpus: u64) {
        // A waiting task waits for its new CPUs from here on.
        let waits = self.waiting_since.contains_key(&task);
        self.leaves(at, task);
        self.allowed.touch(task).set(first, cpus);
        if waits {
            self.waits(at, task);
        }
    }

    /// The longest time so far, up to `end`.
    pub fn longest(&self, end: Instant) -> Duration {
        let open = self.idle.iter();
        let open = open.filter_map(|(since, cpu)| self.beside_cpu(*since, *cpu));
        let spans = open.map(|since| end.since(since.max(self.from)));
        spans.fold(self.longest, Duration::max)
    }

    /// Since when `cpu`, which idles since `since`, has been idle beside a task.
    fn beside_cpu(&self, since: Instant, cpu: CpuId) -> Option<Instant> {
        let allows = |task: &&TaskId| self.allowed.get(**task).is_some_and(|set| set.has(cpu));
        let bound = self.bound.iter().filter(allows);
        let bound = bound.filter_map(|task| self.waiting_since.get(task)).min();
        let oldest = self.waiting.first().map(|(since, _)| since);
        let waits = bound.into_iter().chain(oldest).min()?;
        Some(since.max(*waits))
    }

    /// Since when `task`, which waits since `since`, has waited beside an idle CPU.
    fn beside_task(&self, since: Instant, task: TaskId) -> Option<Instant> {
        let allowed = self.allowed.get(task);
        let allows = |cpu| allowed.is_none_or(|allowed| allowed.has(cpu));
        let (idles, _) = self.idle.iter().find(|(_, cpu)| allows(*cpu))?;
        Some(since.max(*idles))
    }

    fn overlap(&mut self, at: Instant, since: Option<Instant>) {
        if let Some(since) = since {
            self.longest = self.longest.max(at.since(since.max(self.from)));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Event {
        Idles(u16),
        Busy(u16),
        Waits(u32),
        Leaves(u32),
        Binds(u32, u64),
    }

    fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
        let event = prop_oneof![
            (0u16..3).prop_map(Event::Idles),
            (0u16..3).prop_map(Event::Busy),
            (0u32..3).prop_map(Event::Waits),
            (0u32..3).prop_map(Event::Leaves),
            (0u32..3, 1u64..8).prop_map(|(task, cpus)| Event::Binds(task, cpus | !7)),
        ];
        proptest::collection::vec((0u64..5, event), 0..40)
    }

    /// The same, by looking at each pair at each time.
    #[derive(Default)]
    struct Slow {
        idle: [bool; 3],
        waits: [bool; 3],
        cpus: [u64; 3],
        pairs: [[u64; 3]; 3],
        longest: u64,
    }

    impl Slow {
        fn pass(&mut self, now: u64, span: u64, from: u64) {
            for cpu in 0..3 {
                for task in 0..3 {
                    let may = self.cpus[task] >> cpu & 1 == 1;
                    let pair = &mut self.pairs[cpu][task];
                    match self.idle[cpu] && self.waits[task] && may {
                        true => *pair += span.min((now + span).saturating_sub(from)),
                        false => *pair = 0,
                    }
                    self.longest = self.longest.max(*pair);
                }
            }
        }

        fn happen(&mut self, event: Event) {
            let again = |pairs: &mut [[u64; 3]; 3], task: usize| {
                pairs.iter_mut().for_each(|pair| pair[task] = 0);
            };
            match event {
                Event::Idles(cpu) => self.idle[cpu as usize] = true,
                Event::Busy(cpu) => {
                    self.idle[cpu as usize] = false;
                    self.pairs[cpu as usize] = [0; 3];
                }
                Event::Waits(task) => self.waits[task as usize] = true,
                Event::Leaves(task) => {
                    self.waits[task as usize] = false;
                    again(&mut self.pairs, task as usize);
                }
                Event::Binds(task, cpus) => {
                    self.cpus[task as usize] = cpus;
                    again(&mut self.pairs, task as usize);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn the_longest_time_is_that_of_the_longest_pair(
            events in events(), from in 0u64..40, rest in 0u64..5,
        ) {
            let mut meter = StrandedMeter::starting_at(Instant(from));
            let mut slow = Slow { cpus: [u64::MAX; 3], ..Slow::default() };
            let mut now = 0;
            for (wait, event) in events {
                slow.pass(now, wait, from);
                now += wait;
                let at = Instant(now);
                match event {
                    Event::Idles(cpu) => meter.idles(at, CpuId(cpu)),
                    Event::Busy(cpu) => meter.is_busy(at, CpuId(cpu)),
                    Event::Waits(task) => meter.waits(at, TaskId(task)),
                    Event::Leaves(task) => meter.leaves(at, TaskId(task)),
                    Event::Binds(task, cpus) => meter.binds(at, TaskId(task), CpuId(0), cpus),
                }
                slow.happen(event);
            }
            slow.pass(now, rest, from);
            prop_assert_eq!(meter.longest(Instant(now + rest)), Duration(slow.longest));
        }
    }
}
