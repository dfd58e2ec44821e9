//! Nobody waits for long, and nothing throws the scheduler out: quotas and real-time tasks, each
//! with what the kernel may do to a task meanwhile. `--time` says how long each of them lasts.

use std::fs;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::members::{Limited, Members, Where, Work};
use crate::must;
use crate::report::{Drill, Failure, Outcome, lasts};
use crate::scheduler::Scheduler;
use crate::sys;
use crate::workers::{Crew, Longest};

pub const DRILLS: &[Drill] = &[
    Drill {
        name: "starved/throttled-in-the-kernel",
        law: "a least quota stops no task inside the kernel: RCU readers end, and others get its locks",
        run: throttled_in_the_kernel,
    },
    Drill {
        name: "starved/storm",
        law: "quotas, affinities, cgroups and real-time tasks that come and go starve nobody, and throw nothing out",
        run: storm,
    },
];

/// The longest wait that is allowed.
const LONGEST: Duration = Duration::from_secs(5);

/// Fails if one of them has waited for too long, or if the scheduler is gone.
fn nobody_starved(scheduler: &mut Scheduler, members: &[Members]) -> Result<(), Failure> {
    scheduler.still_there()?;
    let waits = members.iter().map(Members::longest_wait);
    let longest = waits.max().unwrap_or_default();
    must!(longest <= LONGEST, "a task waited for {longest:.1?}");
    Ok(())
}

/// Threads without a quota that wait for what others do in the kernel.
struct Others {
    _crew: Crew,
    readers: Longest,
    locks: Longest,
}

impl Others {
    fn begin() -> Others {
        let mut crew = Crew::default();
        Others {
            readers: Longest::of(&mut crew, "readers", sys::await_readers),
            locks: Longest::of(&mut crew, "locks", call_the_kernel),
            _crew: crew,
        }
    }

    /// Fails if RCU readers or the kernel's locks kept one waiting for too long.
    fn are_served(&self) -> Result<(), Failure> {
        let (readers, locks) = (self.readers.so_far(), self.locks.so_far());
        must!(readers <= LONGEST, "RCU readers took {readers:.1?}");
        must!(locks <= LONGEST, "a call of the kernel took {locks:.1?}");
        Ok(())
    }
}

/// Calls `step` until the time of the drill is over.
fn for_its_time(mut step: impl FnMut() -> Result<(), Failure>) -> Result<(), Failure> {
    let end = Instant::now() + lasts();
    while Instant::now() < end {
        step()?;
    }
    Ok(())
}

/// Computes for a moment. (A pause, as of spin_loop(), is slow in a guest: its CPU gives way to the
/// others.)
fn compute() {
    for number in 0..10_000 {
        black_box(number);
    }
}

/// Computes, and sleeps for a moment.
fn nap() {
    compute();
    thread::sleep(Duration::from_millis(1));
}

/// Reads something that the kernel makes up under RCU or under locks that all tasks share.
fn call_the_kernel() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    const FILES: [&str; 3] = [
        "/proc/self/status",
        "/proc/meminfo",
        "/sys/kernel/sched_ext/state",
    ];
    match FILES.get(CALLS.fetch_add(1, Ordering::Relaxed) % 4) {
        Some(path) => drop(fs::read(path)),
        None => drop(fs::read_dir("/proc").map(Iterator::count)),
    }
}

fn throttled_in_the_kernel() -> Outcome {
    let mut scheduler = Scheduler::start(&[])?;
    let limited = Limited::new("drill-least", 1_000, 100_000)?;
    let place = Where {
        cgroup: Some(&limited.folder),
        cpus: &[],
    };
    let members = [Members::start(40, place, call_the_kernel)?];
    let others = Others::begin();
    for_its_time(|| {
        thread::sleep(Duration::from_millis(100));
        nobody_starved(&mut scheduler, &members)?;
        others.are_served()
    })?;
    Ok(format!(
        "longest wait {:.1?}; others {:.1?} for RCU readers, {:.1?} for a call of the kernel",
        members[0].longest_wait(),
        others.readers.so_far(),
        others.locks.so_far()
    ))
}

/// Numbers that look random, the same in each run.
struct Dice(u64);

