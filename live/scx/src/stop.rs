//! When to stop: at SIGINT, SIGTERM or SIGHUP, or after a time.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Waits for the time to stop.
pub struct Stop {
    signals: Receiver<()>,
    deadline: Option<Instant>,
}

impl Stop {
    /// From now on these signals do not kill the process. `after`: also stop after this time.
    pub fn at_signals(after: Option<Duration>) -> Result<Stop, ctrlc::Error> {
        let (sender, signals) = channel();
        // The receiver is gone only if the process is about to end.
        ctrlc::set_handler(move || sender.send(()).unwrap_or(()))?;
        Ok(Stop {
            signals,
            deadline: after.map(|after| Instant::now() + after),
        })
    }

    /// Waits for so long, or until it is time to stop; true in the latter case. A signal is
    /// reported only once.
    pub fn within(&self, time: Duration) -> bool {
        let left = self
            .deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let wait = left.map_or(time, |left| left.min(time));
        self.signals.recv_timeout(wait).is_ok() || left.is_some_and(|left| left <= time)
    }
}
