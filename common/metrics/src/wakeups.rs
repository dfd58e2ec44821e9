//! How long a woken task waits for a CPU.

use warmq_trace::{Board, Observer, Record};
use warmq_units::Instant;

use crate::Spans;

/// Collects the latency of every wakeup.
///
/// ```text
///     latency = time of the switch to the task - time of its wakeup
/// ```
///
/// A task that is woken while it runs (it was about to sleep) does not wait. Of several wakeups
/// before the switch, the first counts. A wakeup that no switch follows is not counted, nor is what
/// lets a task go on whose group was out of quota: kernels put it back without a wakeup.
#[derive(Clone, Debug, Default)]
pub struct WakeupMeter {
    from: Instant,
    board: Board,
    latencies: Spans,
}

impl WakeupMeter {
    /// Counts every wakeup at `from` or later.
    pub fn starting_at(from: Instant) -> WakeupMeter {
        WakeupMeter {
            from,
            ..WakeupMeter::default()
        }
    }

    /// The latencies so far.
    pub fn latencies(&self) -> &Spans {
        &self.latencies
    }
}

impl Observer for WakeupMeter {
    const DETAIL: bool = false;

    #[inline]
    fn see(&mut self, at: Instant, record: &Record) {
        self.board.see(at, record);
        if let Some((_, woken)) = self.board.served()
            && woken >= self.from
        {
            self.latencies.add(at.since(woken));
        }
    }
}

#[cfg(test)]
mod tests {
    use warmq_trace::State;
    use warmq_units::{CpuId, Duration, TaskId};

    use super::*;

    fn woken(task: u32) -> Record {
        Record::Wakeup {
            waker: CpuId(0),
            task: TaskId(task),
            target: CpuId(0),
        }
    }

    fn throttled(task: u32) -> Record {
        Record::Block {
            cpu: CpuId(0),
            task: TaskId(task),
            cause: warmq_trace::Cause::Quota,
            state: State::Runnable,
            object: None,
        }
    }

    fn switch(prev: Option<u32>, prev_runnable: bool, next: Option<u32>) -> Record {
        let (prev, next) = (prev.map(TaskId), next.map(TaskId));
        Record::Switch {
            cpu: CpuId(0),
            prev,
            prev_runnable,
            next,
        }
    }

    #[test]
    fn a_latency_is_from_the_first_wakeup_to_the_switch() {
        let asleep_again = [switch(None, false, Some(1)), switch(Some(1), false, None)];
        let lost = Record::Lost {
            cpu: CpuId(0),
            events: 9,
        };
        type Row<'a> = (&'a [(u64, Record)], &'a [u64]);
        let table: [Row; 10] = [
            // It may have run between, where nothing was recorded, and have been woken again.
            (
                &[
                    (1, woken(1)),
                    (2, lost),
                    (5, switch(None, false, Some(1))),
                    (6, switch(Some(1), false, None)),
                    (7, woken(1)),
                    (9, switch(None, false, Some(1))),
                ],
                &[2],
            ),
            (
                &[(1, lost), (2, woken(1)), (5, switch(None, false, Some(1)))],
                &[],
            ),
            (&[(2, woken(1)), (5, switch(None, false, Some(1)))], &[3]),
            (
                &[
                    (2, woken(1)),
                    (4, woken(1)),
                    (5, switch(None, false, Some(1))),
                ],
                &[3],
            ),
            (&[(2, woken(1)), (5, switch(None, false, Some(2)))], &[]),
            (&[(2, switch(None, false, Some(1)))], &[]),
            // Woken while running: a wait after a later preemption is not a wakeup latency.
            (
                &[
                    (1, switch(None, false, Some(1))),
                    (2, woken(1)),
                    (3, switch(Some(1), true, Some(2))),
                    (9, switch(Some(2), true, Some(1))),
                ],
                &[],
            ),
            (
                &[
                    (1, asleep_again[0]),
                    (2, asleep_again[1]),
                    (3, woken(1)),
                    (9, asleep_again[0]),
                ],
                &[6],
            ),
            // The next period of its group is no wakeup, and what comes after it is one.
            (
                &[
                    (1, asleep_again[0]),
                    (2, throttled(1)),
                    (2, asleep_again[1]),
                    (9, woken(1)),
                    (12, asleep_again[0]),
                    (13, asleep_again[1]),
                    (15, woken(1)),
                    (17, asleep_again[0]),
                ],
                &[2],
            ),
            // One that is woken while its group is out of quota waits from then on.
            (
                &[
                    (1, woken(1)),
                    (1, throttled(1)),
                    (9, woken(1)),
                    (12, asleep_again[0]),
                ],
                &[11],
            ),
        ];
        for (records, expected) in table {
            let mut meter = WakeupMeter::default();
            for (at, record) in records {
                meter.see(Instant::START + Duration::from_ns(*at), record);
            }
            let found: Vec<u64> = meter
                .latencies()
                .buckets()
                .map(|(bound, _)| bound.as_ns())
                .collect();
            assert_eq!(found, expected, "{records:?}");
        }
    }

    #[test]
    fn a_wakeup_of_the_warm_up_does_not_count() {
        let mut meter = WakeupMeter::starting_at(Instant(100));
        meter.see(Instant(99), &woken(1));
        meter.see(Instant(100), &woken(2));
        meter.see(Instant(101), &switch(None, false, Some(1)));
        meter.see(Instant(102), &switch(Some(1), false, Some(2)));
        assert_eq!(meter.latencies().count(), 1);
        assert_eq!(meter.latencies().max(), Duration(2));
    }
}