impl Dice {
    /// One of `0..sides`.
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % sides
    }

    fn one_of<T: Copy>(&mut self, these: &[T]) -> T {
        these[self.roll(these.len())]
    }
}

/// What there is in a storm.
struct Storm {
    dice: Dice,
    /// A cgroup that stays, and who is in it.
    limited: Limited,
    staying: [Members; 3],
    /// A cgroup that is removed with its tasks, again and again.
    passing: Option<(Members, Limited)>,
    /// A real-time task.
    urgent: Option<Members>,
    others: Others,
    steps: usize,
}

const CPUS: [&[usize]; 3] = [&[0], &[1], &[0, 1]];

impl Storm {
    fn begin() -> Result<Storm, Failure> {
        let limited = Limited::new("drill-storm", 20_000, 100_000)?;
        let place = Where {
            cgroup: Some(&limited.folder),
            cpus: &[],
        };
        let staying = [
            Members::start(6, place, compute)?,
            Members::start(6, place, call_the_kernel)?,
            Members::start(4, place, nap)?,
        ];
        Ok(Storm {
            dice: Dice(1),
            limited,
            staying,
            passing: None,
            urgent: None,
            others: Others::begin(),
            steps: 0,
        })
    }

    fn step(&mut self) -> Result<(), Failure> {
        self.steps += 1;
        match self.dice.roll(8) {
            0..=2 => {
                let cpus = self.dice.one_of(&CPUS);
                self.staying[self.dice.roll(3)].confine(cpus);
            }
            3 | 4 => {
                let quotas = [
                    "max",
                    "1000 100000",
                    "5000 20000",
                    "20000 100000",
                    "150000 100000",
                ];
                self.limited.set(self.dice.one_of(&quotas))?;
            }
            5 | 6 => self.replace_the_passing()?,
            _ => self.replace_the_urgent()?,
        }
        thread::sleep(Duration::from_millis(self.dice.one_of(&[1, 10, 40, 150])));
        Ok(())
    }

    /// Kills the tasks of a cgroup and removes it, or makes it anew.
    fn replace_the_passing(&mut self) -> Result<(), Failure> {
        if let Some((members, limited)) = self.passing.take() {
            must!(members.kill(LONGEST), "a killed task does not end");
            must!(limited.remove(LONGEST), "a cgroup cannot be removed");
            return Ok(());
        }
        let limited = Limited::new("drill-passing", self.dice.one_of(&[1_000, 20_000]), 100_000)?;
        let place = Where {
            cgroup: Some(&limited.folder),
            cpus: self.dice.one_of(&CPUS),
        };
        let members = Members::start(
            8,
            place,
            self.dice.one_of(&[compute as Work, call_the_kernel]),
        )?;
        self.passing = Some((members, limited));
        Ok(())
    }

    /// A real-time task takes a CPU for a moment, or one that never sleeps ends.
    fn replace_the_urgent(&mut self) -> Result<(), Failure> {
        if self.urgent.take().is_none() {
            let place = Where {
                cgroup: None,
                cpus: self.dice.one_of(&CPUS),
            };
            self.urgent = Some(Members::start(1, place, || {
                let _ = sys::be_real_time(50);
                let until = Instant::now() + Duration::from_millis(30);
                while Instant::now() < until {
                    compute();
                }
                thread::sleep(Duration::from_millis(20));
            })?);
        }
        Ok(())
    }

    fn nobody_starved(&self, scheduler: &mut Scheduler) -> Result<(), Failure> {
        nobody_starved(scheduler, &self.staying)?;
        self.others.are_served()
    }
}

fn storm() -> Outcome {
    let mut scheduler = Scheduler::start(&[])?;
    let mut storm = Storm::begin()?;
    for_its_time(|| {
        storm.step()?;
        storm.nobody_starved(&mut scheduler)
    })?;
    let waits = storm.staying.iter().map(Members::longest_wait);
    Ok(format!(
        "{} steps, longest wait {:.1?}; others {:.1?} for RCU readers, {:.1?} for a call of the kernel",
        storm.steps,
        waits.max().unwrap_or_default(),
        storm.others.readers.so_far(),
        storm.others.locks.so_far()
    ))
}
