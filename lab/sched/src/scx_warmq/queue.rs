//! A queue by deadline, like a dispatch queue of sched_ext: a tree whose nodes lie in the tasks.

use warmq_decide::before;
use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_units::{Address, TaskId};

/// A task that waits, and its deadline in its entity's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) deadline: u64,
    pub(super) task: TaskId,
}

/// Tasks that wait, in the order of their deadlines; equals in the order in which they were queued.
///
/// Each operation touches the lines that a balanced tree would: its head, the nodes on the way
/// down, and those that change.
pub(super) struct Queue {
    head: Address,
    waiting: Vec<Waiting>,
}

impl Queue {
    pub(super) fn new(head: Address) -> Queue {
        Queue {
            head,
            waiting: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = Waiting> + '_ {
        self.waiting.iter().copied()
    }

    /// Inserts `new` by its deadline. `nodes` says where each task's node lies.
    pub(super) fn insert(
        &mut self,
        context: &mut Context<'_>,
        nodes: impl Fn(TaskId) -> Address,
        new: Waiting,
    ) {
        context.touch(self.head, Access::Write);
        let (mut low, mut high) = (0, self.waiting.len());
        let mut parent = None;
        while low < high {
            let middle = low.midpoint(high);
            let there = self.waiting[middle];
            context.touch(nodes(there.task), Access::Read);
            parent = Some(there.task);
            if before(new.deadline, there.deadline) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        if let Some(parent) = parent {
            context.touch(nodes(parent), Access::Write);
        }
        context.touch(nodes(new.task), Access::Write);
        self.waiting.insert(low, new);
    }

    /// Takes `task` out. True when it was there.
    pub(super) fn remove(
        &mut self,
        context: &mut Context<'_>,
        nodes: impl Fn(TaskId) -> Address,
        task: TaskId,
    ) -> bool {
        let Some(at) = self.waiting.iter().position(|waiting| waiting.task == task) else {
            return false;
        };
        context.touch(self.head, Access::Write);
        context.touch(nodes(task), Access::Write);
        if let Some(next) = self.waiting.get(at + 1) {
            context.touch(nodes(next.task), Access::Write);
        }
        self.waiting.remove(at);
        true
    }
}
