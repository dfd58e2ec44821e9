//! What a run counts that no record holds.

use warmq_units::Instant;

use crate::core::statistic::Statistics;
use crate::words::Walks;

/// Figures from `since` on.
#[derive(Default)]
pub(crate) struct Figures {
    since: Instant,
    walks: Walks,
    pub(crate) statistics: Statistics,
}

impl Figures {
    /// Discards all counts and starts counting anew.
    pub(crate) fn restart(&mut self, at: Instant) {
        self.since = at;
        self.walks = Walks::default();
        self.statistics.restart(at);
    }

    /// Since when figures are counted.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// Counts one walk over `visits` entries of a run queue.
    pub(crate) fn walked(&mut self, visits: u64) {
        self.walks.walks += 1;
        self.walks.visits += visits;
        self.walks.longest = self.walks.longest.max(visits);
    }

    pub(crate) fn walks(&self) -> Walks {
        self.walks
    }
}
