//! Random runs of a made-up machine, lawful but for what is appended.

use proptest::prelude::*;
use warmq_units::{CpuId, Duration, Instant, Seed, Stream, TaskId};

use super::invariant::Invariant;
use super::switch;
use crate::arbitrary::records;
use crate::checker::{Checker, Promise, Queues, Violation};
use crate::{Comm, Interrupt, Observer, Record};

type Run = Vec<(Instant, Record)>;

/// A made-up machine with three CPUs and one queue that makes random lawful records.
struct Machine {
    now: Instant,
    random: Stream,
    running: [Option<TaskId>; 3],
    open: [Vec<Interrupt>; 3],
    queue: Vec<TaskId>,
    asleep: Vec<TaskId>,
    forked: u32,
    run: Run,
}

impl Machine {
    fn lives(seed: u64, steps: u64) -> Machine {
        let mut machine = Machine {
            now: Instant(1),
            random: Seed(seed).stream("life"),
            running: [None; 3],
            open: [const { Vec::new() }; 3],
            queue: Vec::new(),
            asleep: Vec::new(),
            forked: 0,
            run: Vec::new(),
        };
        (0..4).for_each(|_| machine.fork());
        (0..steps).for_each(|_| machine.step());
        machine
    }

    fn happens(&mut self, record: Record) {
        self.run.push((self.now, record));
    }

    fn fork(&mut self) {
        let child = TaskId(self.forked);
        self.forked += 1;
        self.asleep.push(child);
        self.happens(Record::Fork {
            parent: None,
            child,
            comm: Comm::new("made up"),
        });
    }

    fn step(&mut self) {
        self.now += Duration(self.random.below(3));
        let place = self.random.below(3) as usize;
        let cpu = CpuId(place as u16);
        match self.random.below(8) {
            0 => self.fork(),
            1 | 2 if !self.asleep.is_empty() => {
                let task = self
                    .asleep
                    .remove(self.random.below(self.asleep.len() as u64) as usize);
                self.queue.push(task);
                self.happens(Record::Wakeup {
                    waker: cpu,
                    task,
                    target: cpu,
                });
            }
            3 => {
                let interrupt =
                    [Interrupt::Timer, Interrupt::Network][self.random.below(2) as usize];
                self.open[place].push(interrupt);
                self.happens(Record::InterruptEnter { cpu, interrupt });
            }
            4 => {
                if let Some(interrupt) = self.open[place].pop() {
                    self.happens(Record::InterruptExit { cpu, interrupt });
                }
            }
            _ if self.open[place].is_empty() => self.switch(place),
            _ => {}
        }
    }

    fn switch(&mut self, place: usize) {
        let cpu = CpuId(place as u16);
        let prev = self.running[place];
        let prev_runnable = prev.is_some() && self.random.chance(1, 2);
        if let Some(task) = prev {
            match (prev_runnable, self.random.chance(1, 8)) {
                (true, _) => self.queue.push(task),
                (false, true) => self.happens(Record::Exit { cpu, task }),
                (false, false) => self.asleep.push(task),
            }
        }
        let next = (!self.queue.is_empty()).then(|| self.queue.remove(0));
        self.running[place] = next;
        self.happens(Record::Switch {
            cpu,
            prev,
            prev_runnable,
            next,
        });
    }
}

fn verdict(checker: Checker, run: &Run) -> Result<(), Violation> {
    let mut checker = checker;
    run.iter().for_each(|(at, record)| checker.see(*at, record));
    // No task waits long enough to break the promise.
    let end = run.last().map_or(Instant::START, |(at, _)| *at);
    let promise = Promise {
        patience: Duration::from_s(1),
        queues: Queues::Shared,
    };
    checker.promised(promise).finish(end)
}

/// The invariant that `record` breaks when it is appended to the lawful run of `machine`.
fn broken_by(machine: &Machine, record: Record) -> Option<Invariant> {
    let mut run = machine.run.clone();
    run.push((machine.now, record));
    let violation = verdict(Checker::of_a_run(), &run).err()?;
    assert_eq!(violation.at, machine.now);
    assert_eq!(
        violation.record,
        machine.run.len() as u64,
        "found late or early: {violation}"
    );
    Some(violation.breach.invariant())
}

fn to_cpu(place: usize) -> CpuId {
    CpuId(place as u16)
}

/// The CPU that made a record; none of a fork, which any may have made.
fn maker(record: &Record) -> Option<CpuId> {
    match *record {
        Record::Wakeup { waker: cpu, .. }
        | Record::Exit { cpu, .. }
        | Record::Switch { cpu, .. }
        | Record::InterruptEnter { cpu, .. }
        | Record::InterruptExit { cpu, .. } => Some(cpu),
        _ => None,
    }
}

