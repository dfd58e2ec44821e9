//! What perf and trace-cmd record while `warmq watch` records the same: the same switches, shares
//! and verdicts. Skipped where this machine cannot be recorded, or has no such tool.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::support::Folder;

const EVENTS: [&str; 7] = [
    "sched:sched_switch",
    "sched:sched_waking",
    "sched:sched_wakeup",
    "sched:sched_wakeup_new",
    "sched:sched_migrate_task",
    "sched:sched_process_fork",
    "sched:sched_process_exec",
];

/// Programs that compute and sleep, until dropped.
struct Load(Vec<Child>);

impl Load {
    fn begin() -> Load {
        let scripts = ["while :; do :; done", "while :; do sleep 0.003; done"];
        let spawn = |script: &&str| {
            let child = Command::new("sh").args(["-c", script]).spawn();
            child.expect("there is a shell")
        };
        Load(scripts.iter().chain(&scripts).map(spawn).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Somebody who runs on a CPU: by the id that the kernel gave it, 0 for the idle task.
type Runs = (u64, u64);

/// The switches of a recording: when, where, and to whom; and whose switches were hidden.
fn switches(folder: &Folder, file: &str) -> (Vec<(f64, Runs)>, BTreeSet<u64>) {
    folder.run(&format!("convert {file} {file}.ndjson")).fine();
    let rows = folder.text(&format!("{file}.ndjson"));
    let rows = rows
        .lines()
        .map(|row| serde_json::from_str::<Value>(row).expect("it is JSON"));
    let (mut switches, mut hidden) = (Vec::new(), BTreeSet::new());
    let of = |thread: &Value| thread["tid"].as_u64().unwrap_or(0);
    // In some virtual machines the kernel hides events. What must have happened follows from those
    // that it shows, and not all recorders have the same.
    let mut inferred = None;
    for row in rows {
        let (at, cpu) = (row["ts"].as_f64(), row["cpu"].as_u64());
        match row["t"].as_str() {
            Some("lost") => inferred = Some((at, cpu)),
            Some("switch") if inferred != Some((at, cpu)) => {
                let (at, cpu) = (at.expect("it has a time"), cpu.expect("it has a CPU"));
                switches.push((at, (cpu, of(&row["next"]))));
            }
            Some("switch") => hidden.extend([of(&row["prev"]), of(&row["next"])]),
            _ => {}
        }
    }
    (switches, hidden)
}

/// The program that both tools record with: it runs until the other recording is done, or for a
/// minute.
const UNTIL_DONE: &str =
    "touch begun; for i in $(seq 600); do [ -e done ] && exit; sleep 0.1; done";

/// Records by this command while `warmq watch` records; false if it cannot.
fn is_recorded(folder: &Folder, mut command: Command, other: &str) -> bool {
    let load = Load::begin();
    let command = command
        .current_dir(&folder.0)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(mut tool) = command.spawn() else {
        return false;
    };
    // It has begun once its program runs, or never will.
    while !folder.0.join("begun").exists() {
        if tool.try_wait().expect("it is a child").is_some() {
            return false;
        }
        sleep(Duration::from_millis(20));
    }
    let watched = folder.run("watch --for 500ms --only-record --buffer 8192 --out own.warmq");
    std::fs::write(folder.0.join("done"), "").expect("it is written");
    let ended = tool.wait().expect("it ends");
    drop(load);
    watched.code == 0 && ended.success() && folder.0.join(other).exists()
}

/// In percent: so many switches of one are in the other one. Some virtual machines hide events from
/// one recorder and show them to another.
const LEAST: usize = 98;
/// Both read the clock for the same switch, one after the other: in seconds.
const APART: f64 = 50e-6;

/// How much later the other recording has what this one has. Programs that began meanwhile were
/// first seen by both at the same switch: so many of them agree as of no others.
fn later(own: &[(f64, Runs)], theirs: &[(f64, Runs)]) -> f64 {
    let first = |all: &[(f64, Runs)]| {
        let mut times: BTreeMap<Runs, f64> = BTreeMap::new();
        for (at, runs) in all {
            times.entry(*runs).or_insert(*at);
        }
        times
    };
    let (own, theirs) = (first(own), first(theirs));
    let later = own
        .iter()
        .filter_map(|(runs, at)| Some(theirs.get(runs)? - at));
    let mut later: Vec<f64> = later.collect();
    later.sort_by(f64::total_cmp);
    let agree = |from: usize| {
        let to = later[from] + APART;
        later[from..].iter().take_while(|at| **at <= to).count()
    };
    let best = (0..later.len()).max_by_key(|from| agree(*from));
    let best = best.expect("threads are in both");
    assert!(agree(best) > 5, "{} threads agree", agree(best));
    later[best + agree(best) / 2]
}

/// In percent of the time between `from` and `to`: how long each ran, and on which CPU.
fn shares(switches: &[(f64, Runs)], (from, to): (f64, f64)) -> BTreeMap<Runs, f64> {
    let mut running: BTreeMap<u64, (f64, u64)> = BTreeMap::new();
    let mut shares = BTreeMap::new();
    let ends = switches.iter().map(|(_, (cpu, _))| (to, (*cpu, 0)));
    for (at, (cpu, next)) in switches.iter().copied().chain(ends) {
        let at = at.clamp(from, to);
        if let Some((since, task)) = running.insert(cpu, (at, next)) {
            *shares.entry((cpu, task)).or_insert(0.0) += (at - since) * 100.0 / (to - from);
        }
    }
    shares
}

/// What `warmq watch` saw, the other one saw, too: shares within 0.1 point.
fn are_the_same(folder: &Folder, other: &str) {
    let (own, mut hidden) = switches(folder, "own.warmq");
    let (theirs, more) = switches(folder, other);
    hidden.extend(more);
    let later = later(&own, &theirs);
    let own: Vec<(f64, Runs)> = own.iter().map(|(at, runs)| (at + later, *runs)).collect();
    // What a recorder does when it begins and ends is its own.
    let span = (own[0].0 + 0.05, own[own.len() - 1].0 - 0.05);
    let inside = own.iter().filter(|(at, _)| (span.0..span.1).contains(at));
    let is_there = |(at, runs): &&(f64, Runs)| {
        let from = theirs.partition_point(|(then, _)| *then < at - APART);
        let near = theirs[from..]
            .iter()
            .take_while(|(then, _)| *then <= at + APART);
        near.clone().any(|(_, then)| then == runs)
    };
    let (all, found) = (inside.clone().count(), inside.filter(is_there).count());
    assert!(all > 100, "{all} switches");
    assert!(found * 100 >= all * LEAST, "{found} of {all}");
    let most = if found == all { 0.1 } else { 1.0 };
    let same = shares(&theirs, span);
    // Nobody knows how long those ran whose switches were hidden.
    let known = shares(&own, span).into_iter();
    for (runs, share) in known.filter(|((_, task), _)| !hidden.contains(task)) {
        let found = same.get(&runs).copied().unwrap_or(0.0);
        assert!(
            (share - found).abs() <= most,
            "{runs:?}: {share} and {found} %"
        );
    }
}

#[test]
fn perf_records_the_same() {
    let folder = Folder::new("beside-perf");
    let mut command = Command::new("perf");
    command.args(["record", "-q", "-a", "-m", "2048", "-e", &EVENTS.join(",")]);
    command.args(["-o", "perf.data", "--", "sh", "-c", UNTIL_DONE]);
    if is_recorded(&folder, command, "perf.data") {
        are_the_same(&folder, "perf.data");
    }
}

#[test]
fn trace_cmd_records_the_same() {
    let folder = Folder::new("beside-trace-cmd");
    let mut command = Command::new("trace-cmd");
    command.args(["record", "-q", "-B", "warmq-test", "-b", "16384"]);
    EVENTS.iter().for_each(|event| {
        command.args(["-e", event]);
    });
    command.args(["-o", "trace.dat", "sh", "-c", UNTIL_DONE]);
    if is_recorded(&folder, command, "trace.dat") {
        are_the_same(&folder, "trace.dat");
    }
}
