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
        Load(
            scripts
                .iter()
                .chain(&scripts)
                .map(|script| spawn(&script))
                .collect(),
        )
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

/// Of each CPU, in their order.
fn by_cpu(switches: &[(f64, Runs)]) -> BTreeMap<u64, Vec<(f64, u64)>> {
    let mut all: BTreeMap<u64, Vec<(f64, u64)>> = BTreeMap::new();
    for (at, (cpu, next)) in switches {
        all.entry(*cpu).or_default().push((*at, *next));
    }
    all
}

/// In percent of the time from the first to the last switch: how long each ran.
fn shares(switches: &[(f64, u64)]) -> BTreeMap<u64, f64> {
    let all = switches[switches.len() - 1].0 - switches[0].0;
    let mut shares = BTreeMap::new();
    for pair in switches.windows(2) {
        *shares.entry(pair[0].1).or_insert(0.0) += (pair[1].0 - pair[0].0) * 100.0 / all;
    }
    shares
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

/// All that `warmq watch` saw, the other one saw, too.
fn are_the_same(folder: &Folder, other: &str) {
    let (own, theirs) = (
        by_cpu(&switches(folder, "own.warmq")),
        by_cpu(&switches(folder, other)),
    );
    for (cpu, own) in &own {
        // The first one says who ran when the recording began, and where the last ones are is up to
        // when each recorder ends.
        let own = &own[1..own.len() - 1];
        let theirs = theirs.get(cpu).expect("this CPU was recorded");
        let names = |all: &[(f64, u64)]| all.iter().map(|(_, next)| *next).collect::<Vec<u64>>();
        let wanted = names(own);
        let all = names(theirs);
        let at = all.windows(wanted.len()).position(|some| some == wanted);
        let at = at
            .unwrap_or_else(|| panic!("CPU {cpu}: {} switches are not found again", wanted.len()));
        let same = &theirs[at..at + wanted.len()];
        for (task, share) in shares(own) {
            let found = shares(same).get(&task).copied().unwrap_or(0.0);
            assert!(
                (share - found).abs() <= 0.1,
                "CPU {cpu}, task {task}: {share} and {found} %"
            );
        }
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
    command.args(["record", "-q", "-b", "16384"]);
    EVENTS
        .iter()
        .for_each(|event| drop(command.args(["-e", event])));
    command.args(["-o", "trace.dat", "sleep", "2.5"]);
    if is_recorded(&folder, command, "trace.dat") {
        are_the_same(&folder, "trace.dat");
    }
}
