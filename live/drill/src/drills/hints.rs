//! Hints, labels and inference: hints are advice, and cannot harm other tasks.

use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::must;
use crate::report::{Drill, Failure, Outcome};
use crate::scheduler::{Scheduler, figures};
use crate::sys;
use crate::workers::{Crew, hog, wait_until, work};

pub const DRILLS: &[Drill] = &[
    Drill {
        name: "hints/lying-hints",
        law: "naming the fragments of other tasks, or changing fragments all the time, gains no CPU time",
        run: lying,
    },
    Drill {
        name: "hints/flood-of-fragments",
        law: "a flood of fragments fills only its own process's part of the table, and costs other tasks nothing",
        run: flood,
    },
    Drill {
        name: "hints/label-by-name",
        law: "a label by name puts a thread into that group",
        run: label,
    },
    Drill {
        name: "hints/inference",
        law: "inference finds the rooms of a chat",
        run: inference,
    },
];

/// Honest hogs beside as many that do `lie` all the time. No share may change by more than a tenth.
fn beside_liars(options: &[&str], lie: fn(u32)) -> Result<String, Failure> {
    let _scheduler = Scheduler::start(options)?;
    let mut crew = Crew::default();
    for _ in 0..4 {
        crew.add("honest", hog);
    }
    for liar in 0..4_u32 {
        crew.add("liar", move |shift| {
            let mut turn = liar;
            while shift.goes_on() {
                lie(turn);
                turn = turn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                work(Duration::from_micros(300));
            }
        });
    }
    thread::sleep(Duration::from_secs(1));
    let had = crew.during(Duration::from_secs(6));
    let (honest, liars): (Duration, Duration) = (had[..4].iter().sum(), had[4..].iter().sum());
    let share = honest.as_secs_f64() / (honest + liars).as_secs_f64();
    must!(
        (0.45..=0.55).contains(&share),
        "the honest half had {:.1} %: {had:?}",
        share * 100.0
    );
    Ok(format!("the honest half had {:.1} %", share * 100.0))
}

fn lying() -> Result<Outcome, Failure> {
    let few = beside_liars(&["--place", "cpu"], |turn| {
        sys::hint(Some((1, turn >> 30)));
    })?;
    Ok(Outcome::Holds(few))
}

fn flood() -> Result<Outcome, Failure> {
    let shares = beside_liars(&["--place", "cpu", "--groups-per-process", "32"], |turn| {
        for more in 0..20 {
            sys::hint(Some((1, turn.wrapping_add(more))));
        }
    })?;
    let _scheduler = Scheduler::start(&["--groups-per-process", "32"])?;
    for fragment in 0..100_000 {
        sys::hint(Some((1, fragment)));
    }
    let seen = figures()?;
    sys::hint(None);
    let groups = seen.groups(std::process::id()).len();
    must!(
        groups <= 32,
        "one process has {groups} groups of at most 32"
    );
    must!(
        seen.counter("groups_refused") > 50_000,
        "{} refused",
        seen.counter("groups_refused")
    );
    Ok(Outcome::Holds(format!(
        "{shares}; {groups} groups of 100,000 fragments"
    )))
}

fn label() -> Result<Outcome, Failure> {
    let _scheduler = Scheduler::start(&["--place", "cpu"])?;
    let mut crew = Crew::default();
    (0..4).for_each(|_| crew.add("worker-a", hog));
    (0..4).for_each(|_| crew.add("other-b", hog));
    let status = Command::new("scx_warmq")
        .args(["label", "--name", "worker-*", "7"])
        .output()?;
    must!(
        status.status.success(),
        "scx_warmq label: {}",
        String::from_utf8_lossy(&status.stderr)
    );
    let labelled = || {
        figures().is_ok_and(|seen| {
            seen.groups(0)
                .iter()
                .any(|group| group.fragment == Some(7) && group.members == 4)
        })
    };
    must!(
        wait_until(Duration::from_secs(5), labelled),
        "groups: {:?}",
        figures()?.groups(0)
    );
    let none = Command::new("scx_warmq")
        .args(["label", "--name", "nobody-*", "7"])
        .output();
    must!(
        none.is_ok_and(|output| !output.status.success()),
        "a pattern that no thread matches is not reported as an error"
    );
    Ok(Outcome::Holds("4 of 4 threads".to_owned()))
}

/// Threads of some rooms; in each room they pass a token around over sockets.
fn rooms(crew: &mut Crew, rooms: usize, users: usize) {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    for room in 0..rooms {
        let mut pairs: Vec<(UnixStream, UnixStream)> = (0..users)
            .map(|_| UnixStream::pair().expect("a socket"))
            .collect();
        let first = pairs[0].0.try_clone().expect("a socket");
        let mut next: Vec<UnixStream> = pairs
            .iter()
            .skip(1)
            .map(|pair| pair.0.try_clone().expect("a socket"))
            .collect();
        next.push(first);
        for (user, to) in next.into_iter().enumerate() {
            let from = pairs.remove(0).1;
            from.set_read_timeout(Some(Duration::from_millis(200)))
                .expect("a timeout");
            let (mut from, mut to) = (from, to);
            crew.add(&format!("room-{room}"), move |shift| {
                let mut byte = [0_u8];
                if user == 0 {
                    let _ = to.write_all(&byte);
                }
                while shift.goes_on() {
                    if from.read_exact(&mut byte).is_ok() {
                        work(Duration::from_micros(50));
                        let _ = to.write_all(&byte);
                    }
                }
            });
        }
    }
}

fn inference() -> Result<Outcome, Failure> {
    let _scheduler = Scheduler::start(&["--infer", "--place", "cpu"])?;
    let mut crew = Crew::default();
    rooms(&mut crew, 4, 6);
    let found = || {
        figures().is_ok_and(|seen| {
            let groups = seen.groups(0);
            groups.iter().filter(|group| group.members == 6).count() == 4
        })
    };
    must!(
        wait_until(Duration::from_secs(15), found),
        "groups: {:?}",
        figures()?.groups(0)
    );
    Ok(Outcome::Holds("4 rooms of 6".to_owned()))
}
