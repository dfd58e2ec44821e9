//! What changes while a scenario runs, with its numbers.

use std::ops::Range;

use warmq_units::{CpuSet, Duration, Instant};

use super::Cpus;
use crate::bind::{Bound, EvalError};
use crate::change::{Change, Occurs, SchedulerChoice, Set, Target};
use crate::object::{ObjectId, Rate};
use crate::step::Fragment;
use crate::task::{Policy, TaskKindId};

/// A change with its numbers.
#[derive(Clone, Debug)]
pub struct Planned {
    /// When.
    pub times: Occurrences,
    /// Of whom.
    pub whom: Whom,
    /// To what, in the order of the documentation.
    pub set: Vec<To>,
}

/// The times of a change.
#[derive(Clone, Copy, Debug)]
pub struct Occurrences {
    /// When it takes place next; none: never again.
    pub next: Option<Instant>,
    period: Duration,
    end: Instant,
}

impl Iterator for Occurrences {
    type Item = Instant;

    fn next(&mut self) -> Option<Instant> {
        let now = self.next?;
        let next = now.0.checked_add(self.period.0).map(Instant);
        self.next = next.filter(|time| *time < self.end);
        Some(now)
    }
}

/// Who is changed.
#[derive(Clone, Debug)]
pub enum Whom {
    /// Tasks of a table, by their numbers.
    Tasks(TaskKindId, Range<u64>),
    /// Groups, by their places among all groups.
    Groups(Range<usize>),
    /// CPUs.
    Cpus(CpuSet),
    /// Sources of a table, by their numbers.
    Sources(ObjectId, Range<u64>),
    /// The scheduler.
    Scheduler,
}

/// What is set.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "Set says what each is")]
pub enum To {
    Cpus(CpuSet),
    Nice(i8),
    Policy(Policy),
    Slice(Duration),
    UclampMin(u16),
    UclampMax(u16),
    /// The place of a group among all groups.
    Group(usize),
    Fragment(Option<u32>),
    Stopped(bool),
    Weight(u32),
    Quota(Duration),
    Burst(Duration),
    Idle(bool),
    Frozen(bool),
    Online(bool),
    Arrival(CpuSet),
    Rate(Rate),
    Scheduler(SchedulerChoice),
}

impl Bound {
    /// All changes, in the order of the file, on a machine of these `cpus`.
    ///
    /// # Errors
    /// As [`Bound::eval`].
    pub fn planned(&self, cpus: &Cpus) -> Result<Vec<Planned>, EvalError> {
        let planned = |change: &Change| {
            let set = change.set.iter().map(|set| self.to(set, cpus, &[]));
            Ok(Planned {
                times: self.occurrences(&change.occurs)?,
                whom: self.whom(&change.target, cpus)?,
                set: set.collect::<Result<_, _>>()?,
            })
        };
        self.scenario().changes().iter().map(planned).collect()
    }

    fn occurrences(&self, occurs: &Occurs) -> Result<Occurrences, EvalError> {
        // Nothing has indexes here.
        let at = |expr| self.eval(expr, &[]);
        let (first, period, end) = match occurs {
            Occurs::At(when) => (at(when)?, u64::MAX, u64::MAX),
            Occurs::Every { period, start, end } => {
                let period = at(period)?;
                let first = start.as_ref().map_or(Ok(period), at)?;
                (first, period, end.as_ref().map_or(Ok(u64::MAX), at)?)
            }
        };
        Ok(Occurrences {
            next: (first < end).then_some(Instant(first)),
            period: Duration(period),
            end: Instant(end),
        })
    }

    fn whom(&self, target: &Target, cpus: &Cpus) -> Result<Whom, EvalError> {
        let one = |number: u64| number..number + 1;
        let groups = |id: ObjectId, numbers: Range<u64>| {
            let first = self.object_of_class(id, 0);
            Whom::Groups((first + numbers.start) as usize..(first + numbers.end) as usize)
        };
        Ok(match target {
            Target::Task(task) => Whom::Tasks(task.task, one(self.task_number(task, &[])?)),
            Target::Tasks(kind) => Whom::Tasks(*kind, 0..self.tasks(*kind)),
            Target::Group(group) => groups(group.object, one(self.object_number(group, &[])?)),
            Target::Groups(id) => groups(*id, 0..self.objects(*id)),
            Target::Cpus(place) => Whom::Cpus(cpus.at(self, place, &[])?),
            Target::Source(source) => {
                Whom::Sources(source.object, one(self.object_number(source, &[])?))
            }
            Target::Sources(id) => Whom::Sources(*id, 0..self.objects(*id)),
            Target::Scheduler => Whom::Scheduler,
        })
    }

