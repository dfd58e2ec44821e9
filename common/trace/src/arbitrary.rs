//! Strategies that draw arbitrary records, for tests.

use proptest::prelude::*;
use warmq_units::{CpuId, Duration, Instant, LockId, TaskId};

use crate::{Cause, Comm, Context, Interrupt, Policy, Record, State};

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
    let named = vec![Timer, Reschedule, Network, NetworkSoftirq, SchedSoftirq];
    prop_oneof![
        prop::sample::select(named),
        any::<u16>().prop_map(Interrupt::Line),
        any::<u8>().prop_map(Interrupt::softirq),
    ]
}

/// Any record; its ids are usually small.
pub(crate) fn record() -> impl Strategy<Value = Record> {
    prop_oneof![scheduled(), of_tasks(), of_groups(), of_cpus(), played()]
}

/// What tasks are and why they sleep.
fn of_tasks() -> impl Strategy<Value = Record> {
    let causes = prop::sample::select(Cause::ALL);
    let states = prop::sample::select(State::ALL);
    let contexts = prop::sample::select(Context::ALL);
    let policies = prop::sample::select(Policy::ALL);
    let maybe = prop::option::of(any::<u32>());
    let fragment = prop::option::of((any::<u32>(), any::<u32>()));
    prop_oneof![
        (cpu(), task(), causes, states, maybe).prop_map(|(cpu, task, cause, state, object)| {
            Record::Block {
                cpu,
                task,
                cause,
                state,
                object,
            }
        }),
        (
            cpu(),
            prop::option::of(task()),
            task(),
            contexts,
            any::<bool>()
        )
            .prop_map(|(cpu, waker, task, context, synchronous)| Record::Waking {
                cpu,
                waker,
                task,
                context,
                synchronous
            }),
        (task(), any::<u32>(), any::<u32>()).prop_map(|(task, tid, tgid)| Record::Ids {
            task,
            tid,
            tgid
        }),
        (task(), ".{0,20}").prop_map(|(task, name)| Record::Renamed {
            task,
            comm: Comm::new(&name)
        }),
        (task(), any::<i8>()).prop_map(|(task, nice)| Record::Nice { task, nice }),
        (task(), policies, any::<u8>()).prop_map(|(task, policy, priority)| Record::Policy {
            task,
            policy,
            priority
        }),
        (task(), span()).prop_map(|(task, slice)| Record::Slice { task, slice }),
        (task(), any::<u32>()).prop_map(|(task, group)| Record::Group { task, group }),
        task().prop_map(|task| Record::KernelThread { task }),
        (task(), fragment).prop_map(|(task, fragment)| Record::Fragment { task, fragment }),
    ]
}

/// What groups are.
fn of_groups() -> impl Strategy<Value = Record> {
    let number = any::<u32>;
    prop_oneof![
        (number(), number(), number(), ".{0,20}").prop_map(|(group, parent, weight, name)| {
            Record::Cgroup {
                group,
                parent,
                weight,
                name: Comm::new(&name),
            }
        }),
        (number(), span(), span()).prop_map(|(group, quota, period)| Record::Limit {
            group,
            quota,
            period
        }),
        (number(), span()).prop_map(|(group, span)| Record::Throttled { group, span }),
        (number(), any::<u64>(), any::<u64>(), span()).prop_map(
            |(group, periods, throttled, span)| Record::Quota {
                group,
                periods,
                throttled,
                span
            }
        ),
        (cpu(), number(), any::<u64>(), any::<i64>(), any::<i64>()).prop_map(
            |(cpu, group, weight, vruntime, lag)| Record::Owed {
                cpu,
                group,
                weight,
                vruntime,
                lag,
            }
        ),
    ]
}

/// What CPUs did.
fn of_cpus() -> impl Strategy<Value = Record> {
    let state = prop::option::of(any::<u8>());
    prop_oneof![
        (cpu(), any::<u32>()).prop_map(|(cpu, bytes)| Record::Packet { cpu, bytes }),
        (cpu(), any::<u16>()).prop_map(|(cpu, reason)| Record::Drop { cpu, reason }),
        (cpu(), any::<u32>(), any::<u32>()).prop_map(|(cpu, packets, budget)| Record::Poll {
            cpu,
            packets,
            budget
        }),
        (cpu(), state).prop_map(|(cpu, state)| Record::Idle { cpu, state }),
        (cpu(), span()).prop_map(|(cpu, span)| Record::Steal { cpu, span }),
        (cpu(), any::<u64>()).prop_map(|(cpu, events)| Record::Lost { cpu, events }),
    ]
}

/// What a scenario's player says.
fn played() -> impl Strategy<Value = Record> {
    let number = any::<u32>;
    prop_oneof![
        (task(), number(), number()).prop_map(|(task, table, number)| Record::Role {
            task,
            table,
            number
        }),
        (task(), number(), any::<u64>(), span()).prop_map(|(task, span, number, ago)| {
            Record::SpanBegan {
                task,
                span,
                number,
                ago,
            }
        }),
        (task(), number(), any::<u64>()).prop_map(|(task, span, number)| Record::SpanBegin {
            task,
            span,
            number
        }),
        (task(), number(), any::<u64>()).prop_map(|(task, span, number)| Record::SpanEnd {
            task,
            span,
            number
        }),
        (number(), any::<u64>()).prop_map(|(counter, total)| Record::Count { counter, total }),
        number().prop_map(|phase| Record::Phase { phase }),
        (task(), span()).prop_map(|(task, total)| Record::Ran { task, total }),
    ]
}

/// What a scheduler did.
fn scheduled() -> impl Strategy<Value = Record> {
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
