//! What the player itself knows of a run: its tasks, what they logged, what was counted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use warmq_scenario::program::{APP, Spec};
use warmq_trace::{Cause, Comm, Policy, Record, players};
use warmq_units::{CpuId, CpuSet, Duration, Instant, TaskId};

use super::merge::{Own, Waits};
use super::{groups, instant};
use crate::error::PlayError;
use crate::specs::{attributes, group_number};
use crate::stage::Stage;
use crate::stage::slots::{Logged, Mark, Slot};

/// What was counted and how long each task had run, all at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// When, on the monotonic clock.
    pub at_ns: u64,
    /// By counter.
    pub counts: Vec<u64>,
    /// What the scheduler has counted, by counters that come after these.
    pub of_scheduler: Vec<u64>,
    /// By slot: CPU time in nanoseconds.
    pub ran_ns: Vec<u64>,
    /// What the kernel has counted of each group's quota.
    pub quotas: Vec<Record>,
}

impl Moment {
    /// As records.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        let counts = (0..).zip(self.counts.iter().chain(&self.of_scheduler));
        let counts = counts.map(|(counter, total)| Record::Count {
            counter,
            total: *total,
        });
        let ran = (0..).zip(&self.ran_ns).map(|(task, ns)| Record::Ran {
            task: TaskId(task),
            total: Duration::from_ns(*ns),
        });
        counts.chain(ran).chain(self.quotas.iter().cloned())
    }
}

/// Everything that tasks are and what they logged, in no order. `recorded` is true if a recorder
/// sees exits. What did not fit into their logs is counted at `end`, the end of the run: it
/// says what tasks wait for and measure, and the recorder saw who ran and who waited all the same.
///
/// # Errors
/// A number of a task that a step has started cannot be computed.
pub fn own_records(
    stage: &Stage,
    recorded: bool,
    end: Instant,
) -> Result<Vec<(Instant, Own)>, PlayError> {
    let mut own = Collected {
        stage,
        start_ns: stage.board.start_ns.load(Ordering::Acquire),
        recorded,
        autogroups: BTreeMap::new(),
        due_ns: None,
        lost: 0,
        records: Vec::new(),
    };
    for record in groups::records(&stage.bound, &stage.cpus)? {
        own.put(Instant::START, record);
    }
    for index in 0..stage.first.len() as u32 {
        own.born(Instant::START, None, index)?;
    }
    for (index, _) in stage.tasks() {
        own.logged(index)?;
    }
    for (index, thread) in (0..).zip(&stage.senders) {
        if thread.echoes {
            own.answered(index);
        }
    }
    if own.lost > 0 {
        let (cpu, events) = (CpuId(0), own.lost);
        own.put(end, Record::Lost { cpu, events });
    }
    Ok(own.records)
}

struct Collected<'s> {
    stage: &'s Stage,
    start_ns: u64,
    recorded: bool,
    /// The autogroup of each task that is in one.
    autogroups: BTreeMap<TaskId, u32>,
    /// When what the next span of the task at hand is about was due.
    due_ns: Option<u64>,
    /// How much did not fit into logs.
    lost: u64,
    records: Vec<(Instant, Own)>,
}

