//! Dispatch queues.

use std::collections::BTreeMap;

use warmq_units::{CpuId, TaskId};

/// The place of a task in its queue: the order of a queue by vtime, and of arrival among equals. In
/// a first-in, first-out queue all have vtime 0, and those at the head arrived before all others.
pub(crate) type Place = (i64, i64);

/// A dispatch queue's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dsq {
    /// That of a CPU, from which alone it runs tasks.
    Local(CpuId),
    /// The built-in one of a memory node, from which CPUs there take before they ask the program.
    Global(u16),
    /// One that the program made.
    User(u64),
}

/// A dispatch queue. `struct scx_dispatch_q` in guest memory has its lines.
///
/// Invariant: all tasks of it were inserted by vtime, or none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    /// Its `struct scx_dispatch_q`.
    pub(crate) address: u64,
    pub(crate) tasks: BTreeMap<Place, TaskId>,
    pub(crate) by_vtime: bool,
    arrivals: i64,
    heads: i64,
}

impl Queue {
    pub(crate) fn new(address: u64) -> Queue {
        Queue {
            address,
            ..Queue::default()
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.tasks.len() as u64
    }

    pub(crate) fn first(&self) -> Option<TaskId> {
        self.tasks.values().next().copied()
    }

    /// Where a task goes that is inserted by `vtime`, or else at the head or the tail. Vtimes are
    /// compared as `time_before64()` does, which is by their difference.
    pub(crate) fn place(&mut self, vtime: Option<u64>, head: bool) -> Place {
        if head && vtime.is_none() {
            self.heads -= 1;
            return (0, self.heads);
        }
        self.arrivals += 1;
        (vtime.unwrap_or(0) as i64, self.arrivals)
    }

    /// Tasks in order, or the other way round.
    pub(crate) fn in_order(&self, reverse: bool) -> Vec<TaskId> {
        match reverse {
            true => self.tasks.values().rev().copied().collect(),
            false => self.tasks.values().copied().collect(),
        }
    }
}