proptest! {
    #[test]
    fn a_lawful_run_breaks_no_law(seed: u64, steps in 0u64..300, from: prop::sample::Index) {
        let run = Machine::lives(seed, steps).run;
        prop_assert_eq!(verdict(Checker::of_a_run(), &run), Ok(()));
        let midway = run[from.index(run.len())..].to_vec();
        prop_assert_eq!(verdict(Checker::of_a_recording(), &midway), Ok(()));
    }

    #[test]
    fn a_recording_with_a_gap_breaks_no_law(
        seed: u64,
        steps in 0u64..300,
        place in 0usize..3,
        ends: [prop::sample::Index; 2],
    ) {
        let run = Machine::lives(seed, steps).run;
        let [one, other] = ends.map(|end| end.index(run.len()));
        let gap = one.min(other)..one.max(other);
        let cpu = to_cpu(place);
        let start = run[gap.start].0;
        let kept = |place: usize, entry: &(Instant, Record)| {
            !gap.contains(&place) || maker(&entry.1).is_some_and(|maker| maker != cpu)
        };
        let mut known: Run = run.iter().enumerate().filter(|(at, entry)| kept(*at, entry))
            .map(|(_, entry)| *entry).collect();
        known.insert(gap.start, (start, Record::Lost { cpu, events: 0 }));
        for checker in [Checker::of_a_run(), Checker::of_a_recording()] {
            prop_assert_eq!(verdict(checker, &known), Ok(()));
        }
    }

    #[test]
    fn time_that_runs_back_is_caught(seed: u64, steps in 0u64..200, by in 1u64..1000) {
        let mut run = Machine::lives(seed, steps).run;
        let last = run.len() as u64 - 1;
        run.iter_mut().for_each(|(at, _)| *at += Duration(1000));
        run.last_mut().unwrap().0 = Instant(1000 - by.min(999));
        let violation = verdict(Checker::of_a_run(), &run).unwrap_err();
        prop_assert_eq!((violation.breach.invariant(), violation.record), (Invariant::TimeNeverBack, last));
    }

    #[test]
    fn each_law_catches_its_own_violation(seed: u64, steps in 0u64..200) {
        let machine = Machine::lives(seed, steps);
        let unborn = TaskId(machine.forked);
        for place in 0..3 {
            let (cpu, prev) = (to_cpu(place), machine.running[place]);
            let another = Some(TaskId(machine.forked + 7));
            if let Some(open) = machine.open[place].last() {
                let caught = broken_by(&machine, switch(cpu, prev, None));
                prop_assert_eq!(caught, Some(Invariant::InterruptsBalanced));
                let another = if *open == Interrupt::Timer { Interrupt::Network } else { Interrupt::Timer };
                let exit = Record::InterruptExit { cpu, interrupt: another };
                prop_assert_eq!(broken_by(&machine, exit), Some(Invariant::InterruptsBalanced));
                continue;
            }
            let exit = Record::InterruptExit { cpu, interrupt: Interrupt::Timer };
            prop_assert_eq!(broken_by(&machine, exit), Some(Invariant::InterruptsBalanced));
            let caught = broken_by(&machine, switch(cpu, prev, Some(unborn)));
            prop_assert_eq!(caught, Some(Invariant::LifeOnce));
            let caught = broken_by(&machine, switch(cpu, another, None));
            prop_assert_eq!(caught, Some(Invariant::SwitchesMatch));
            if let Some(task) = machine.asleep.first() {
                let caught = broken_by(&machine, switch(cpu, prev, Some(*task)));
                prop_assert_eq!(caught, Some(Invariant::OnlyRunnableRuns));
            }
            for (elsewhere, task) in machine.running.iter().enumerate() {
                if elsewhere != place && task.is_some() {
                    let caught = broken_by(&machine, switch(cpu, prev, *task));
                    prop_assert_eq!(caught, Some(Invariant::OneCpuPerTask));
                }
            }
        }
    }

    #[test]
    fn nobody_lives_twice_or_after_death(seed: u64, steps in 0u64..300) {
        let machine = Machine::lives(seed, steps);
        let comm = Comm::new("again");
        let forked = Record::Fork { parent: None, child: TaskId(0), comm };
        prop_assert_eq!(broken_by(&machine, forked), Some(Invariant::LifeOnce));
        let exits = machine.run.iter().filter_map(|(_, record)| match record {
            Record::Exit { cpu, task } => Some((*cpu, *task)),
            _ => None,
        });
        for (cpu, task) in exits {
            for record in [
                Record::Exit { cpu, task },
                Record::Wakeup { waker: cpu, task, target: cpu },
                Record::Migrate { task, from: cpu, to: CpuId(0) },
                Record::Fork { parent: None, child: task, comm },
            ] {
                prop_assert_eq!(broken_by(&machine, record), Some(Invariant::LifeOnce));
            }
        }
    }

    #[test]
    fn any_records_are_judged_without_a_panic(run in records(), end: u64) {
        for mut checker in [Checker::of_a_run(), Checker::of_a_recording()] {
            run.iter().for_each(|(at, record)| checker.see(*at, record));
            if let Some(violation) = checker.violation().copied() {
                prop_assert_eq!(checker.finish(Instant(end)), Err(violation));
            }
        }
    }
}
