//! What SIGINT, SIGTERM and SIGHUP do: they end the command, and nothing unfinished stays behind.
//! What is worth having although it is cut short is finished first.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::Exit;

/// Whether something is under way that the first signal is to finish.
static FINISHES: AtomicBool = AtomicBool::new(false);
/// Whether a signal has asked for that.
static ASKED: AtomicBool = AtomicBool::new(false);

/// Lets signals remove what is unfinished before the command ends.
pub fn expect() {
    let handler = || {
        if FINISHES.load(Ordering::Acquire) && !ASKED.swap(true, Ordering::AcqRel) {
            return;
        }
        warmq_output::forget_unfinished();
        std::process::exit(Exit::Interrupted as i32);
    };
    // Where no handler can be set, signals end the command all the same.
    let _ = ctrlc::set_handler(handler);
}

/// While this lives, the first signal does not end the command.
#[derive(Debug)]
pub struct Finishes(());

impl Finishes {
    /// From now on.
    pub fn begin() -> Finishes {
        ASKED.store(false, Ordering::Release);
        FINISHES.store(true, Ordering::Release);
        Finishes(())
    }

    /// Whether a signal has asked for an end.
    pub fn is_asked(&self) -> bool {
        ASKED.load(Ordering::Acquire)
    }
}

impl Drop for Finishes {
    fn drop(&mut self) {
        FINISHES.store(false, Ordering::Release);
    }
}
