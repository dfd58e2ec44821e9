//! The run queue of a CPU (`struct runqueue`).

use warmq_kernel::Attach;
use warmq_units::{Address, Bytes, CpuId, LockId, TaskId};

use crate::fair::domains::Domain;

use super::arrays::PrioArray;
use super::rules::PRIORITIES;

/// What a runnable task weighs in a CPU's load (`SCHED_LOAD_SCALE`).
pub(super) const LOAD_SCALE: u64 = 128;
/// How many averages of its load a CPU keeps (`cpu_load`).
const LOADS: usize = 3;

/// A run queue.
#[derive(Default)]
pub(super) struct RunQueue {
    // Set when the scheduler is attached, and never after.
    pub(super) lock: LockId,
    /// Where 2.6.16 balances, the smallest domain first.
    pub(super) domains: Vec<Domain>,
    /// The line of the lock, `nr_running` and `cpu_load`, which balancing CPUs read.
    pub(super) line: Address,

    // Changed under the lock.
    pub(super) arrays: [PrioArray; 2],
    /// Which of `arrays` is the active one.
    pub(super) active: usize,
    /// The starvation clock: the jiffy in which it was started, if it runs (`expired_timestamp`).
    pub(super) expired_since: Option<u64>,
    /// The best static priority in the expired array since the last swap (`best_expired_prio`).
    pub(super) best_expired: usize,
    /// What the clock read at the last tick, in ns (`timestamp_last_tick`).
    pub(super) ticked_at: u64,
    loads: [u64; LOADS],
    pub(super) pull: Pull,
    /// How many tasks each CPU had when this one looked last (`prev_cpu_load` of 2.6.4).
    pub(super) lengths_seen: Vec<usize>,
    /// The CPU to which the running task is to be pushed (`active_balance`, `push_cpu`).
    pub(super) push_to: Option<CpuId>,
    /// The running task that is to leave for the queue of another CPU, by the layer of affinity.
    pub(super) leaving: Option<(TaskId, CpuId)>,
}

/// What the pull that comes next is to do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pull {
    /// In which of the CPU's domains it was found.
    pub(super) domain: usize,
    /// How many tasks it should move.
    pub(super) tasks: usize,
}

impl RunQueue {
    /// An empty queue whose CPU balances in `domains`.
    pub(super) fn new(attach: &mut Attach<'_>, domains: Vec<Domain>) -> RunQueue {
        let line = attach.data(Bytes(attach.line()));
        let lock = attach.lock_at("runqueue", line);
        let mut array = || PrioArray::new(attach.data(Bytes(PrioArray::SIZE)));
        RunQueue {
            lock,
            domains,
            line,
            arrays: [array(), array()],
            best_expired: PRIORITIES,
            lengths_seen: vec![0; usize::from(attach.cpus())],
            ..RunQueue::default()
        }
    }

    /// Which of `arrays` is the expired one.
    pub(super) fn expired(&self) -> usize {
        1 - self.active
    }

    /// The CPU whose queue gets a task from here after the next switch, if any.
    pub(super) fn gives_to(&self) -> Option<CpuId> {
        self.leaving.map(|(_, to)| to).or(self.push_to)
    }

    /// Runnable tasks, the running one among them (`nr_running`).
    pub(super) fn running(&self) -> usize {
        self.arrays.iter().map(PrioArray::len).sum()
    }

    /// Makes the expired array the active one.
    pub(super) fn swap(&mut self) {
        self.active = self.expired();
        self.expired_since = None;
        self.best_expired = PRIORITIES;
    }

    /// All tasks, those of the active array first.
    pub(super) fn iter(&self) -> impl Iterator<Item = TaskId> + '_ {
        let arrays = [self.active, self.expired()];
        arrays
            .into_iter()
            .flat_map(|array| self.arrays[array].iter())
    }

    /// The load now.
    fn load(&self) -> u64 {
        self.running() as u64 * LOAD_SCALE
    }

    /// Averages the load into `cpu_load`: number i forgets by 1 / 2^i at each tick, rounding up
    /// while the load grows (`rebalance_tick()`).
    pub(super) fn average_load(&mut self) {
        let now = self.load();
        for (index, load) in (0..).zip(&mut self.loads) {
            let scale: u64 = 1 << index;
            let rounded = if now > *load { now + scale - 1 } else { now };
            *load = (*load * (scale - 1) + rounded) / scale;
        }
    }

    /// The load as that of a CPU from which tasks could come: the lower of now and the average
    /// before number `index`; 0 is now (`source_load()`).
    pub(super) fn source_load(&self, index: usize) -> u64 {
        let average = index.checked_sub(1).map(|average| self.loads[average]);
        self.load().min(average.unwrap_or(u64::MAX))
    }

    /// The load as that of a CPU to which tasks could go: the higher of the two (`target_load()`).
    pub(super) fn target_load(&self, index: usize) -> u64 {
        let average = index.checked_sub(1).map(|average| self.loads[average]);
        self.load().max(average.unwrap_or(0))
    }
}
