//! What others give to the scheduler and ask it for: hints in a map, the tools of scx.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::Value;

use crate::must;
use crate::report::{Drill, Failure, Outcome};
use crate::scheduler::{Scheduler, figures};
use crate::sys;
use crate::workers::{Crew, hog, wait_until};

pub const DRILLS: &[Drill] = &[
    Drill {
        name: "others/task-hint-map",
        law: "threads follow hints that are written for them into a map of task storage",
        run: task_hint_map,
    },
    Drill {
        name: "others/scx-stats",
        law: "the tools of scx get what happened since they asked last",
        run: scx_stats,
    },
];

const SOON: Duration = Duration::from_secs(5);

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

fn task_hint_map() -> Outcome {
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
        let found = figures().map(|seen| seen.groups(std::process::id()));
        let mut found = found.unwrap_or_default();
        found.retain(|members| *members > 0);
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
    Ok("two groups of three, then two and three".to_owned())
}

fn scx_stats() -> Outcome {
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
    Ok(format!("{} wakeups", wakeups.unwrap_or(0)))
}
