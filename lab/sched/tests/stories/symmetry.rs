//! Runs that differ by one thing that must not matter: caches that cost nothing, all times doubled,
//! CPUs renamed.

use proptest::prelude::*;

use warmq_config::Value;
use warmq_kernel::{Costs, PollTime, Settings};
use warmq_machine::MachineDescription;
use warmq_machine::description::Coherence;
use warmq_random::{Act, Bound, Script};
use warmq_sched::{Entry, SCHEDULERS};
use warmq_trace::{Observer, Record};
use warmq_units::{CpuId, Cycles, Duration, Hertz, Instant, LockId};

use crate::compiled::{WARMQ, schedulers};
use crate::laws::{Case, a_case, cases};
use crate::stage::*;

/// Everything that happened, as it is to be compared.
#[derive(Default)]
struct Records(Vec<(Instant, Record)>);

impl Observer for Records {
    fn see(&mut self, at: Instant, record: &Record) {
        self.0.push((at, *record));
    }
}

fn records(
    stage: Stage,
    entry: &Entry,
    set: &[(&str, Value)],
    ms: u64,
    script: &Script,
) -> Vec<(Instant, Record)> {
    let scheduler = scheduler(entry.name, set);
    let (_, kernel) = stage.plays_before(Records::default(), scheduler, ms, script.clone());
    kernel.into_observer().0
}

/// The two runs, or the first difference between them.
fn compared(
    name: &str,
    one: &[(Instant, Record)],
    other: &[(Instant, Record)],
) -> Result<(), TestCaseError> {
    for (place, (one, other)) in one.iter().zip(other).enumerate() {
        prop_assert_eq!(one, other, "{}: record {}", name, place);
    }
    prop_assert_eq!(one.len(), other.len(), "{}", name);
    Ok(())
}

/// Caches, memory and bus that cost nothing.
fn at_no_cost(machine: &mut MachineDescription) {
    for cache in &mut machine.caches {
        cache.latency = Cycles(0);
    }
    machine.memory.latency = Duration::ZERO;
    machine.coherence = Coherence::Bus {
        line_transfer: Duration::ZERO,
        address_only: Duration::ZERO,
        cache_to_cache: Duration::ZERO,
        crossing: None,
    };
}

/// Half the clock, so that all that is counted in cycles takes twice as long.
fn at_half_clock(machine: &mut MachineDescription) {
    machine.clock = Hertz::from_khz(machine.clock.khz() / 2);
}

/// A tick that all numbers of CPUs from 1 to 4 divide into whole microseconds, and timers of 1 us.
fn even_ticks(settings: &mut Settings) {
    settings.tick = Duration::from_ms(12);
    settings.timer_resolution = Duration::from_us(1);
}

fn twice_as_long(settings: &mut Settings) {
    let softirqs = &mut settings.softirqs;
    for span in [
        &mut settings.tick,
        &mut settings.timer_resolution,
        &mut settings.patience,
        &mut softirqs.time,
    ] {
        *span = *span * 2;
    }
    if let PollTime::After(span) = softirqs.packets_time {
        softirqs.packets_time = PollTime::After(span * 2);
    }
}

fn doubled((at, record): &(Instant, Record)) -> (Instant, Record) {
    let record = match *record {
        Record::Lock {
            cpu,
            lock,
            waited,
            held,
        } => Record::Lock {
            cpu,
            lock,
            waited: waited * 2,
            held: held * 2,
        },
        record => record,
    };
    (Instant(at.0 * 2), record)
}

