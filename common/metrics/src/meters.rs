//! All meters of a run at once.

use warmq_trace::{Observer, Record};
use warmq_units::{Duration, Instant};

use crate::{Counts, CpuMeter, LockMeter, TaskMeter, WakeupMeter};

/// Feeds every meter. Where a single figure is needed, feeding one meter costs less.
#[derive(Clone, Debug)]
pub struct Meters {
    from: Instant,
    /// How long wakeups wait.
    pub wakeups: WakeupMeter,
    /// What each task does.
    pub tasks: TaskMeter,
    /// What each CPU does.
    pub cpus: CpuMeter,
    /// How spin locks are used.
    pub locks: LockMeter,
    /// How often things happen.
    pub counts: Counts,
}

impl Meters {
    /// Measures a machine of `cpus` CPUs from the start on.
    pub fn new(cpus: usize) -> Meters {
        Meters::starting_at(cpus, Instant::START)
    }

    /// Counts what happens at `from` or later: what comes before is the warm-up.
    pub fn starting_at(cpus: usize, from: Instant) -> Meters {
        Meters {
            from,
            wakeups: WakeupMeter::starting_at(from),
            tasks: TaskMeter::starting_at(from),
            cpus: CpuMeter::starting_at(cpus, from),
            locks: LockMeter::starting_at(from),
            counts: Counts::starting_at(from),
        }
    }

    /// The length of the measurement if the run ended at `end`.
    pub fn elapsed(&self, end: Instant) -> Duration {
        end.since(self.from)
    }
}

impl Observer for Meters {
    const DETAIL: bool = false;

    #[inline]
    fn see(&mut self, at: Instant, record: &Record) {
        self.wakeups.see(at, record);
        self.tasks.see(at, record);
        self.cpus.see(at, record);
        self.locks.see(at, record);
        self.counts.see(at, record);
    }
}

#[cfg(test)]
mod tests {
    use warmq_trace::Comm;
    use warmq_units::{CpuId, LockId, TaskId};

    use super::*;

    #[test]
    fn every_meter_is_fed_from_the_same_time_on() {
        let (cpu, task) = (CpuId(0), TaskId(0));
        let round = [
            Record::Wakeup {
                waker: cpu,
                task,
                target: cpu,
            },
            Record::Switch {
                cpu,
                prev: None,
                prev_runnable: false,
                next: Some(task),
            },
            Record::Lock {
                cpu,
                lock: LockId(1),
                waited: Duration(0),
                held: Duration(1),
            },
            Record::Switch {
                cpu,
                prev: Some(task),
                prev_runnable: false,
                next: None,
            },
        ];
        let mut meters = Meters::starting_at(1, Instant(20));
        let fork = Record::Fork {
            parent: None,
            child: task,
            comm: Comm::new("A"),
        };
        meters.see(Instant(0), &fork);
        for start in [10, 20, 30] {
            for (later, record) in (0..).zip(&round) {
                meters.see(Instant(start + later), record);
            }
        }
        let end = Instant(40);
        assert_eq!(meters.elapsed(end), Duration(20));
        assert_eq!(meters.wakeups.latencies().count(), 2);
        assert_eq!(meters.tasks.figures(task, end).unwrap().ran, Duration(4));
        assert_eq!(meters.cpus.all(end).next().unwrap().1.busy, Duration(4));
        assert_eq!(meters.locks.figures(LockId(1)).requests, 2);
        assert_eq!((meters.counts.wakeups, meters.counts.forks), (2, 0));
    }
}
