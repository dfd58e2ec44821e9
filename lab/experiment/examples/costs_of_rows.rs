//! The costs of a machine of which there are only rows of experiments/costs, as of measured/host16:
//! plays that were measured before `warmq calibrate` had its own.
//!
//! `cargo run --release -p warmq-experiment --example costs_of_rows MACHINE.toml FOLDER` prints the
//! costs with which the lab has the figures of FOLDER/cost-NAME-unrecorded.jsonl.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use warmq_experiment::RealKernel;
use warmq_experiment::calibrate::{Figure, Scene, Step, Tries, calibrate};
use warmq_machine::read_toml;

use Figure::{Period, Span, TimePer};

macro_rules! scene {
    ($name:literal, $cpus:literal, $ms:literal) => {
        Scene {
            name: concat!($name, ".toml"),
            text: include_str!(concat!("../../../experiments/costs/", $name, ".toml")),
            cpus: $cpus,
            ms: $ms,
            set: &[],
        }
    };
}

const ACCESS: Scene = scene!("access", 1, 300);
const HOST: Scene = scene!("host", 1, 4_000);
const STREAM: Scene = scene!("stream", 1, 500);
const WAKEUPS: Scene = scene!("wakeups", 2, 1_000);
const SLEEPS: Scene = scene!("sleeps", 1, 1_000);
const IDLE: Scene = scene!("idle", 2, 4_000);

/// In this order: the figure of a step has no cost in it that comes later.
const STEPS: [(&str, Scene, Figure); 14] = [
    ("access", ACCESS, TimePer("work_per_second", &["thread"])),
    ("schedule_fixed", HOST, Span("yield")),
    ("socket_send", STREAM, Span("piped")),
    ("socket_receive", STREAM, Span("unpiped")),
    ("network_packet", HOST, Span("send")),
    ("stream_call", STREAM, Span("closed")),
    ("stream_packet", STREAM, Span("open")),
    ("context_switch", HOST, Span("trip")),
    ("fork", HOST, Span("fork")),
    (
        "exit",
        HOST,
        TimePer("fork_spans_per_second", &["parent", "child"]),
    ),
    (
        "reschedule_interrupt",
        WAKEUPS,
        TimePer("raises_per_second", &["raiser"]),
    ),
    (
        "interrupt_return",
        WAKEUPS,
        TimePer("chunks_per_second", &["hog"]),
    ),
    (
        "timer_program",
        SLEEPS,
        TimePer("chunks_per_second", &["hog"]),
    ),
    ("halt_exit", IDLE, Period("rounds_per_second")),
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [machine, folder] = &arguments[..] else {
        return Err("give the machine's file and the folder of its rows".into());
    };
    let mut machine = read_toml(machine, &fs::read_to_string(machine)?)?;
    machine.name = "host".to_owned();
    let steps = STEPS.map(|(cost, scene, figure)| Step {
        cost,
        scene,
        figure,
    });
    let mut measured = Tries::new();
    let nothing = figures(Path::new(folder), HOST.name)?["nothing_p50"];
    for step in &steps {
        let mut figures = figures(Path::new(folder), step.scene.name)?;
        // Some plays had no span of nothing then.
        figures.entry("nothing_p50".to_owned()).or_insert(nothing);
        let figure = step.figure.of(&figures).ok_or(step.scene.name)?;
        measured.insert(step.cost, vec![figure]);
    }
    let kernel = RealKernel {
        release: "6.18.44".to_owned(),
        preemption: "none".to_owned(),
        preemption_from: "measured/host16/README.md",
        ..RealKernel::default()
    };
    let source = |step: &Step| rows(step.scene.name);
    let found = calibrate(
        &mut machine,
        &kernel,
        &steps,
        &measured,
        source,
        |_, _, _| {},
    )?;
    for found in found {
        println!(
            "{} = {} cycles: {:?} of {}, {:.3} us, in the lab {:.3} us",
            found.step.cost,
            found.now.0,
            found.step.figure,
            rows(found.step.scene.name),
            found.measured.0,
            found.lab
        );
    }
    Ok(())
}

/// The file of a scene's rows. While the unrecorded ones of `idle` were measured the clock was 3 %
/// slower, which is half of what is looked for.
fn rows(scene: &str) -> String {
    match scene.trim_end_matches(".toml") {
        "idle" => "cost-idle.jsonl".to_owned(),
        scene => format!("cost-{scene}-unrecorded.jsonl"),
    }
}

fn figures(folder: &Path, scene: &str) -> Result<BTreeMap<String, f64>, Box<dyn Error>> {
    let mut figures = BTreeMap::new();
    for line in fs::read_to_string(folder.join(rows(scene)))?.lines() {
        let row: serde_json::Value = serde_json::from_str(line)?;
        let name = row["metric"].as_str().ok_or("a row without its metric")?;
        figures.insert(name.to_owned(), row["value"].as_f64().ok_or("no value")?);
    }
    Ok(figures)
}
