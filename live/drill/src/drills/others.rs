//! What others give to the scheduler and ask it for: groups of programs that name nothing, hints in
//! a map, a Unix group with access, the tools of scx.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::must;
use crate::report::{Drill, Failure, Outcome};
use crate::scheduler::{Scheduler, figures};
use crate::sys;
use crate::workers::{Crew, hog, wait_until};

pub const DRILLS: &[Drill] = &[
    Drill {
        name: "others/group-by",
        law: "threads that name nothing are grouped by memory, process or cgroup, and no longer once they leave it",
        run: group_by,
    },
    Drill {
        name: "others/task-hint-map",
        law: "threads follow hints that are written for them into a map of task storage",
        run: task_hint_map,
    },
    Drill {
        name: "others/access-group",
        law: "the members of the Unix group that was named may look at it, and nobody else",
        run: access_group,
    },
    Drill {
        name: "others/scx-stats",
        law: "the tools of scx get what happened since they asked last",
        run: scx_stats,
    },
];

const SOON: Duration = Duration::from_secs(5);

/// A cgroup, removed when this is dropped; whoever is in it goes back to the root.
struct Cgroup(&'static str);

impl Cgroup {
    fn enter(path: &'static str) -> std::io::Result<Cgroup> {
        fs::create_dir_all(path)?;
        fs::write(format!("{path}/cgroup.procs"), "0")?;
        Ok(Cgroup(path))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The guest ends soon after, whatever stays.
        let _ = fs::write("/sys/fs/cgroup/cgroup.procs", "0");
        let _ = fs::remove_dir(self.0);
    }
}

/// How many members the largest group of this origin has.
fn members(origin: &str) -> u64 {
    figures().map_or(0, |seen| {
        let groups = seen.groups(0).into_iter();
        let groups = groups.filter(|group| group.origin == origin);
        groups.map(|group| group.members).max().unwrap_or(0)
    })
}

fn group_by() -> Result<Outcome, Failure> {
    for (by, origin) in [("mm", "memory"), ("tgid", "process"), ("cgroup", "cgroup")] {
        let _scheduler = Scheduler::start(&["--group-by", by, "--place", "cpu"])?;
        let mut crew = Crew::default();
        (0..4).for_each(|_| crew.add("hog", hog));
        let cgroup = (by == "cgroup").then(|| Cgroup::enter("/sys/fs/cgroup/warmq-drill"));
        let cgroup = cgroup.transpose()?;
        must!(
            wait_until(SOON, || members(origin) >= 4),
            "--group-by {by}: {:?}",
            figures()?.groups(0)
        );
        if cgroup.is_some() {
            drop(cgroup);
            must!(
                wait_until(SOON, || members(origin) < 4),
                "threads that left their cgroup stay in its group: {:?}",
                figures()?.groups(0)
            );
        }
    }
    Ok(Outcome::Holds("by mm, tgid and cgroup".to_owned()))
}

/// The threads of this process that have a name.
fn threads_called(name: &str) -> Vec<i32> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    let called = threads.filter_map(|thread| {
        let path = thread.ok()?.path();
        let comm = fs::read_to_string(path.join("comm")).ok()?;
        let tid = path.file_name()?.to_str()?.parse().ok()?;
        (comm.trim_end() == name).then_some(tid)
    });
    called.collect()
}

