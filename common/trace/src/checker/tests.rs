//! Lawful runs of any kind pass, and each law catches its own violation wherever it is put.

use proptest::prelude::*;
use warmq_units::{CpuId, Duration, Instant, Seed, Stream, TaskId};

use super::{Breach, Checker, Law, Violation};
use crate::arbitrary::records;
use crate::{Comm, Interrupt, Observer, Record};

type Run = Vec<(Instant, Record)>;

/// A made-up machine with three CPUs and one queue that lives lawfully at random.
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
    // Nobody waits long enough to be lost.
    let end = run.last().map_or(Instant::START, |(at, _)| *at);
    checker.patient(Duration::from_s(1)).finish(end)
}

/// The law that is broken when the lawful run of `seed` goes on with `record`.
fn broken_by(machine: &Machine, record: Record) -> Option<Law> {
    let mut run = machine.run.clone();
    run.push((machine.now, record));
    let violation = verdict(Checker::of_a_run(), &run).err()?;
    assert_eq!(violation.at, machine.now);
    assert_eq!(
        violation.record,
        machine.run.len() as u64,
        "found late or early: {violation}"
    );
    Some(violation.breach.law())
}

fn switch(cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>) -> Record {
    Record::Switch {
        cpu,
        prev,
        prev_runnable: prev.is_some(),
        next,
    }
}