    /// What `set` means for `indexes`, those of the task that sets it of itself.
    ///
    /// # Errors
    /// As [`Bound::eval`].
    pub fn to(&self, set: &Set, cpus: &Cpus, indexes: &[u64]) -> Result<To, EvalError> {
        let number = |expr| self.eval(expr, indexes);
        let time = |expr| number(expr).map(Duration);
        Ok(match set {
            Set::Cpus(place) => To::Cpus(cpus.at(self, place, indexes)?),
            Set::Nice(nice) => To::Nice(self.nice(nice, indexes)?),
            Set::Policy(policy) => To::Policy(*policy),
            Set::Slice(slice) => To::Slice(time(slice)?),
            Set::UclampMin(util) => To::UclampMin(number(util)? as u16),
            Set::UclampMax(util) => To::UclampMax(number(util)? as u16),
            Set::Group(group) => To::Group(self.object_place(group, indexes)?),
            Set::Fragment(Fragment::None) => To::Fragment(None),
            Set::Fragment(Fragment::Number(fragment)) => {
                To::Fragment(Some(number(fragment)? as u32))
            }
            Set::Stop => To::Stopped(true),
            Set::Continue => To::Stopped(false),
            Set::Weight(weight) => To::Weight(number(weight)? as u32),
            Set::Quota(quota) => To::Quota(time(quota)?),
            Set::Burst(burst) => To::Burst(time(burst)?),
            Set::Idle(idle) => To::Idle(*idle),
            Set::Freeze => To::Frozen(true),
            Set::Thaw => To::Frozen(false),
            Set::Online(online) => To::Online(*online),
            Set::Arrival(place) => To::Arrival(cpus.at(self, place, indexes)?),
            Set::Rate(rate) => To::Rate(rate.clone()),
            Set::Scheduler(choice) => To::Scheduler(choice.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Cpu;
    use crate::{Scenario, Site};
    use warmq_config::Chosen;
    use warmq_units::CpuId;

    fn planned(changes: &str) -> Vec<Planned> {
        let text = format!(
            "[group.g]\ncount = 2\n[group.h]\n[datagram.d]\n[source.s]\ncount = 3\nto = \"d\"\n\
             bytes = \"1B\"\nrate = \"9 per s\"\n[task.t]\ncount = 4\nbody = [{{ run = \"1ms\" }}]\n{changes}"
        );
        let scenario =
            Scenario::read("test.toml", &text).unwrap_or_else(|problems| panic!("{problems}"));
        let defaults = Chosen::new(scenario.settings(), Default::default()).unwrap();
        let bound = scenario.bind(&defaults, &Site::default());
        let cpu = |id| Cpu {
            id: CpuId(id),
            llc: 0,
            node: 0,
            socket: 0,
            core: id.into(),
        };
        let planned = bound
            .unwrap()
            .planned(&[2, 5].map(cpu).into_iter().collect());
        planned.unwrap_or_else(|problems| panic!("{problems}"))
    }

    fn times(when: &str) -> Vec<u64> {
        let text = format!("[[change]]\n{when}\ntask = \"t\"\nset = {{ nice = 1 }}\n");
        let times = planned(&text)[0].times.take(9);
        times.map(|at| at.0 / 1_000_000_000).collect()
    }

    #[test]
    fn a_change_takes_place_once_or_until_its_end() {
        assert_eq!(times("at = \"7ms\""), [7]);
        assert_eq!(times("every = \"2ms\"\nend = \"7ms\""), [2, 4, 6]);
        assert_eq!(
            times("every = \"2ms\"\nstart = \"1ms\"\nend = \"5ms\""),
            [1, 3]
        );
        assert_eq!(times("every = \"2ms\"")[8], 18);
        // In no world.
        assert_eq!(
            times("every = \"1ms\"\nstart = \"5ms\"\nend = \"3ms\""),
            [0; 0]
        );
    }

    #[test]
    fn who_is_changed_and_to_what_are_numbers() {
        let change = |target: &str, set: &str| {
            let text = format!("[[change]]\nat = \"1s\"\n{target}\nset = {{ {set} }}\n");
            let planned = planned(&text).remove(0);
            format!("{:?} {:?}", planned.whom, planned.set)
        };
        for (target, set, wanted) in [
            (
                "task = \"t[2]\"",
                "nice = 5, cpus = \"core 5\", group = \"h\"",
                "Tasks(TaskKindId(0), 2..3) [Cpus(CpuSet { words: [32] }), Nice(5), Group(2)]",
            ),
            (
                "task = \"t\"",
                "stop = true",
                "Tasks(TaskKindId(0), 0..4) [Stopped(true)]",
            ),
            (
                "group = \"g\"",
                "weight = 7, freeze = true",
                "Groups(0..2) [Weight(7), Frozen(true)]",
            ),
            (
                "group = \"h\"",
                "thaw = true",
                "Groups(2..3) [Frozen(false)]",
            ),
            (
                "source = \"s[1]\"",
                "cpu = \"cpu 2\", continue = true",
                "Sources(ObjectId(1), 1..2) [Arrival(CpuSet { words: [4] }), Stopped(false)]",
            ),
            (
                "cpu = \"part 1 of 2\"",
                "online = false",
                "Cpus(CpuSet { words: [32] }) [Online(false)]",
            ),
        ] {
            assert_eq!(change(target, set), wanted);
        }
    }
}