fn task_hint_map() -> Result<Outcome, Failure> {
    const MAP: &str = "/sys/fs/bpf/warmq-drill-hints";
    let _scheduler = Scheduler::start(&["--task-hint-map", MAP, "--place", "cpu"])?;
    let mut crew = Crew::default();
    (0..6).for_each(|_| crew.add("hinted", hog));
    // A thread takes its name when it first runs.
    must!(
        wait_until(SOON, || threads_called("hinted").len() == 6),
        "threads: {:?}",
        threads_called("hinted")
    );
    let hinted = threads_called("hinted");
    let give = |tid: i32, hint: u64| {
        sys::write_task_hint(MAP, tid, hint)
            .map_err(|error| Failure(format!("the hint of thread {tid}: {error}")))
    };
    for (tid, number) in hinted.iter().zip(0..) {
        give(*tid, 1 + number / 3)?;
    }
    let seen = |counts: &[u64]| {
        let mut found: Vec<u64> = figures().map_or_else(
            |_| Vec::new(),
            |seen| {
                let groups = seen.groups(std::process::id()).into_iter();
                let members = groups.map(|group| group.members);
                members.filter(|members| *members > 0).collect()
            },
        );
        found.sort_unstable();
        found == counts
    };
    must!(
        wait_until(SOON, || seen(&[3, 3])),
        "six threads with two hints: {:?}",
        figures()?.groups(0)
    );
    give(hinted[0], 0)?;
    must!(
        wait_until(SOON, || seen(&[2, 3])),
        "a hint that was taken back: {:?}",
        figures()?.groups(0)
    );
    let _ = fs::remove_file(MAP);
    Ok(Outcome::Holds(
        "two groups of three, then two and three".to_owned(),
    ))
}

fn access_group() -> Result<Outcome, Failure> {
    const GROUP: u32 = 4711;
    let pins = "/sys/fs/bpf/scx_warmq";
    let _scheduler = Scheduler::start(&["--access-group", "4711"])?;
    fs::set_permissions("/sys/fs/bpf", Permissions::from_mode(0o701))?;
    for (pin, mode) in [("slots", 0o660), ("state", 0o640), ("labels", 0o600)] {
        let found = fs::metadata(format!("{pins}/{pin}"));
        let found = found.map_err(|error| Failure(format!("{pin}: {error}")))?;
        must!(
            (found.mode() & 0o777, found.gid()) == (mode, GROUP),
            "{pin} has mode {:o} and group {}",
            found.mode() & 0o777,
            found.gid()
        );
    }
    let looks = |group: u32| {
        let mut look = Command::new("scx_warmq");
        look.arg("--stats-json").uid(65_534).gid(group);
        look.output().is_ok_and(|output| output.status.success())
    };
    must!(looks(GROUP), "a member of the group cannot look at it");
    must!(
        !looks(GROUP + 1),
        "somebody of another group can look at it"
    );
    Ok(Outcome::Holds("members only".to_owned()))
}

fn scx_stats() -> Result<Outcome, Failure> {
    const SOCKET: &str = "/var/run/scx/root/stats";
    let _scheduler = Scheduler::start(&[])?;
    let mut crew = Crew::default();
    (0..2).for_each(|_| {
        crew.add("sleeper", |shift| {
            crate::workers::sleeper(shift, Duration::from_micros(100), Duration::from_millis(2))
        });
    });
    let wrong = |error: std::io::Error| Failure(format!("{SOCKET}: {error}"));
    let mut asked = UnixStream::connect(SOCKET).map_err(wrong)?;
    asked.set_read_timeout(Some(SOON)).map_err(wrong)?;
    let mut answers = BufReader::new(asked.try_clone().map_err(wrong)?);
    let mut ask = || -> Result<Value, Failure> {
        let request = "{\"req\":\"stats\",\"args\":{\"target\":\"top\"}}\n";
        asked.write_all(request.as_bytes()).map_err(wrong)?;
        let mut line = String::new();
        answers.read_line(&mut line).map_err(wrong)?;
        let answer: Value = serde_json::from_str(&line)
            .map_err(|error| Failure(format!("{SOCKET} answered {line}: {error}")))?;
        Ok(answer["args"]["resp"].clone())
    };
    ask()?;
    std::thread::sleep(Duration::from_secs(1));
    let answer = ask()?;
    let (seconds, wakeups) = (answer["seconds"].as_f64(), answer["wakeups"].as_u64());
    let in_time = seconds.is_some_and(|seconds| (0.9..3.0).contains(&seconds));
    must!(
        in_time && wakeups.is_some_and(|wakeups| (200..100_000).contains(&wakeups)),
        "two sleepers that wake 400 times a second or more: {answer}"
    );
    Ok(Outcome::Holds(format!("{} wakeups", wakeups.unwrap_or(0))))
}
