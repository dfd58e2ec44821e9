//! When changes of a source take place.
//!
//! Their times are known from the beginning, so that the source looks at them by itself: nobody has
//! to wake it.

use warmq_scenario::program::Occurrences;
use warmq_units::Instant;

use super::stage::Stage;

/// The changes of one source that are still to come: their times, and their places among all
/// changes.
pub(super) struct Orders(Vec<(Occurrences, usize)>);

impl Orders {
    /// Those at `places` among all changes.
    pub(super) fn of(stage: &Stage, places: &[usize]) -> Orders {
        let times = |place: &usize| (stage.changes[*place].times, *place);
        Orders(places.iter().map(times).collect())
    }

    /// When the next change takes place.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.iter().filter_map(|(times, _)| times.next).min()
    }

    /// Takes the next change; of those at the same time, the first of the scenario.
    pub(super) fn take(&mut self) -> Option<usize> {
        let to_come = self.0.iter_mut().filter(|(times, _)| times.next.is_some());
        let (times, place) = to_come.min_by_key(|(times, _)| times.next)?;
        times.next();
        Some(*place)
    }
}
