//! How fast whole runs go: the engine alone, a large machine, and a run as the experiments have it.
//!
//! `cargo bench --bench engine` prints a table; words after `--` choose scenes by a part of their
//! name. Without `--bench`, as `cargo test --benches` calls it, every scene runs for a moment only.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the clock of the host is what it measures with"
)]

mod compiled;
mod scene;
mod table;

use scene::{Made, SCENES};

/// Each scene runs this often; the table shows the median.
const REPETITIONS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let measured = arguments.iter().any(|argument| argument == "--bench");
    let wanted: Vec<&String> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let chosen = SCENES.iter().filter(|scene| {
        wanted.is_empty() || wanted.iter().any(|word| scene.name.contains(word.as_str()))
    });
    table::print_head();
    for scene in chosen {
        if let Some(object) = scene.missing() {
            println!(
                "{}: left out, scripts/objects.sh makes {object}",
                scene.name
            );
            continue;
        }
        let (time, repetitions) = match measured {
            true => (scene.time, REPETITIONS),
            false => (scene.time / 100, 1),
        };
        let mut made: Vec<Made> = (0..repetitions).map(|_| scene.run(time)).collect();
        assert!(
            made.iter().all(|run| run.digest == made[0].digest),
            "two runs differ"
        );
        made.sort_by_key(|run| run.took);
        table::print_row(scene, time, &made[repetitions / 2]);
    }
    table::print_foot();
}
