//! Runs drills and reports their outcomes in the format of the other tests.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::scheduler;

/// How long a drill that may last as long as one likes does so, in seconds.
pub static LASTS: AtomicU64 = AtomicU64::new(8);

/// The same as a time.
pub fn lasts() -> Duration {
    Duration::from_secs(LASTS.load(Ordering::Relaxed))
}

/// Why a drill failed: what was seen, and what was expected.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Failure(pub String);

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure(error.to_string())
    }
}

/// What was seen of a law that holds, or why it does not.
pub type Outcome = Result<String, Failure>;

/// A law, and how it is tested.
pub struct Drill {
    /// A short name.
    pub name: &'static str,
    /// What must hold.
    pub law: &'static str,
    /// Tests it.
    pub run: fn() -> Outcome,
}

/// Fails with the text unless the condition holds.
#[macro_export]
macro_rules! must {
    ($condition:expr, $($text:tt)*) => {
        let holds: bool = $condition;
        if !holds {
            return Err($crate::report::Failure(format!($($text)*)));
        }
    };
}

/// Runs `drills` one after another.
pub fn run(drills: &[&Drill]) -> ExitCode {
    let (mut passed, mut failed) = (0, 0);
    let begin = Instant::now();
    for drill in drills {
        let started = Instant::now();
        let outcome = (drill.run)();
        let took = started.elapsed().as_secs_f32();
        match outcome {
            Ok(figures) => {
                passed += 1;
                println!("drill {} ... ok ({figures}; {took:.0} s)", drill.name);
            }
            Err(Failure(why)) => {
                failed += 1;
                println!(
                    "drill {} ... FAILED ({took:.0} s)\n    law: {}\n    seen: {why}",
                    drill.name, drill.law
                );
                println!("    sched_ext: {}", scheduler::state());
            }
        }
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    let took = begin.elapsed().as_secs_f32();
    println!(
        "test result: {verdict}. {passed} passed; {failed} failed; 0 ignored; finished in {took:.0}s"
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
