//! What is printed.

use std::fs;

use warmq_units::Duration;

use crate::scene::{Made, SCENES, Scene};

pub(crate) fn print_head() {
    println!(
        "{:<27} {:>11} {:>9} {:>12} {:>12} {:>11} {:>9}  digest",
        "scene", "simulated", "took", "events/s", "records/s", "sim s/s", "peak"
    );
}

pub(crate) fn print_row(scene: &Scene, time: Duration, made: &Made) {
    let seconds = made.took.as_secs_f64();
    println!(
        "{:<27} {:>9.2} s {:>7.3} s {:>10.2} M {:>10.2} M {:>11.2} {:>6} MB  {:016x}",
        scene.name,
        time.as_s_f64(),
        seconds,
        made.events as f64 / seconds / 1e6,
        made.records as f64 / seconds / 1e6,
        time.as_s_f64() / seconds,
        peak_kb().map_or_else(|| "?".to_owned(), |kb| kb.div_ceil(1024).to_string()),
        made.digest,
    );
}

pub(crate) fn print_foot() {
    println!();
    for scene in SCENES {
        println!("{:<27} {}", scene.name, scene.what);
    }
    println!(
        "peak: the largest resident set of this process so far; digest: of a tenth of the run"
    );
}

/// The largest resident set that this process ever had, in KB; nothing where /proc does not say.
fn peak_kb() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
