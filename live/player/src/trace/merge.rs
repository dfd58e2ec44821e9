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
        // What a recorder says of the whole recording comes after the run.
        let at = match record {
            Record::Steal { .. } | Record::Lost { .. } => at.min(self.end),
            _ => at,
        };
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

#[cfg(test)]
mod tests {
    use super::*;
    use warmq_trace::Comm;
    use warmq_units::CpuId;

    /// Keeps all that it sees.
    #[derive(Default)]
    struct Kept(Vec<(Instant, Record)>);

    impl Observer for Kept {
        fn see(&mut self, at: Instant, record: &Record) {
            self.0.push((at, *record));
        }
    }

    const TASK: TaskId = TaskId(0);
    const STRANGER: TaskId = TaskId(1);

    fn block(task: TaskId, cause: Cause, state: State, object: Option<u32>) -> Record {
        Record::Block {
            cpu: CpuId(0),
            task,
            cause,
            state,
            object,
        }
    }

    fn blocks(task: TaskId, state: State) -> Record {
        block(task, Cause::Unknown, state, None)
    }

    fn merged(own: &[(u64, Own)], recorded: &[(u64, Record)], end: u64) -> Vec<(u64, Record)> {
        let own = own.iter().map(|(at, own)| (Instant(*at), *own)).collect();
        let mut merge = Merge::new(Kept::default(), own, STRANGER, Instant(end));
        recorded
            .iter()
            .for_each(|(at, record)| merge.recorded(Instant(*at), *record));
        let all = merge.finish().0.into_iter();
        all.map(|(at, record)| (at.0, record)).collect()
    }

    #[test]
    fn a_block_has_the_cause_that_its_task_gave_before() {
        let (cause, object) = (Cause::Mutex, Some(7));
        let waits = Own::Waits(TASK, Some(Waits { cause, object }));
        let own = [(10, waits), (20, Own::Waits(TASK, None))];
        let asleep = State::Interruptible;
        let recorded = [5, 10, 15, 20, 25].map(|at| (at, blocks(TASK, asleep)));
        let known = block(TASK, cause, asleep, object);
        let unknown = blocks(TASK, asleep);
        let wanted = [
            (5, unknown),
            (10, known),
            (15, known),
            (20, unknown),
            (25, unknown),
        ];
        assert_eq!(merged(&own, &recorded, 100), wanted);
    }

    #[test]
    fn only_the_scenarios_tasks_are_explained() {
        let waits = Waits {
            cause: Cause::Pipe,
            object: None,
        };
        let own = [(0, Own::Waits(TASK, Some(waits)))];
        let stopped = State::Stopped;
        let recorded = [
            (1, blocks(STRANGER, State::Interruptible)),
            (2, blocks(STRANGER, stopped)),
            (3, blocks(TASK, stopped)),
            (4, blocks(TASK, State::Dead)),
        ];
        let wanted = [
            recorded[0],
            recorded[1],
            (3, block(TASK, Cause::Continue, stopped, None)),
            recorded[3],
        ];
        assert_eq!(merged(&own, &recorded, 100), wanted);
    }

    #[test]
    fn records_are_in_the_order_of_time_and_end_with_the_run() {
        let count = |total| Record::Count { counter: 0, total };
        let own = [3, 1, 5, 9].map(|at| (at, Own::Record(count(at))));
        let recorded = [2, 3, 6, 9].map(|at| (at, blocks(STRANGER, State::Other)));
        let times: Vec<u64> = merged(&own, &recorded, 6)
            .iter()
            .map(|(at, _)| *at)
            .collect();
        assert_eq!(times, [1, 2, 3, 3, 5, 6]);
    }

    #[test]
    fn the_player_names_its_own_tasks() {
        let fork = |child| Record::Fork {
            parent: None,
            child,
            comm: Comm::new(warmq_trace::players::PLAYER),
        };
        let renamed = |task| Record::Renamed {
            task,
            comm: Comm::new("x"),
        };
        let recorded = [
            (1, fork(TASK)),
            (1, fork(STRANGER)),
            (1, renamed(TASK)),
            (1, renamed(STRANGER)),
        ];
        assert_eq!(
            merged(&[], &recorded, 9),
            [(1, fork(STRANGER)), (1, renamed(STRANGER))]
        );
    }
}
