//! What can be set on the layer, and what was.

use warmq_affinity::rules::{Balancing, Reference};
use warmq_config::{Chosen, Setting, settings};
use warmq_kernel::Hint;
use warmq_units::Duration;

use super::base::Base;
use super::places::Kind;
use crate::grouping;

const PAPER: &str = "affinity paper";
/// The longest span that can be set.
const LONGEST: Duration = Duration::from_s(100);

/// What can be set: `base`, what can be set on the scheduler under the layer, and the layer's own.
pub(crate) fn settings<B: Base>(base: Vec<Setting>) -> Vec<Setting> {
    let (choices, what): (&[&str], &str) = match B::ARRAYS {
        true => (
            &["equals", "array", "none"],
            "before whom the group of the last task goes on: others of the same priority, all others of \
             the active array, or nobody",
        ),
        false => (
            &["equals", "none"],
            "before whom the group of the last task goes on: others whom fairness lets wait (cfs: by a \
             wakeup granularity; eevdf: for whoever is eligible), or nobody",
        ),
    };
    let own = settings! {
        "place", choice(&["cpu", "llc"]),
            "where the tasks of a fragment run: on one CPU, or under one last-level cache",
            PAPER;
        "new_group", choice(&["runnable", "groups"]),
            "where a new group goes, always for each CPU of a place: where the fewest tasks are runnable, or where the \
             fewest groups are, of several such places to the one with the fewest runnable tasks",
            "affinity paper: the fewest running tasks; ours: the fewest groups";
        "hint_cost", choice(&["system_call", "memory_write"]),
            "how a task names its data: by a system call, or by a write to shared memory, which the \
             scheduler reads when the task is next interrupted by a tick or leaves its CPU",
            "affinity paper: a system call; ours: a memory write";
        "at_change", choice(&["preempt", "wait"]),
            "a task that names data of another place: leaves at once, or when it next leaves its CPU",
            "affinity paper: it is preempted if it must be; ours: to wait";
        "imbalance", count((0, 1_000), 25, "%"),
            "by how much another place must have more tasks for a busy one to take some",
            PAPER;
        "imbalance_of", choice(&["busiest", "own"]),
            "of whose tasks that share is",
            "`busiest`: Linux 2.6.4, find_busiest_queue(); `own`: affinity paper";
        "balance_every", duration((Duration::from_ms(1), LONGEST), Duration::from_ms(200)),
            "how often a busy CPU looks; an idle one looks at each tick, and when it becomes idle",
            "Linux 2.6.4: BUSY_REBALANCE_TICK; IDLE_REBALANCE_TICK is one tick";
        "split_after", duration((Duration::ZERO, LONGEST), Duration::from_ms(800)),
            "how long there must have been an imbalance and nothing that could move until a group is \
             split; 0: never",
            "ours: four looks of a busy CPU; the paper says \"lasts\"";
        "succession", choice(choices),
            what,
            "ours: the paper says that a group runs in succession, and that priorities stay Linux's";
        "succession_time", duration((Duration::ZERO, LONGEST), Duration::from_ms(1_020)),
            "for how long, until whoever would be next has a turn",
            "ours: Linux 2.6.4's STARVATION_LIMIT";
    };
    let settings = grouping::settings().into_iter();
    settings.chain(own).chain(base).collect()
}

/// When a task leaves for another place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtChange {
    Preempt,
    Wait,
}

/// What was set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) place: Kind,
    /// A new group goes where the fewest groups are.
    pub(super) by_groups: bool,
    pub(super) hint: Hint,
    pub(super) at_change: AtChange,
    /// A group may be split after one look that comes this long after the first in a row that found
    /// nothing to move.
    pub(super) split_after: Option<Duration>,
    pub(super) balancing: Balancing,
    pub(super) balance_every: Duration,
    pub(super) succession: bool,
    pub(super) across: bool,
    pub(super) succession_time: Duration,
}

impl Options {
    /// Reads what was chosen among [`settings`].
    pub(super) fn new(chosen: &Chosen) -> Options {
        let is = |name: &str, choice: &str| chosen.choice(name) == choice;
        let split_after = chosen.duration("split_after");
        let splits = split_after > Duration::ZERO;
        Options {
            place: match is("place", "llc") {
                true => Kind::LastLevelCache,
                false => Kind::Cpu,
            },
            by_groups: is("new_group", "groups"),
            hint: match is("hint_cost", "memory_write") {
                true => Hint::MemoryWrite,
                false => Hint::SystemCall,
            },
            at_change: match is("at_change", "wait") {
                true => AtChange::Wait,
                false => AtChange::Preempt,
            },
            split_after: splits.then_some(split_after),
            balancing: Balancing {
                reference: match is("imbalance_of", "own") {
                    true => Reference::Own,
                    false => Reference::Busiest,
                },
                percent: chosen.count("imbalance") as u32,
                split_after: splits.then_some(1),
            },
            balance_every: chosen.duration("balance_every"),
            succession: !is("succession", "none"),
            across: is("succession", "array"),
            succession_time: chosen.duration("succession_time"),
        }
    }
}
