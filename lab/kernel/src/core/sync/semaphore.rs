//! SysV semaphores in sets, and who sleeps on them.

use std::collections::VecDeque;

use warmq_units::{Address, LockId, TaskId};

use crate::words::{Semaphore, Table};

/// Bytes of `struct sem`: its value, and the pid of the last operation.
pub(crate) const SEM: u64 = 8;

/// All semaphores of the system.
#[derive(Default)]
pub(crate) struct Semaphores {
    sets: Vec<Set>,
    semaphores: Table<Semaphore, State>,
}

/// A set: semaphores that were created together.
struct Set {
    /// Guards it, and with one lock for all sets the others.
    lock: LockId,
    /// The address of the header; the values follow it.
    address: Address,
    /// The tasks that sleep on one of them, in the order of arrival.
    sleepers: VecDeque<(TaskId, Semaphore)>,
}

struct State {
    set: usize,
    number: u64,
    value: u64,
}

/// What raising a semaphore found among the sleepers of its set.
pub(crate) struct Raised {
    /// Those that were looked at, in their order.
    pub(crate) looked_at: Vec<TaskId>,
    /// The first that waits for the semaphore, which sleeps there no more.
    pub(crate) woken: Option<TaskId>,
}

impl Semaphores {
    /// Creates a set of `count` semaphores of value `initial`, with its header at `address`.
    pub(crate) fn create(
        &mut self,
        (lock, address): (LockId, Address),
        count: u32,
        initial: u64,
    ) -> Vec<Semaphore> {
        self.sets.push(Set {
            lock,
            address,
            sleepers: VecDeque::new(),
        });
        let set = self.sets.len() - 1;
        let state = |number: u32| State {
            set,
            number: number.into(),
            value: initial,
        };
        (0..count)
            .map(|number| self.semaphores.add(state(number)))
            .collect()
    }

    /// The lock of the set that was created last.
    pub(crate) fn last_lock(&self) -> Option<LockId> {
        self.sets.last().map(|set| set.lock)
    }

    pub(crate) fn lock_of(&self, semaphore: Semaphore) -> LockId {
        self.set_of(semaphore).lock
    }

    /// The addresses of the header of `semaphore`'s set, and of its own value, where lines have
    /// `line` bytes.
    pub(crate) fn addresses(&self, semaphore: Semaphore, line: u64) -> [Address; 2] {
        let header = self.set_of(semaphore).address;
        let number = self.semaphores[semaphore].number;
        [header, header + line + number * SEM]
    }

    fn set_of(&self, semaphore: Semaphore) -> &Set {
        &self.sets[self.semaphores[semaphore].set]
    }

    /// Adds one to `semaphore`; if it `hands_over`, the first that waits for it has lowered it.
    pub(crate) fn raise(&mut self, semaphore: Semaphore, hands_over: bool) -> Raised {
        let state = &mut self.semaphores[semaphore];
        let sleepers = &mut self.sets[state.set].sleepers;
        let first = sleepers.iter().position(|(_, wants)| *wants == semaphore);
        state.value += u64::from(first.is_none() || !hands_over);
        let looked_at = first.map_or(sleepers.len(), |first| first + 1);
        let looked_at = sleepers.iter().take(looked_at).map(|(task, _)| *task);
        Raised {
            looked_at: looked_at.collect(),
            woken: first
                .and_then(|first| sleepers.remove(first))
                .map(|(task, _)| task),
        }
    }

    /// Subtracts one from `semaphore`; if it is 0, `task` sleeps on it, and the answer is false.
    pub(crate) fn lower(&mut self, semaphore: Semaphore, task: TaskId) -> bool {
        let state = &mut self.semaphores[semaphore];
        if let Some(left) = state.value.checked_sub(1) {
            state.value = left;
            return true;
        }
        self.sets[state.set].sleepers.push_back((task, semaphore));
        false
    }
}