/// The record with CPU n called n + `by`, modulo `cpus`. Locks lose their names: a queue's
/// lock is known by its CPU and its times.
fn renamed((at, record): &(Instant, Record), by: u16, cpus: u16) -> (Instant, Record) {
    let name = |cpu: CpuId| CpuId((cpu.0 + by) % cpus);
    let record = match *record {
        Record::Exit { cpu, task } => Record::Exit {
            cpu: name(cpu),
            task,
        },
        Record::Wakeup {
            waker,
            task,
            target,
        } => Record::Wakeup {
            waker: name(waker),
            task,
            target: name(target),
        },
        Record::Switch {
            cpu,
            prev,
            prev_runnable,
            next,
        } => Record::Switch {
            cpu: name(cpu),
            prev,
            prev_runnable,
            next,
        },
        Record::Migrate { task, from, to } => Record::Migrate {
            task,
            from: name(from),
            to: name(to),
        },
        Record::InterruptEnter { cpu, interrupt } => Record::InterruptEnter {
            cpu: name(cpu),
            interrupt,
        },
        Record::InterruptExit { cpu, interrupt } => Record::InterruptExit {
            cpu: name(cpu),
            interrupt,
        },
        Record::RescheduleSent { from, to } => Record::RescheduleSent {
            from: name(from),
            to: name(to),
        },
        Record::Lock {
            cpu, waited, held, ..
        } => Record::Lock {
            cpu: name(cpu),
            lock: LockId(0),
            waited,
            held,
        },
        Record::Recalculate { cpu } => Record::Recalculate { cpu: name(cpu) },
        other if other.is_detail() => renamed_detail(other, name),
        other => other,
    };
    (*at, record)
}

/// The same for what is recorded in detail.
fn renamed_detail(detail: Record, name: impl Fn(CpuId) -> CpuId) -> Record {
    match detail {
        Record::Block {
            cpu,
            task,
            cause,
            state,
            object,
        } => Record::Block {
            cpu: name(cpu),
            task,
            cause,
            state,
            object,
        },
        Record::Waking {
            cpu,
            waker,
            task,
            context,
            synchronous,
        } => Record::Waking {
            cpu: name(cpu),
            waker,
            task,
            context,
            synchronous,
        },
        Record::Packet { cpu, bytes } => Record::Packet {
            cpu: name(cpu),
            bytes,
        },
        Record::Drop { cpu, reason } => Record::Drop {
            cpu: name(cpu),
            reason,
        },
        Record::Poll {
            cpu,
            packets,
            budget,
        } => Record::Poll {
            cpu: name(cpu),
            packets,
            budget,
        },
        Record::Idle { cpu, state } => Record::Idle {
            cpu: name(cpu),
            state,
        },
        other => other,
    }
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn caches_that_cost_nothing_change_nothing(case in cases()) {
        for entry in schedulers() {
            let set = [case.set(entry.name)];
            let run = |caches| {
                let real = Case { real: true, ..case.clone() };
                let mut stage = real.stage().altered(at_no_cost);
                stage.settings.caches = caches;
                records(stage, entry, &set, 100, &case.script)
            };
            compared(entry.name, &run(false), &run(true))?;
        }
    }

    /// Without caches, since bus and memory keep their pace. Schedulers of the 2.4 family count in
    /// ticks. Not scx_warmq, broken, cfs and eevdf: virtual times, slices and the mean of virtual
    /// times are quotients that are rounded to nanoseconds, so twice a span is not always twice the
    /// quotient. Nor o1, whose slices and limits are milliseconds in whole ticks.
    #[test]
    fn all_times_doubled_give_the_same_schedule(case in cases()) {
        let in_ticks = ["linux24", "mq", "elsc", "pls"];
        for entry in schedulers().filter(|entry| in_ticks.contains(&entry.name)) {
            let run = |slower| slowed(&case, entry, slower, slower);
            let once: Vec<_> = run(1).iter().map(doubled).collect();
            compared(entry.name, &once, &run(2))?;
        }
    }

    /// Every task is bound to one CPU, since a scheduler that may choose lets the lower number win
    /// where nothing else decides. For that reason mq has two CPUs: with more, it asks those whose
    /// offers are equal in the order of their numbers. Not broken, which has one virtual time for
    /// the machine: the order of the CPUs' ticks shows in it. Nor o1 and eevdf, whose CPUs balance
    /// in the order of their numbers; the jiffies of o1 are those of CPU 0. Nor affinity: places
    /// that are equal are taken in that order.
    #[test]
    fn cpus_renamed_give_the_same_schedule_renamed(case in cases(), cpus in 2u16..5) {
        let numbered = |name: &str| {
            let named = ["broken", "o1", "o1-2.6.4", WARMQ].contains(&name);
            named || name.starts_with("eevdf") || name.starts_with("affinity")
        };
        for entry in schedulers().filter(|entry| !numbered(entry.name)) {
            let cpus = if entry.name == "mq" { 2 } else { cpus };
            let (first, other) = (rotated(&case, entry, cpus, 0), rotated(&case, entry, cpus, 1));
            let first: Vec<_> = first.iter().map(|record| renamed(record, 1, cpus)).collect();
            let other: Vec<_> = other.iter().map(|record| renamed(record, 0, cpus)).collect();
            prop_assert!(!first.is_empty());
            compared(entry.name, &first, &other)?;
        }
    }
}