impl Collected<'_> {
    fn put(&mut self, at: Instant, record: Record) {
        self.records.push((at, Own::Record(record)));
    }

    /// The task in slot `index` and all that it is given.
    fn born(&mut self, at: Instant, parent: Option<TaskId>, index: u32) -> Result<(), PlayError> {
        let (stage, task) = (self.stage, TaskId(index));
        let slot = stage.slots.of(index);
        let (kind, number) = stage.role(slot);
        let comm = Comm::new(&stage.scenario().task(kind).name);
        self.put(
            at,
            Record::Fork {
                parent,
                child: task,
                comm,
            },
        );
        if slot.tid.load(Ordering::Relaxed) != 0 {
            self.put(at, ids(task, slot));
        }
        self.put(
            at,
            Record::Role {
                task,
                table: kind.0,
                number: number as u32,
            },
        );
        let spec = stage.bound.spec(&stage.cpus, kind, number)?;
        // Who names no group is in the session of the task that starts it.
        let inherited = parent.and_then(|parent| self.autogroups.get(&parent).copied());
        let group = spec.group.map(group_number).or(inherited);
        let own = group.filter(|group| stage.sessions.place_of(*group).is_some());
        self.autogroups.extend(own.map(|group| (task, group)));
        for record in spec_records(task, &spec, group, &stage.cpus.all()) {
            self.put(at, record);
        }
        Ok(())
    }

    fn logged(&mut self, index: u32) -> Result<(), PlayError> {
        let (entries, lost) = self.stage.slots.logged(index);
        self.lost += lost;
        // A log that was full may end right before the span that was due.
        self.due_ns = None;
        let mut entries = entries.iter();
        entries.try_for_each(|entry| self.entry(TaskId(index), entry))
    }

    /// A thread of sources and the spans that it measured: from each datagram to its first answer.
    fn answered(&mut self, index: u32) {
        let slots = &self.stage.sender_slots;
        let (slot, task) = (slots.of(index), TaskId(self.stage.sender_id(index)));
        let fork = Record::Fork {
            parent: None,
            child: task,
            comm: Comm::new(players::SOURCE),
        };
        self.put(Instant::START, fork);
        self.put(Instant::START, ids(task, slot));
        let (entries, lost) = slots.logged(index);
        for (at_ns, record) in spans(task, &entries) {
            self.put(instant(at_ns, self.start_ns), record);
        }
        self.lost += lost;
    }

    fn entry(&mut self, task: TaskId, entry: &Logged) -> Result<(), PlayError> {
        let at = instant(entry.time_ns, self.start_ns);
        let (span, number) = (entry.id, entry.number);
        match entry.mark {
            Mark::Due => self.due_ns = Some(number),
            Mark::SpanBegin => {
                let record = match self.due_ns.take() {
                    None => Record::SpanBegin { task, span, number },
                    Some(due) => Record::SpanBegan {
                        task,
                        span,
                        number,
                        ago: Duration::from_ns(entry.time_ns.saturating_sub(due)),
                    },
                };
                self.put(at, record);
            }
            Mark::SpanEnd => self.put(at, Record::SpanEnd { task, span, number }),
            Mark::Waits => {
                let known = Cause::ALL.iter().find(|cause| **cause as u32 == entry.id);
                let waits = Waits {
                    cause: known.copied().unwrap_or(Cause::Unknown),
                    object: number.checked_sub(1).map(|object| object as u32),
                };
                self.records.push((at, Own::Waits(task, Some(waits))));
            }
            Mark::GoesOn => self.records.push((at, Own::Waits(task, None))),
            Mark::Starts => self.born(at, Some(task), entry.id)?,
            // The kernel says it more exactly.
            Mark::Ends if self.recorded => {}
            Mark::Ends => self.put(
                at,
                Record::Exit {
                    cpu: CpuId(entry.id as u16),
                    task,
                },
            ),
            Mark::Nice => self.put(
                at,
                Record::Nice {
                    task,
                    nice: number as i64 as i8,
                },
            ),
            Mark::Fragment => {
                let fragment = number.checked_sub(1).map(|number| (APP, number as u32));
                self.put(at, Record::Fragment { task, fragment });
            }
            Mark::Affinity => {
                let from = CpuId(64 * entry.id as u16);
                let cpus = number;
                self.put(at, Record::Affinity { task, from, cpus });
            }
            Mark::Policy => {
                let known = Policy::ALL
                    .iter()
                    .find(|policy| **policy as u32 == entry.id);
                let policy = known.copied().unwrap_or(Policy::Other);
                let priority = number as u8;
                let record = Record::Policy {
                    task,
                    policy,
                    priority,
                };
                self.put(at, record);
            }
            Mark::Slice => {
                let slice = Duration::from_ns(number);
                self.put(at, Record::Slice { task, slice });
            }
            Mark::Group => self.put(
                at,
                Record::Group {
                    task,
                    group: entry.id,
                },
            ),
        }
        Ok(())
    }
}

