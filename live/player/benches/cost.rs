//! What the player itself adds to steps: `cargo bench -p warmq-player`.
//!
//! A task does a step many times; its CPU time, by its own clock, is divided by the number of
//! steps. The column at the right is that time as a part of a step of 100 us. Steps that are system
//! calls include the call.

use std::process::Command;

use warmq_trace::Record;
use warmq_trace::file::Reader;

/// Steps in a round.
const STEPS: u64 = 200_000;

const CASES: &[(&str, &str, &str)] = &[
    ("an empty round of a loop", "", ""),
    ("count", "", "{ count = \"n\" }"),
    ("count by an index", "", "{ count = \"n\", by = \"i + 1\" }"),
    (
        "run, constant, 0 rounds of the loop",
        "",
        "{ run = \"0ns\" }",
    ),
    ("run, by an index", "", "{ run = \"(i - i) * 1ns\" }"),
    (
        "run, uniform",
        "",
        "{ run = { uniform = [\"0ns\", \"1ps\"] } }",
    ),
    (
        "run, exponential, shared stream",
        "",
        "{ run = { exponential = \"1ps\", stream = \"s\" } }",
    ),
    (
        "begin and end of a span",
        "",
        "{ begin = \"s\" }, { end = \"s\" }",
    ),
    (
        "touch of one line",
        "[region.r]\nbytes = \"4KB\"",
        "{ touch = \"r\", lines = 1 }",
    ),
    (
        "lock and unlock",
        "[mutex.m]",
        "{ lock = \"m\" }, { unlock = \"m\" }",
    ),
    (
        "raise and lower",
        "[semaphore.m]",
        "{ raise = \"m\" }, { lower = \"m\" }",
    ),
    (
        "a byte through a pipe",
        "[pipe.p]",
        "{ send = \"p\", bytes = \"1B\" }, { receive = \"p\", bytes = \"1B\" }",
    ),
    ("yield", "", "{ yield = true }"),
];

fn main() {
    println!("{:36} {:>9} {:>12}", "step", "ns", "of 100 us");
    for (name, objects, step) in CASES {
        // The fastest of several: other programs only slow it down.
        let ns = (0..5)
            .map(|_| ns_of_step(objects, step))
            .fold(f64::INFINITY, f64::min);
        println!("{name:36} {ns:9.1} {:10.3} %", ns / 1_000.0);
    }
}

fn ns_of_step(objects: &str, step: &str) -> f64 {
    let text = format!(
        "{objects}\n[task.one]\ntimes = 1\nbody = [{{ repeat = {STEPS}, as = \"i\", body = [{step}] }}, {{ run = \"1ns\" }}]"
    );
    let file = tempfile::Builder::new()
        .suffix(".toml")
        .tempfile()
        .expect("a file");
    std::fs::write(file.path(), text).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_warmq-player"))
        .arg("--scenario")
        .arg(file.path())
        .args([
            "--no-record",
            "--warmup",
            "0s",
            "--time",
            "20s",
            "--log",
            "32MB",
        ])
        .output()
        .expect("the program");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let reader = Reader::new(&output.stdout[..]).expect("a trace");
    let ran = reader.filter_map(|entry| match entry.expect("a whole trace").1 {
        Record::Ran { total, .. } => Some(total),
        _ => None,
    });
    ran.last().expect("a task that has run").as_ns() as f64 / STEPS as f64
}
