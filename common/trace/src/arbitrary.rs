//! Strategies that draw arbitrary records, for tests.

use proptest::prelude::*;
use warmq_units::{CpuId, Duration, Instant, LockId, TaskId};

use crate::{Comm, Interrupt, Record};

fn cpu() -> impl Strategy<Value = CpuId> {
    prop_oneof![0u16..8, any::<u16>()].prop_map(CpuId)
}

fn task() -> impl Strategy<Value = TaskId> {
    prop_oneof![0u32..20, any::<u32>()].prop_map(TaskId)
}

fn span() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(0), 0u64..1 << 30, any::<u64>()].prop_map(Duration)
}

fn interrupt() -> impl Strategy<Value = Interrupt> {
    use Interrupt::{Network, NetworkSoftirq, Reschedule, SchedSoftirq, Timer};
    prop::sample::select(vec![
        Timer,
        Reschedule,
        Network,
        NetworkSoftirq,
        SchedSoftirq,
    ])
}

/// Any record; its ids are usually small.
pub(crate) fn record() -> impl Strategy<Value = Record> {
    let maybe = || prop::option::of(task());
    prop_oneof![
        (maybe(), task(), ".{0,20}").prop_map(|(parent, child, name)| Record::Fork {
            parent,
            child,
            comm: Comm::new(&name)
        }),
        (cpu(), task()).prop_map(|(cpu, task)| Record::Exit { cpu, task }),
        (cpu(), task(), cpu()).prop_map(|(waker, task, target)| Record::Wakeup {
            waker,
            task,
            target
        }),
        (cpu(), maybe(), any::<bool>(), maybe()).prop_map(|(cpu, prev, prev_runnable, next)| {
            Record::Switch {
                cpu,
                prev,
                prev_runnable,
                next,
            }
        }),
        (task(), cpu(), cpu()).prop_map(|(task, from, to)| Record::Migrate { task, from, to }),
        (cpu(), interrupt()).prop_map(|(cpu, interrupt)| Record::InterruptEnter { cpu, interrupt }),
        (cpu(), interrupt()).prop_map(|(cpu, interrupt)| Record::InterruptExit { cpu, interrupt }),
        (cpu(), cpu()).prop_map(|(from, to)| Record::RescheduleSent { from, to }),
        (cpu(), any::<u16>(), span(), span()).prop_map(|(cpu, lock, waited, held)| {
            Record::Lock {
                cpu,
                lock: LockId(lock),
                waited,
                held,
            }
        }),
        (cpu(), any::<u16>()).prop_map(|(cpu, lock)| Record::LockBusy {
            cpu,
            lock: LockId(lock),
        }),
        cpu().prop_map(|cpu| Record::Recalculate { cpu }),
        (task(), cpu(), any::<u64>()).prop_map(|(task, from, cpus)| Record::Affinity {
            task,
            from,
            cpus
        }),
        (cpu(), any::<bool>()).prop_map(|(cpu, online)| Record::Hotplug { cpu, online }),
    ]
}

/// Up to 60 records at arbitrary times, which may run backwards.
pub(crate) fn records() -> impl Strategy<Value = Vec<(Instant, Record)>> {
    prop::collection::vec((any::<u64>().prop_map(Instant), record()), 0..60)
}