/// The spans of a thread of sources. An answer to what was answered already ends nothing.
fn spans(task: TaskId, entries: &[Logged]) -> Vec<(u64, Record)> {
    let (mut open, mut records) = (BTreeSet::new(), Vec::new());
    for entry in entries {
        let (span, number) = (entry.id, entry.number);
        let record = match entry.mark {
            Mark::SpanBegin if open.insert((span, number)) => {
                Record::SpanBegin { task, span, number }
            }
            Mark::SpanEnd if open.remove(&(span, number)) => Record::SpanEnd { task, span, number },
            _ => continue,
        };
        records.push((entry.time_ns, record));
    }
    records
}

fn ids(task: TaskId, slot: &Slot) -> Record {
    Record::Ids {
        task,
        tid: slot.tid.load(Ordering::Relaxed) as u32,
        tgid: slot.pid.load(Ordering::Relaxed) as u32,
    }
}

/// What a task is given, where it is not the usual.
fn spec_records(task: TaskId, spec: &Spec, group: Option<u32>, all: &CpuSet) -> Vec<Record> {
    let mut records = Vec::new();
    if let Some(cpus) = &spec.cpus {
        records.extend(affinity(task, cpus, all));
    }
    let attributes = attributes(spec);
    if attributes.nice != 0 {
        let nice = attributes.nice;
        records.push(Record::Nice { task, nice });
    }
    if attributes.policy != Policy::Other {
        records.push(Record::Policy {
            task,
            policy: attributes.policy,
            priority: attributes.priority,
        });
    }
    if attributes.slice_ns > 0 {
        let slice = Duration::from_ns(attributes.slice_ns);
        records.push(Record::Slice { task, slice });
    }
    if let Some(group) = group {
        records.push(Record::Group { task, group });
    }
    if let Some(fragment) = spec.fragment {
        let fragment = Some((APP, fragment));
        records.push(Record::Fragment { task, fragment });
    }
    records
}

/// An affinity as records, one for each 64 of `all` CPUs.
pub fn affinity(task: TaskId, cpus: &CpuSet, all: &CpuSet) -> Vec<Record> {
    let last = all.iter().last().map_or(0, |cpu| cpu.index() / 64);
    let of_word = |word| Record::Affinity {
        task,
        from: CpuId(64 * word as u16),
        cpus: cpus.word(word),
    };
    (0..=last).map(of_word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_full_logs_lost_is_counted_at_the_end_and_hides_no_cpu_before() {
        let stage = crate::testing::stage("[task.t]\ncount = 2\nbody = [{ run = \"1us\" }]");
        let (room, end) = (stage.slots.log(0).entries.len() as u64, Instant(7));
        for number in 0..room + 3 {
            let (time_ns, mark, id) = (1, Mark::Fragment, 0);
            stage.slots.log(0).put(Logged {
                time_ns,
                mark,
                id,
                number,
            });
        }
        let records = own_records(stage, true, end).unwrap();
        let is_lost = |own: &Own| matches!(own, Own::Record(Record::Lost { .. }));
        let lost: Vec<_> = records.iter().filter(|(_, own)| is_lost(own)).collect();
        let (cpu, events) = (CpuId(0), 3);
        let wanted = (end, Own::Record(Record::Lost { cpu, events }));
        assert_eq!(lost, [&wanted]);
    }

    #[test]
    fn a_datagram_is_answered_once_and_only_if_it_was_sent() {
        let task = TaskId(3);
        let logged = |time_ns, mark, number| Logged {
            time_ns,
            mark,
            id: 1,
            number,
        };
        let entries = [
            logged(1, Mark::SpanBegin, 7),
            logged(2, Mark::SpanEnd, 8),
            logged(3, Mark::SpanEnd, 7),
            logged(4, Mark::SpanEnd, 7),
            logged(5, Mark::SpanBegin, 8),
        ];
        let (span, number) = (1, 7);
        let wanted = [
            (1, Record::SpanBegin { task, span, number }),
            (3, Record::SpanEnd { task, span, number }),
            (
                5,
                Record::SpanBegin {
                    task,
                    span,
                    number: 8,
                },
            ),
        ];
        assert_eq!(spans(task, &entries), wanted);
    }
}
