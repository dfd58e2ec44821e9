//! How long each CPU runs tasks, idles, and serves interrupts.

use warmq_trace::{Board, Ended, Observer, Record, Stretch, Table, Work};
use warmq_units::{CpuId, Duration, Instant};

use crate::{InterruptTable, sum};

/// What one CPU did.
///
/// ```text
///     busy + idle + interrupted() = the time measured
/// ```
///
/// less the time in which events of it were missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuFigures {
    /// How long it ran a task and was in no interrupt.
    pub busy: Duration,
    /// How long it was idle or offline, and in no interrupt.
    pub idle: Duration,
    /// How long it was in each kind of interrupt; of nested ones, the innermost is charged.
    pub interrupts: InterruptTable<Duration>,
    /// How often it went from one task to another, to idle, or back.
    pub switches: u64,
}

impl CpuFigures {
    /// How long it was in interrupts of any kind.
    pub fn interrupted(&self) -> Duration {
        self.interrupts
            .iter()
            .fold(Duration::ZERO, |total, (_, span)| sum(total, *span))
    }
}

/// Collects the figures of every CPU. A CPU is idle until its first switch.
#[derive(Clone, Debug)]
pub struct CpuMeter {
    from: Instant,
    board: Board,
    cpus: Table<CpuId, CpuFigures>,
}

impl CpuMeter {
    /// Counts what happens at `from` or later.
    pub fn starting_at(cpus: usize, from: Instant) -> CpuMeter {
        let mut board = Board::of_a_run();
        let all = 0..u16::try_from(cpus).unwrap_or(u16::MAX);
        all.for_each(|cpu| board.has(CpuId(cpu)));
        CpuMeter {
            from,
            board,
            cpus: Table::default(),
        }
    }

    /// The figures of every CPU up to `end`, which is not before the last record, in the order of
    /// ids.
    pub fn all(&self, end: Instant) -> impl Iterator<Item = (CpuId, CpuFigures)> {
        let mut cpus = self.cpus.clone();
        for ended in self.board.open(end) {
            charge(&mut cpus, self.from, &ended);
        }
        let all = self.board.cpus();
        all.map(move |cpu| (cpu, cpus.get(cpu).copied().unwrap_or_default()))
    }
}

/// Adds what is in `ended` to the figures of its CPU.
fn charge(cpus: &mut Table<CpuId, CpuFigures>, from: Instant, ended: &Ended) {
    let Stretch::Spent {
        cpu,
        interrupt,
        work,
    } = ended.stretch
    else {
        return;
    };
    let figures = cpus.touch(cpu);
    let charged = match (interrupt, work) {
        (Some(interrupt), _) => figures.interrupts.of_mut(interrupt),
        (None, Work::Runs(_)) => &mut figures.busy,
        (None, Work::Idle | Work::Offline) => &mut figures.idle,
        (None, Work::Unknown) => return,
    };
    *charged = sum(*charged, ended.since(from));
}

impl Observer for CpuMeter {
    const DETAIL: bool = false;

    #[inline]
    fn see(&mut self, at: Instant, record: &Record) {
        for ended in self.board.see(at, record) {
            charge(&mut self.cpus, self.from, ended);
        }
        if let Record::Switch {
            cpu, prev, next, ..
        } = *record
        {
            let counts = prev != next && at >= self.from;
            self.cpus.touch(cpu).switches += u64::from(counts);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warmq_trace::Interrupt;
    use warmq_units::TaskId;

    use super::*;

    const CPU: CpuId = CpuId(0);

    fn switch(prev: Option<u32>, next: Option<u32>) -> Record {
        let (prev, next) = (prev.map(TaskId), next.map(TaskId));
        Record::Switch {
            cpu: CPU,
            prev,
            prev_runnable: false,
            next,
        }
    }

    #[test]
    fn time_belongs_to_the_innermost_of_what_goes_on() {
        use Interrupt::{NetworkSoftirq, Timer};
        let mut meter = CpuMeter::starting_at(2, Instant::START);
        for (at, record) in [
            (10, switch(None, Some(1))),
            (
                20,
                Record::InterruptEnter {
                    cpu: CPU,
                    interrupt: NetworkSoftirq,
                },
            ),
            (
                25,
                Record::InterruptEnter {
                    cpu: CPU,
                    interrupt: Timer,
                },
            ),
            (
                27,
                Record::InterruptExit {
                    cpu: CPU,
                    interrupt: Timer,
                },
            ),
            (
                31,
                Record::InterruptExit {
                    cpu: CPU,
                    interrupt: NetworkSoftirq,
                },
            ),
            (40, switch(Some(1), Some(1))),
            (50, switch(Some(1), None)),
        ] {
            meter.see(Instant(at), &record);
        }
        let [(_, first), (_, second)]: [_; 2] = meter
            .all(Instant(100))
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
        assert_eq!((first.busy, first.idle), (Duration(29), Duration(60)));
        assert_eq!(*first.interrupts.of(Timer), Duration(2));
        assert_eq!(*first.interrupts.of(NetworkSoftirq), Duration(9));
        assert_eq!(first.switches, 2);
        assert_eq!(second.idle, Duration(100));
    }

    #[test]
    fn what_a_cpu_does_while_its_events_are_missing_is_not_counted() {
        let mut meter = CpuMeter::starting_at(1, Instant::START);
        let lost = Record::Lost {
            cpu: CPU,
            events: 9,
        };
        for (at, record) in [
            (10, switch(None, Some(1))),
            (20, lost),
            (80, switch(Some(2), None)),
        ] {
            meter.see(Instant(at), &record);
        }
        let (_, cpu) = meter.all(Instant(100)).next().unwrap();
        assert_eq!((cpu.busy, cpu.idle), (Duration(10), Duration(30)));
    }

    proptest! {
        #[test]
        fn no_time_is_lost_and_none_is_counted_twice(
            steps in prop::collection::vec((0u64..50, 0u8..4), 0..60), from in 0u64..2000
        ) {
            let mut meter = CpuMeter::starting_at(1, Instant(from));
            let mut at = 0;
            for (later, what) in steps {
                at += later;
                let interrupt = Interrupt::Network;
                meter.see(Instant(at), &match what {
                    0 => switch(None, Some(1)),
                    1 => switch(Some(1), None),
                    2 => Record::InterruptEnter { cpu: CPU, interrupt },
                    _ => Record::InterruptExit { cpu: CPU, interrupt },
                });
            }
            let (_, cpu) = meter.all(Instant(at)).next().unwrap();
            prop_assert_eq!(cpu.busy + cpu.idle + cpu.interrupted(), Duration(at.saturating_sub(from)));
        }
    }
}
