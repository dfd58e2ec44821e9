//! When to stop: at SIGINT, SIGTERM or SIGHUP, or after a time.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Waits, and knows when it is over.
pub struct Stop {
    signals: Receiver<()>,
    deadline: Option<Instant>,
}

impl Stop {
    /// From now on signals do not kill this process. `after`: stop by itself then.
    pub fn at_signals(after: Option<Duration>) -> Result<Stop, ctrlc::Error> {
        let (sender, signals) = channel();
        // Nobody listens any more: it is about to end in any case.
        ctrlc::set_handler(move || sender.send(()).unwrap_or(()))?;
        Ok(Stop {
            signals,
            deadline: after.map(|after| Instant::now() + after),
        })
    }

    /// Waits for so long, or until it is time to stop: true then. Ask again, and it is true no
    /// more.
    pub fn within(&self, time: Duration) -> bool {
        let left = self
            .deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let wait = left.map_or(time, |left| left.min(time));
        self.signals.recv_timeout(wait).is_ok() || left.is_some_and(|left| left <= time)
    }
}
