//! The outcome of a guest, for people and for scripts.

use std::time::Duration;

use warmq_units::JSON_SCHEMA;
use warmq_vm::{Ending, Kernel, Outcome};

/// The outcome as one line of JSON.
pub fn json(kernel: &Kernel, outcome: &Outcome) -> String {
    let seconds = |time: Duration| (time.as_secs_f64() * 1e3).round() / 1e3;
    let object = serde_json::json!({
        "schema": JSON_SCHEMA,
        "kernel": kernel.image.to_string_lossy(),
        "release": kernel.release,
        "seconds_to_boot": outcome.boot.map(seconds),
        "seconds": seconds(outcome.total),
        "ending": ending(outcome.ending),
        "status": outcome.status(),
    });
    format!("{object}\n")
}

fn ending(ending: Ending) -> &'static str {
    match ending {
        Ending::Exited(_) => "exited",
        Ending::TimeUp => "time_up",
        Ending::Panicked => "panicked",
        Ending::SwitchedOff => "switched_off",
    }
}

/// A message about a guest that ended before its command.
pub fn word(outcome: &Outcome, timeout: Duration) -> String {
    match outcome.ending {
        Ending::Exited(_) => String::new(),
        Ending::TimeUp => {
            let killed = format!("the guest was killed after {} s", timeout.as_secs_f64());
            if outcome.boot.is_some() {
                return format!("{killed}; raise --timeout to give it longer");
            }
            let said = last(outcome);
            format!("{killed} while it booted; raise --timeout; its last messages:\n{said}")
        }
        Ending::Panicked => format!(
            "the guest's kernel panicked; its last messages:\n{}",
            last(outcome)
        ),
        Ending::SwitchedOff => {
            format!(
                "the guest was switched off before the command ended; its last messages:\n{}",
                last(outcome)
            )
        }
    }
}

/// Lines of the kernel's that are shown: a panic with one backtrace.
const LINES_SHOWN: usize = 60;

fn last(outcome: &Outcome) -> String {
    let lines: Vec<&str> = outcome.console.lines().collect();
    let from = lines.len().saturating_sub(LINES_SHOWN);
    lines[from..].join("\n")
}