fn to_cpu(place: usize) -> CpuId {
    CpuId(place as u16)
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
    fn time_that_runs_back_is_caught(seed: u64, steps in 0u64..200, by in 1u64..1000) {
        let mut run = Machine::lives(seed, steps).run;
        let last = run.len() as u64 - 1;
        run.iter_mut().for_each(|(at, _)| *at += Duration(1000));
        run.last_mut().unwrap().0 = Instant(1000 - by.min(999));
        let violation = verdict(Checker::of_a_run(), &run).unwrap_err();
        prop_assert_eq!((violation.breach.law(), violation.record), (Law::TimeNeverBack, last));
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
                prop_assert_eq!(caught, Some(Law::InterruptsBalanced));
                let another = if *open == Interrupt::Timer { Interrupt::Network } else { Interrupt::Timer };
                let exit = Record::InterruptExit { cpu, interrupt: another };
                prop_assert_eq!(broken_by(&machine, exit), Some(Law::InterruptsBalanced));
                continue;
            }
            let exit = Record::InterruptExit { cpu, interrupt: Interrupt::Timer };
            prop_assert_eq!(broken_by(&machine, exit), Some(Law::InterruptsBalanced));
            let caught = broken_by(&machine, switch(cpu, prev, Some(unborn)));
            prop_assert_eq!(caught, Some(Law::LifeOnce));
            let caught = broken_by(&machine, switch(cpu, another, None));
            prop_assert_eq!(caught, Some(Law::SwitchesMatch));
            if let Some(task) = machine.asleep.first() {
                let caught = broken_by(&machine, switch(cpu, prev, Some(*task)));
                prop_assert_eq!(caught, Some(Law::OnlyRunnableRuns));
            }
            for (elsewhere, task) in machine.running.iter().enumerate() {
                if elsewhere != place && task.is_some() {
                    let caught = broken_by(&machine, switch(cpu, prev, *task));
                    prop_assert_eq!(caught, Some(Law::OneCpuPerTask));
                }
            }
        }
    }

    #[test]
    fn nobody_lives_twice_or_after_death(seed: u64, steps in 0u64..300) {
        let machine = Machine::lives(seed, steps);
        let comm = Comm::new("again");
        let forked = Record::Fork { parent: None, child: TaskId(0), comm };
        prop_assert_eq!(broken_by(&machine, forked), Some(Law::LifeOnce));
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
                prop_assert_eq!(broken_by(&machine, record), Some(Law::LifeOnce));
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

fn ms(ms: u64) -> Instant {
    Instant::START + Duration::from_ms(ms)
}

/// One task, forked at the start, and then `records`; judged at 100 ms.
fn one_task(records: &[(u64, Record)]) -> Result<(), Violation> {
    let mut checker = Checker::of_a_run();
    checker.see(
        ms(0),
        &Record::Fork {
            parent: None,
            child: A,
            comm: Comm::new("A"),
        },
    );
    records
        .iter()
        .for_each(|(at, record)| checker.see(ms(*at), record));
    checker.finish(ms(100))
}

const A: TaskId = TaskId(0);
const CPU: CpuId = CpuId(0);

fn woken(target: CpuId) -> Record {
    Record::Wakeup {
        waker: CPU,
        task: A,
        target,
    }
}

#[test]
fn a_wakeup_is_lost_if_its_cpu_idles_to_the_end() {
    let violation = one_task(&[(30, woken(CPU))]).unwrap_err();
    assert_eq!((violation.task, violation.cpu), (Some(A), Some(CPU)));
    assert_eq!(violation.breach, Breach::LeftWaiting { since: ms(30) });
    assert_eq!(
        violation.to_string(),
        "100.000 ms (record 2): task0 on cpu0: the task waits for a CPU that idles, both since \
         30.000 ms"
    );

    let preempted = [
        (10, woken(CPU)),
        (11, switch(CPU, None, Some(A))),
        (20, switch(CPU, Some(A), None)),
    ];
    let violation = one_task(&preempted).unwrap_err();
    assert_eq!(violation.breach, Breach::LeftWaiting { since: ms(20) });

    let moved = [
        (10, woken(CPU)),
        (
            20,
            Record::Migrate {
                task: A,
                from: CPU,
                to: CpuId(1),
            },
        ),
    ];
    let violation = one_task(&moved).unwrap_err();
    assert_eq!((violation.cpu, violation.record), (Some(CpuId(1)), 3));
}

#[test]
fn a_wakeup_is_not_lost_if_it_is_fresh_or_queued_or_run() {
    assert_eq!(
        one_task(&[(80, woken(CPU))]),
        Ok(()),
        "the patience is not over"
    );
    assert_eq!(
        one_task(&[(30, woken(CPU)), (31, switch(CPU, None, Some(A)))]),
        Ok(())
    );
    let slept = Record::Switch {
        cpu: CPU,
        prev: Some(A),
        prev_runnable: false,
        next: None,
    };
    assert_eq!(
        one_task(&[
            (30, woken(CPU)),
            (31, switch(CPU, None, Some(A))),
            (32, slept)
        ]),
        Ok(())
    );

    let (other, comm) = (TaskId(1), Comm::new("B"));
    let busy = [
        (
            1,
            Record::Fork {
                parent: None,
                child: other,
                comm,
            },
        ),
        (
            1,
            Record::Wakeup {
                waker: CPU,
                task: other,
                target: CPU,
            },
        ),
        (1, switch(CPU, None, Some(other))),
        (2, woken(CPU)),
    ];
    assert_eq!(one_task(&busy), Ok(()), "queued behind another");
}

#[test]
fn the_dead_are_not_runnable() {
    let exit = Record::Exit { cpu: CPU, task: A };
    let start = [(1, woken(CPU)), (1, switch(CPU, None, Some(A))), (2, exit)];
    let leaves = |prev_runnable| Record::Switch {
        cpu: CPU,
        prev: Some(A),
        prev_runnable,
        next: None,
    };
    assert_eq!(
        one_task(&[&start[..], &[(3, leaves(false))]].concat()),
        Ok(())
    );
    let violation = one_task(&[&start[..], &[(3, leaves(true))]].concat()).unwrap_err();
    assert_eq!(violation.breach, Breach::RunnableAfterExit);
    let goes_on = Record::Switch {
        cpu: CPU,
        prev: Some(A),
        prev_runnable: false,
        next: Some(A),
    };
    let violation = one_task(&[&start[..], &[(3, goes_on)]].concat()).unwrap_err();
    assert_eq!(violation.breach, Breach::NotAlive);
}

#[test]
fn only_the_first_violation_is_kept() {
    let stranger = |task| switch(CPU, None, Some(TaskId(task)));
    let violation = one_task(&[(5, stranger(7)), (6, stranger(8))]).unwrap_err();
    assert_eq!((violation.at, violation.task), (ms(5), Some(TaskId(7))));
}

#[test]
#[should_panic(expected = "task7 on cpu0: the task was not forked")]
fn a_panicking_checker_panics_where_the_law_breaks() {
    Checker::of_a_run()
        .panicking()
        .see(ms(5), &switch(CPU, None, Some(TaskId(7))));
}