/// The run of `case` without caches on a clock `cycles` times slower, all else `slower` times.
fn slowed(case: &Case, entry: &Entry, cycles: u64, slower: u64) -> Vec<(Instant, Record)> {
    let real = Case {
        real: true,
        ..case.clone()
    };
    let mut stage = real.stage();
    stage.settings.caches = false;
    // The engine cuts a copy into pieces of 4 us, whatever it costs.
    let mut table = stage.costs.table().clone();
    if let Some(cost) = table.get_mut("copy_per_line") {
        cost.cycles = Cycles(0);
    }
    stage.costs = Costs::new(table);
    even_ticks(&mut stage.settings);
    if cycles == 2 {
        stage = stage.altered(at_half_clock);
    }
    if slower == 2 {
        twice_as_long(&mut stage.settings);
    }
    let mut script = case.script.clone();
    script.slower = slower;
    records(stage, entry, &[], 100 * slower, &script)
}

/// The run of `case` with the n-th task on CPU n + `rotation`, from shortly before the first
/// begins.
///
/// The ticks of n CPUs come in turn, so the whole run comes later by a tick's n-th part for each
/// CPU of the rotation. What happens before is picks and ticks on idle CPUs.
fn rotated(case: &Case, entry: &Entry, cpus: u16, rotation: u16) -> Vec<(Instant, Record)> {
    let mut stage = Case {
        cpus,
        ..case.clone()
    }
    .stage()
    .sharing(1);
    stage.settings.caches = false;
    even_ticks(&mut stage.settings);
    // Coarser than what the first picks of all CPUs wait for one another's locks.
    stage.settings.timer_resolution = Duration::from_ms(1);
    let later = stage.settings.tick / u64::from(cpus) * u64::from(rotation);
    let begins = Duration::from_ms(30) + later;
    let mut script = case.script.clone();
    script.bound = Some(Bound { rotation, begins });
    // Cards interrupt CPU 0 first, and who is forked is bound to no CPU.
    script.flood = None;
    let moves = |act: &Act| matches!(act, Act::Fork(_) | Act::Bind(_) | Act::Online(..));
    for part in &mut script.parts {
        part.acts.retain(|act| !moves(act));
    }
    let mut run = records(stage, entry, &[], 130, &script);
    let from = Instant::START + (begins - Duration::from_ms(1));
    run.retain(|(at, _)| *at >= from && *at < from + Duration::from_ms(90));
    run.iter_mut().for_each(|(at, _)| at.0 -= later.0);
    run
}

// That these laws can fail.

#[test]
fn caches_that_cost_something_change_something() {
    let (case, entry) = (a_case(), &SCHEDULERS[0]);
    let run = |caches| {
        let mut stage = case.stage();
        stage.settings.caches = caches;
        records(stage, entry, &[], 100, &case.script)
    };
    assert!(compared(entry.name, &run(false), &run(true)).is_err());
}

#[test]
fn half_of_all_times_doubled_give_another_schedule() {
    let (case, entry) = (a_case(), &SCHEDULERS[0]);
    let once: Vec<_> = slowed(&case, entry, 1, 1).iter().map(doubled).collect();
    let half = slowed(&case, entry, 2, 1);
    assert!(compared(entry.name, &once, &half).is_err());
}

#[test]
fn cpus_that_are_not_renamed_give_another_schedule() {
    let (case, entry) = (a_case(), &SCHEDULERS[0]);
    let (first, other) = (rotated(&case, entry, 3, 0), rotated(&case, entry, 3, 1));
    assert!(compared(entry.name, &first, &other).is_err());
}
