//! What laws measure beside the figures of scenarios.

use std::collections::BTreeMap;

use warmq_metrics::{Described, StrandedMeter};
use warmq_trace::{Board, Doing, Ended, Observer, Record, Stretch, Table, Work};
use warmq_units::{Instant, TaskId};

use crate::placement::{self, Placement, Places};

/// The longest time for which a CPU was idle while a task of the scenario waited that may run
/// there.
const IDLE_BESIDE_WAITING: &str = "idle_beside_waiting_max";

/// The figures of this module.
pub(crate) fn described() -> Vec<Described> {
    let idle = Described {
        name: IDLE_BESIDE_WAITING.to_owned(),
        unit: "us",
        what: "longest time for which a CPU was idle while a task of the scenario waited that may \
               run there"
            .to_owned(),
    };
    placement::described().chain([idle]).collect()
}

/// Measures what happens from one time to another.
#[derive(Clone, Debug)]
pub struct LawMeter {
    stranded: StrandedMeter,
    placement: Placement,
    end: Instant,
    /// The tasks of the scenario; only they are looked at, since many others are bound to a CPU.
    ours: Table<TaskId, bool>,
    board: Board,
}

impl LawMeter {
    /// Measures from `from` to `end` on a machine of these places.
    pub fn of(places: Places, (from, end): (Instant, Instant)) -> LawMeter {
        LawMeter {
            stranded: StrandedMeter::starting_at(from),
            placement: Placement::of(places, from),
            end,
            ours: Table::default(),
            board: Board::default(),
        }
    }

    /// What was measured, by name.
    pub fn figures(&self) -> BTreeMap<String, f64> {
        let ours = |task| self.ours.get(task) == Some(&true);
        let mut figures = self.placement.figures(&self.board, self.end, ours);
        let longest = self.stranded.longest(self.end);
        figures.insert(IDLE_BESIDE_WAITING.to_owned(), longest.0 as f64 / 1e6);
        figures
    }
}

impl Observer for LawMeter {
    const DETAIL: bool = true;

    fn see(&mut self, at: Instant, record: &Record) {
        if at > self.end {
            return;
        }
        let ours = |task| self.ours.get(task) == Some(&true);
        for ended in self.board.see(at, record) {
            take(&mut self.stranded, ended, ours);
        }
        self.placement.see(at, record, &self.board, ours);
        match *record {
            Record::Role { task, .. } => *self.ours.touch(task) = true,
            Record::Affinity { task, from, cpus } => self.stranded.binds(at, task, from, cpus),
            _ => {}
        }
    }
}

/// Says who waits and which CPUs idle from now on.
fn take(stranded: &mut StrandedMeter, ended: &Ended, ours: impl Fn(TaskId) -> bool) {
    let at = ended.to;
    match ended.stretch {
        Stretch::Task { task, then, .. } if ours(task) => match then {
            Doing::Waits(_) => stranded.waits(at, task),
            _ => stranded.leaves(at, task),
        },
        Stretch::Cpu { cpu, then, .. } => match then {
            Work::Idle => stranded.idles(at, cpu),
            _ => stranded.is_busy(at, cpu),
        },
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use warmq_trace::State;
    use warmq_units::{CpuId, Duration};

    use super::*;

    const A: TaskId = TaskId(1);
    const KERNEL_THREAD: TaskId = TaskId(9);

    fn ms(ms: u64) -> Instant {
        Instant::START + Duration::from_ms(ms)
    }

    fn longest(records: &[(u64, Record)]) -> f64 {
        let mut meter = LawMeter::of(Places::default(), (ms(0), ms(100)));
        let role = Record::Role {
            task: A,
            table: 0,
            number: 0,
        };
        meter.see(ms(0), &role);
        for (at, record) in records {
            meter.see(ms(*at), record);
        }
        meter.figures()[IDLE_BESIDE_WAITING] / 1_000.0
    }

    fn woken(task: TaskId) -> Record {
        Record::Wakeup {
            waker: CpuId(0),
            task,
            target: CpuId(0),
        }
    }

    fn switch(cpu: u16, prev: Option<TaskId>, next: Option<TaskId>) -> Record {
        Record::Switch {
            cpu: CpuId(cpu),
            prev,
            prev_runnable: prev.is_some(),
            next,
        }
    }

    #[test]
    fn a_waiting_task_of_the_scenario_beside_an_idle_cpu_is_measured() {
        let other = TaskId(2);
        let idle = [
            (1, switch(0, None, Some(other))),
            (2, switch(1, Some(other), None)),
        ];
        let with = |more: &[(u64, Record)]| longest(&[&idle[..], more].concat());
        assert_eq!(with(&[]), 0.0);
        assert_eq!(with(&[(10, woken(A)), (14, switch(1, None, Some(A)))]), 4.0);
        assert_eq!(with(&[(10, woken(A))]), 90.0, "to the end");
        let lost = Record::Lost {
            cpu: CpuId(0),
            events: 7,
        };
        let it_ran = [(10, woken(A)), (14, lost), (80, switch(0, None, None))];
        assert_eq!(with(&it_ran), 4.0, "it may have run since");
        assert_eq!(
            with(&[(10, woken(KERNEL_THREAD))]),
            0.0,
            "it is not of the scenario"
        );
        let bound = Record::Affinity {
            task: A,
            from: CpuId(0),
            cpus: 1,
        };
        assert_eq!(
            with(&[(3, bound), (10, woken(A))]),
            0.0,
            "it may not run there"
        );
    }

    #[test]
    fn a_throttled_task_waits_for_no_cpu() {
        let throttled = Record::Block {
            cpu: CpuId(0),
            task: A,
            cause: warmq_trace::Cause::Quota,
            state: State::Runnable,
            object: None,
        };
        let runs = [(1, woken(A)), (1, switch(0, None, Some(A)))];
        let stops = [(20, throttled), (20, switch(0, Some(A), None))];
        assert_eq!(longest(&[runs, stops].concat()), 0.0);
        let in_its_queue = [(20, woken(A)), (25, throttled)];
        assert_eq!(longest(&in_its_queue), 0.0, "CPU 0 was never seen to idle");
        let idles = [(10, switch(0, Some(TaskId(2)), None))];
        assert_eq!(longest(&[&idles[..], &in_its_queue].concat()), 5.0);
        let preempted = [(20, switch(0, Some(A), None))];
        assert_eq!(longest(&[&runs[..], &preempted].concat()), 80.0);
    }
}
