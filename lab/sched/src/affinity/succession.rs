//! Succession: the tasks of a group run one after another.

use warmq_kernel::{Fragment, Pick};
use warmq_units::{CpuId, Instant};

use super::{Affinity, Base};

/// Whose turn it is on a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    /// The fragment of the managed task that ran last.
    last: Option<Fragment>,
    /// Since when tasks of that group run in succession.
    since: Instant,
    /// The last pick was the base's alone, as the turn was over.
    is_over: bool,
}

impl<B: Base> Affinity<B> {
    /// Names to the base the group that is to go on, unless its turn is over.
    pub(super) fn favour(&mut self, now: Instant, here: CpuId) {
        let turn = &mut self.turns[here.index()];
        turn.is_over = now.since(turn.since) >= self.options.succession_time;
        let goes_on = self.options.succession && !turn.is_over;
        let favoured = turn.last.filter(|_| goes_on);
        self.base.steering().favour(here, favoured);
    }

    /// The base has picked: perhaps a turn begins. Unmanaged tasks do not end one.
    pub(super) fn picked(&mut self, now: Instant, here: CpuId, pick: Pick) {
        let Pick::Task(next) = pick else { return };
        let Some(fragment) = self.groups.fragment_of(next) else {
            return;
        };
        let turn = &mut self.turns[here.index()];
        if turn.is_over || turn.last != Some(fragment) {
            turn.last = Some(fragment);
            turn.since = now;
        }
    }
}
