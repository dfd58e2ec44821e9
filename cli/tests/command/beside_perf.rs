//! What perf and trace-cmd record while `warmq watch` records the same: the same switches, shares
//! and verdicts. Skipped where this machine cannot be recorded, or has no such tool.

use std::collections::BTreeMap;
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

/// The switches of a recording: when, where, and to whom.
fn switches(folder: &Folder, file: &str) -> Vec<(f64, Runs)> {
    folder.run(&format!("convert {file} {file}.ndjson")).fine();
    let rows = folder.text(&format!("{file}.ndjson"));
    let rows = rows
        .lines()
        .map(|row| serde_json::from_str::<Value>(row).expect("it is JSON"));
    let mut switches = Vec::new();
    // In some virtual machines the kernel hides events. What must have happened follows from those
    // that it shows, and not all recorders have the same.
    let mut inferred = None;
    for row in rows {
        let (at, cpu) = (row["ts"].as_f64(), row["cpu"].as_u64());
        match row["t"].as_str() {
            Some("lost") => inferred = Some((at, cpu)),
            Some("switch") if inferred != Some((at, cpu)) => {
                let next = row["next"]["tid"].as_u64().unwrap_or(0);
                let (at, cpu) = (at.expect("it has a time"), cpu.expect("it has a CPU"));
                switches.push((at, (cpu, next)));
            }
            _ => {}
        }
    }
    switches
}

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
    sleep(Duration::from_millis(1_200));
    let watched = folder.run("watch --for 500ms --only-record --buffer 8192 --out own.warmq");
    let ended = tool.wait().expect("it ends");
    drop(load);
    watched.code == 0 && ended.success() && folder.0.join(other).exists()
}

/// In percent: so many switches of one are in the other one. Some virtual machines hide events from
/// one recorder and show them to another.
const LEAST: usize = 98;
/// Both read the clock for the same switch, one after the other: in seconds.
const APART: f64 = 50e-6;

/// How much later the other recording has what this one has: by threads that came once, the median.
fn later(own: &[(f64, Runs)], theirs: &[(f64, Runs)]) -> f64 {
    let once = |all: &[(f64, Runs)]| {
        let mut times: BTreeMap<Runs, Vec<f64>> = BTreeMap::new();
        all.iter()
            .for_each(|(at, runs)| times.entry(*runs).or_default().push(*at));
        times.retain(|_, times| times.len() == 1);
        times
    };
    let (own, theirs) = (once(own), once(theirs));
    let later = own
        .iter()
        .filter_map(|(runs, at)| Some(theirs.get(runs)?[0] - at[0]));
    let mut later: Vec<f64> = later.collect();
    assert!(later.len() > 10, "{} threads are in both", later.len());
    later.sort_by(f64::total_cmp);
    later[later.len() / 2]
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
    let (own, theirs) = (switches(folder, "own.warmq"), switches(folder, other));
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
    // Nobody knows how long those ran whose switches were hidden.
    let most = if found == all { 0.1 } else { 1.0 };
    let same = shares(&theirs, span);
    for (runs, share) in shares(&own, span) {
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
    command.args(["-o", "perf.data", "--", "sleep", "2.5"]);
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
    command.args(["-o", "trace.dat", "sleep", "2.5"]);
    if is_recorded(&folder, command, "trace.dat") {
        are_the_same(&folder, "trace.dat");
    }
}
