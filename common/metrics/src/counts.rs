//! How often things happen.

use warmq_trace::{Interrupt, Observer, Record};
use warmq_units::Instant;

/// Every kind of interrupt; numbered ones count as one kind, for which number 0 stands.
pub const INTERRUPTS: [Interrupt; 7] = [
    Interrupt::Timer,
    Interrupt::Reschedule,
    Interrupt::Network,
    Interrupt::NetworkSoftirq,
    Interrupt::SchedSoftirq,
    Interrupt::Line(0),
    Interrupt::Softirq(0),
];

/// An entry for each kind of interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterruptTable<T>([T; INTERRUPTS.len()]);

impl<T> InterruptTable<T> {
    /// The entry of `interrupt`.
    pub fn of(&self, interrupt: Interrupt) -> &T {
        &self.0[place(interrupt)]
    }

    /// The entry of `interrupt`, mutably.
    pub fn of_mut(&mut self, interrupt: Interrupt) -> &mut T {
        &mut self.0[place(interrupt)]
    }

    /// Every kind and its entry, in the order of [`INTERRUPTS`].
    pub fn iter(&self) -> impl Iterator<Item = (Interrupt, &T)> {
        INTERRUPTS.into_iter().zip(&self.0)
    }
}

/// The index of `interrupt` in [`INTERRUPTS`].
fn place(interrupt: Interrupt) -> usize {
    match interrupt {
        Interrupt::Timer => 0,
        Interrupt::Reschedule => 1,
        Interrupt::Network => 2,
        Interrupt::NetworkSoftirq => 3,
        Interrupt::SchedSoftirq => 4,
        Interrupt::Line(_) => 5,
        Interrupt::Softirq(_) => 6,
    }
}

/// How often each thing happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    from: Instant,
    /// Forks.
    pub forks: u64,
    /// Exits.
    pub exits: u64,
    /// Wakeups.
    pub wakeups: u64,
    /// Switches from one task to another, to idle, or back.
    pub switches: u64,
    /// Migrations.
    pub migrations: u64,
    /// Requests to another CPU to reschedule.
    pub reschedules: u64,
    /// Recalculations of all time slices (Linux 2.4).
    pub recalculations: u64,
    /// Interrupts of each kind that began.
    pub interrupts: InterruptTable<u64>,
}

impl Counts {
    /// Counts what happens at `from` or later.
    pub fn starting_at(from: Instant) -> Counts {
        Counts {
            from,
            ..Counts::default()
        }
    }
}

impl Observer for Counts {
    const DETAIL: bool = false;

    #[inline]
    fn see(&mut self, at: Instant, record: &Record) {
        if at < self.from {
            return;
        }
        match *record {
            Record::Fork { .. } => self.forks += 1,
            Record::Exit { .. } => self.exits += 1,
            Record::Wakeup { .. } => self.wakeups += 1,
            Record::Switch { prev, next, .. } => self.switches += u64::from(prev != next),
            Record::Migrate { .. } => self.migrations += 1,
            Record::InterruptEnter { interrupt, .. } => *self.interrupts.of_mut(interrupt) += 1,
            Record::RescheduleSent { .. } => self.reschedules += 1,
            Record::Recalculate { .. } => self.recalculations += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use warmq_trace::Comm;
    use warmq_units::{CpuId, Duration, LockId, TaskId};

    use super::*;

    const CPU: CpuId = CpuId(0);
    const TASK: TaskId = TaskId(0);

    fn one_of_each() -> Vec<Record> {
        let mut records = vec![
            Record::Fork {
                parent: None,
                child: TASK,
                comm: Comm::new("A"),
            },
            Record::Exit {
                cpu: CPU,
                task: TASK,
            },
            Record::Wakeup {
                waker: CPU,
                task: TASK,
                target: CPU,
            },
            Record::Switch {
                cpu: CPU,
                prev: None,
                prev_runnable: false,
                next: Some(TASK),
            },
            Record::Migrate {
                task: TASK,
                from: CPU,
                to: CpuId(1),
            },
            Record::RescheduleSent {
                from: CPU,
                to: CpuId(1),
            },
            Record::Recalculate { cpu: CPU },
            Record::Lock {
                cpu: CPU,
                lock: LockId(0),
                waited: Duration(1),
                held: Duration(1),
            },
        ];
        for interrupt in INTERRUPTS {
            records.push(Record::InterruptEnter {
                cpu: CPU,
                interrupt,
            });
            records.push(Record::InterruptExit {
                cpu: CPU,
                interrupt,
            });
        }
        records
    }

    #[test]
    fn each_thing_is_counted_once_and_where_it_belongs() {
        let mut counts = Counts::starting_at(Instant(5));
        for at in [4, 5, 6] {
            one_of_each()
                .iter()
                .for_each(|record| counts.see(Instant(at), record));
        }
        let expected = Counts {
            from: Instant(5),
            forks: 2,
            exits: 2,
            wakeups: 2,
            switches: 2,
            migrations: 2,
            reschedules: 2,
            recalculations: 2,
            interrupts: InterruptTable([2; INTERRUPTS.len()]),
        };
        assert_eq!(counts, expected);
    }

    #[test]
    fn who_goes_on_did_not_switch() {
        let mut counts = Counts::default();
        let again = Record::Switch {
            cpu: CPU,
            prev: Some(TASK),
            prev_runnable: true,
            next: Some(TASK),
        };
        counts.see(Instant(0), &again);
        assert_eq!(counts.switches, 0);
    }

    #[test]
    fn a_rate_is_a_count_over_the_time() {}

    #[test]
    fn every_kind_of_interrupt_has_its_own_place() {
        for (number, interrupt) in INTERRUPTS.into_iter().enumerate() {
            assert_eq!(place(interrupt), number);
        }
    }
}
