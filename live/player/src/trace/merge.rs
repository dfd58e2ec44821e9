//! The player's records and those of the kernel, in one order of time.

use std::collections::BTreeMap;

use warmq_trace::{Cause, Observer, Record, State};
use warmq_units::{Instant, TaskId};

/// What a task waits for, as it said before it did: the cause, and which object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// The cause.
    pub cause: Cause,
    /// Which object of all, if it is one.
    pub object: Option<u32>,
}

/// One thing that the player itself knows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// A record.
    Record(Record),
    /// From here on the task may sleep for this reason, or (none) for no reason that it knows.
    Waits(TaskId, Option<Waits>),
}

/// Merges records into a trace that ends at a certain time.
pub struct Merge<O: Observer> {
    out: O,
    /// The player's, in the order of time; the next one last.
    own: Vec<(Instant, Own)>,
    waits: BTreeMap<TaskId, Waits>,
    end: Instant,
    /// The tasks of the scenario have ids below this.
    tasks: TaskId,
}

impl<O: Observer> Merge<O> {
    /// Into `out`, which sees records up to `end`. `own` may be in any order.
    pub fn new(out: O, mut own: Vec<(Instant, Own)>, tasks: TaskId, end: Instant) -> Merge<O> {
        // Those of one time stay in their order.
        own.sort_by_key(|(at, _)| *at);
        own.reverse();
        Merge {
            out,
            own,
            waits: BTreeMap::new(),
            end,
            tasks,
        }
    }

    /// Takes in the next record of the kernel.
    pub fn recorded(&mut self, at: Instant, record: Record) {
        self.own_until(at);
        if at > self.end || self.is_told(&record) {
            return;
        }
        self.out.see(at, &self.explained(record));
    }

    /// What the player says of its tasks itself, and with their right names.
    fn is_told(&self, record: &Record) -> bool {
        match record {
            Record::Fork { child, .. } => *child < self.tasks,
            Record::Ids { task, .. } | Record::Renamed { task, .. } => *task < self.tasks,
            _ => false,
        }
    }

    /// A block of a task that said what it waits for.
    fn explained(&self, record: Record) -> Record {
        let Record::Block {
            cpu,
            task,
            cause: Cause::Unknown,
            state,
            object: None,
        } = record
        else {
            return record;
        };
        let (cause, object) = match (state, self.waits.get(&task)) {
            // A signal stops a task wherever it is.
            (State::Stopped, _) if task < self.tasks => (Cause::Continue, None),
            (State::Interruptible | State::Uninterruptible, Some(waits)) => {
                (waits.cause, waits.object)
            }
            _ => return record,
        };
        Record::Block {
            cpu,
            task,
            cause,
            state,
            object,
        }
    }

    fn own_until(&mut self, at: Instant) {
        while let Some((own_at, own)) = self.own.pop_if(|(own_at, _)| *own_at <= at) {
            match own {
                Own::Record(record) if own_at <= self.end => self.out.see(own_at, &record),
                Own::Record(_) => {}
                Own::Waits(task, Some(waits)) => {
                    self.waits.insert(task, waits);
                }
                Own::Waits(task, None) => {
                    self.waits.remove(&task);
                }
            }
        }
    }

    /// The rest of the player's records.
    pub fn finish(mut self) -> O {
        self.own_until(Instant(u64::MAX));
        self.out
    }
}
