//! What the layer says of tasks.

use warmq_kernel::Statistic;

use super::Base;
use crate::{Said, o1};

/// The number of one of these, before those of the base.
#[derive(Clone, Copy)]
pub(super) struct Number(u8);

statistics! { Number:
    GROUPS "groups" in "" "groups on the machine after each change of data";
    HINTS "hints" "hints that named other data than before";
    GROUP_MIGRATIONS "group_migrations" "moves of a whole group, said of one task";
    TASK_MIGRATIONS "task_migrations" "moves to another place, alone or with the group,";
    SPLITS "splits" "splits of a group, said of one task";
    CHANGE_PREEMPTIONS "change_preemptions" "preemptions at a change of data";
}

impl Number {
    /// The statistic on top of the base `B`, whose own come first.
    pub(super) fn of<B: Base>(self) -> Statistic {
        Statistic(B::STATISTICS + self.0)
    }
}

const OF_O1: usize = o1::STATISTICS.len();
const WITH_O1: [Said; OF_O1 + STATISTICS.len()] = {
    let mut all = [o1::STATISTICS[0]; OF_O1 + STATISTICS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < OF_O1 {
            o1::STATISTICS[at]
        } else {
            STATISTICS[at - OF_O1]
        };
        at += 1;
    }
    all
};

/// Those of o1, and then the layer's.
pub(crate) const fn with_those_of_o1() -> &'static [Said] {
    &WITH_O1
}
