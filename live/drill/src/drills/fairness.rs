//! Shares and waits.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::must;
use crate::report::{Drill, Failure, Outcome};
use crate::scheduler::{Scheduler, figures};
use crate::sys;
use crate::workers::{Crew, Gate, hog, sleeper, work};

pub const DRILLS: &[Drill] = &[
    Drill {
        name: "fairness/nice-weights",
        law: "CPU time is shared by the weights of nice values, within 10 %",
        run: nice_weights,
    },
    Drill {
        name: "fairness/nice-weights-on-one-cpu",
        law: "CPU time is shared by weight among tasks that may run on one CPU only, too",
        run: nice_weights_pinned,
    },
    Drill {
        name: "fairness/cgroup-weights",
        law: "CPU time is shared by cgroup weights, whatever the number of tasks, within 10 %",
        run: cgroup_weights,
    },
    Drill {
        name: "fairness/hog-beside-sleepers",
        law: "a CPU-bound task beside 4 frequent sleepers gets its fair share within 10 %",
        run: hog_beside_sleepers,
    },
    Drill {
        name: "fairness/storm",
        law: "in a storm of 2,000 tasks no task waits longer than the bound",
        run: storm,
    },
    Drill {
        name: "fairness/least-weight",
        law: "beside 100 other tasks, a task of nice 19 runs within 6 s, although its share is one slice in 20 s",
        run: least_weight,
    },
];

/// Checks that `had` is proportional to `weights`, within ten percent each.
pub fn shares(had: &[Duration], weights: &[f64]) -> Result<String, Failure> {
    let total: f64 = had.iter().map(Duration::as_secs_f64).sum();
    let whole: f64 = weights.iter().sum();
    let mut worst: f64 = 0.0;
    for (had, weight) in had.iter().zip(weights) {
        let (share, fair) = (had.as_secs_f64() / total, weight / whole);
        worst = worst.max((share / fair - 1.0).abs());
    }
    must!(
        worst <= 0.1,
        "{had:?} for weights {weights:?}: {:.1} % off",
        worst * 100.0
    );
    Ok(format!("at most {:.1} % off", worst * 100.0))
}

/// sched_prio_to_weight of kernel/sched/core.c over 1024: nice 0, 5, 10.
const NICE: [(i32, f64); 3] = [(0, 1.0), (5, 335.0 / 1024.0), (10, 110.0 / 1024.0)];

fn nice_hogs(crew: &mut Crew, cpus: &'static [usize], of_each: usize) {
    for (value, _) in NICE {
        for _ in 0..of_each {
            crew.add(&format!("nice-{value}"), move |shift| {
                sys::run_on(cpus);
                sys::nice(value);
                hog(shift);
            });
        }
    }
}

fn nice_weights() -> Result<Outcome, Failure> {
    let _scheduler = Scheduler::start(&[])?;
    let mut crew = Crew::new();
    nice_hogs(&mut crew, &[0, 1], 2);
    thread::sleep(Duration::from_secs(1));
    let had = crew.during(Duration::from_secs(8));
    let by_nice: Vec<Duration> = had.chunks(2).map(|two| two.iter().sum()).collect();
    Ok(Outcome::Holds(shares(
        &by_nice,
        &NICE.map(|(_, weight)| weight),
    )?))
}

fn nice_weights_pinned() -> Result<Outcome, Failure> {
    let _scheduler = Scheduler::start(&[])?;
    let mut crew = Crew::new();
    nice_hogs(&mut crew, &[1], 1);
    thread::sleep(Duration::from_secs(1));
    let had = crew.during(Duration::from_secs(8));
    Ok(Outcome::Holds(shares(
        &had,
        &NICE.map(|(_, weight)| weight),
    )?))
}

/// A cgroup of a drill, removed with its tasks when this is dropped.
struct Cgroup(String);

impl Cgroup {
    fn new(name: &str, weight: u32) -> Result<Cgroup, Failure> {
        let path = format!("/sys/fs/cgroup/{name}");
        let failed = |error: std::io::Error| Failure(format!("{path}: {error}"));
        let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+cpu");
        fs::create_dir(&path).map_err(failed)?;
        let cgroup = Cgroup(path.clone());
        fs::write(Path::new(&path).join("cpu.weight"), weight.to_string()).map_err(failed)?;
        Ok(cgroup)
    }

    /// Starts `tasks` hogs in it. Their CPU time is read from the cgroup's cpu.stat.
    fn hogs(&self, tasks: usize) -> Result<Vec<std::process::Child>, Failure> {
        let failed = |error: std::io::Error| Failure(format!("{}: {error}", self.0));
        let mut children = Vec::new();
        for _ in 0..tasks {
            let child = std::process::Command::new("/bin/sh")
                .args(["-c", "while :; do :; done"])
                .spawn()
                .map_err(failed)?;
            let mut procs = fs::OpenOptions::new()
                .write(true)
                .open(format!("{}/cgroup.procs", self.0))
                .map_err(failed)?;
            children.push(child);
            write!(
                procs,
                "{}",
                children.last().map_or(0, std::process::Child::id)
            )
            .map_err(failed)?;
        }
        Ok(children)
    }

    fn had(&self) -> Duration {
        let text = fs::read_to_string(format!("{}/cpu.stat", self.0)).unwrap_or_default();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("usage_usec "));
        Duration::from_micros(line.and_then(|number| number.parse().ok()).unwrap_or(0))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::write(format!("{}/cgroup.kill", self.0), "1");
        for _ in 0..20 {
            if fs::remove_dir(&self.0).is_ok() {
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
}

fn cgroup_weights() -> Result<Outcome, Failure> {
    let _scheduler = Scheduler::start(&[])?;
    let groups = [
        Cgroup::new("drill-many", 100)?,
        Cgroup::new("drill-few", 300)?,
    ];
    let mut children = groups[0].hogs(6)?;
    children.extend(groups[1].hogs(2)?);
    thread::sleep(Duration::from_secs(1));
    let before = [groups[0].had(), groups[1].had()];
    thread::sleep(Duration::from_secs(8));
    let had = [groups[0].had() - before[0], groups[1].had() - before[1]];
    let verdict = shares(&had, &[1.0, 3.0]);
    for child in &mut children {
        let _ = child.kill();
        let _ = child.wait();
    }
    Ok(Outcome::Holds(verdict?))
}

fn hog_beside_sleepers() -> Result<Outcome, Failure> {
    let _scheduler = Scheduler::start(&[])?;
    let mut crew = Crew::new();
    crew.add("hog", |shift| {
        sys::run_on(&[sys::last_cpu()]);
        hog(shift);
    });
    for _ in 0..4 {
        crew.add("sleeper", |shift| {
            sys::run_on(&[sys::last_cpu()]);
            sleeper(shift, Duration::from_millis(2), Duration::from_millis(1));
        });
    }
    thread::sleep(Duration::from_secs(1));
    let had = crew.during(Duration::from_secs(8));
    let share = had[0].as_secs_f64() / had.iter().map(Duration::as_secs_f64).sum::<f64>();
    must!(
        (0.18..=0.22).contains(&share),
        "the hog had {:.1} % instead of 20: {had:?}",
        share * 100.0
    );
    Ok(Outcome::Holds(format!("{:.1} % of 20", share * 100.0)))
}

fn storm() -> Result<Outcome, Failure> {
    let mut scheduler = Scheduler::start(&[])?;
    let (mut crew, gate) = (Crew::new(), Gate::default());
    crew.add("hog", hog);
    for number in 0..2000_u64 {
        let gate = gate.clone();
        crew.add("storm", move |shift| {
            gate.pass();
            while shift.goes_on() {
                work(Duration::from_micros(100 + number % 7 * 100));
                if number % 3 == 0 {
                    thread::sleep(Duration::from_millis(number % 11));
                }
            }
        });
    }
    gate.open();
    thread::sleep(Duration::from_secs(8));
    let unlucky = crew.had().iter().filter(|had| had.is_zero()).count();
    crew.stop();
    let figures = figures()?;
    let (over, longest) = (
        figures.counter("over_bound"),
        figures.counter("longest_wait_ns"),
    );
    let bound = figures.counter("longest_bound_ns");
    must!(scheduler.runs(), "the scheduler has ended");
    must!(unlucky == 0, "{unlucky} tasks never ran");
    must!(
        over == 0 && longest < bound,
        "{over} waits over the bound; the longest {longest} of {bound} ns"
    );
    Ok(Outcome::Holds(format!(
        "longest wait {} of {} ms",
        longest / 1_000_000,
        bound / 1_000_000
    )))
}

fn least_weight() -> Result<Outcome, Failure> {
    let _scheduler = Scheduler::start(&[])?;
    let mut crew = Crew::new();
    crew.add("light", |shift| {
        sys::nice(19);
        hog(shift);
    });
    (0..100).for_each(|_| crew.add("hog", hog));
    thread::sleep(Duration::from_secs(3));
    let had = crew.during(Duration::from_secs(6));
    let figures = figures()?;
    crew.stop();
    let over = figures.counter("over_bound");
    must!(
        !had[0].is_zero(),
        "it never ran; the others had {:?}; {} waits over the bound",
        &had[1..4],
        figures.counter("over_bound")
    );
    must!(
        over == 0,
        "{over} waits over the bound: {}",
        figures.overdue()
    );
    Ok(Outcome::Holds(format!(
        "{:.1} ms in 6 s, the longest wait {:.1} s",
        had[0].as_secs_f64() * 1e3,
        figures.counter("longest_wait_ns") as f64 / 1e9
    )))
}
