//! Circular doubly linked lists of tasks, as `struct list_head` makes them, with the memory
//! accesses that linking costs.

use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_units::{Address, TaskId};

use super::layout::Layout;

/// Some lists over the same tasks; a task is in at most one of them.
///
/// Invariant: `next` and `prev` are each other's inverse, and a node that is in no list points to
/// itself.
pub(crate) struct Lists {
    heads: Vec<Address>,
    next: Vec<u32>,
    prev: Vec<u32>,
}

/// Which of the lists.
pub(crate) type Head = usize;

impl Lists {
    /// Empty lists with heads at these addresses.
    pub(crate) fn new(heads: Vec<Address>) -> Lists {
        let nodes: Vec<u32> = (0..heads.len() as u32).collect();
        Lists {
            heads,
            next: nodes.clone(),
            prev: nodes,
        }
    }

    /// Makes room for `task`, which is in no list.
    pub(crate) fn admit(&mut self, task: TaskId) {
        while self.next.len() <= self.node(task) {
            self.next.push(self.next.len() as u32);
            self.prev.push(self.prev.len() as u32);
        }
    }

    fn node(&self, task: TaskId) -> usize {
        self.heads.len() + task.index()
    }

    fn task_at(&self, node: u32) -> Option<TaskId> {
        (node as usize)
            .checked_sub(self.heads.len())
            .map(|index| TaskId(index as u32))
    }

    fn forward_link(&self, layout: &Layout, node: u32) -> Address {
        self.task_at(node)
            .map_or_else(|| self.heads[node as usize], |task| layout.hot(task))
    }

    fn backward_link(&self, layout: &Layout, node: u32) -> Address {
        self.task_at(node)
            .map_or_else(|| self.heads[node as usize], |task| layout.prev_link(task))
    }

    /// Puts `task` in front of `head`'s list.
    pub(crate) fn add_first(
        &mut self,
        context: &mut Context<'_>,
        layout: &Layout,
        head: Head,
        task: TaskId,
    ) {
        let (before, after) = (head as u32, self.next[head]);
        self.link(context, layout, task, before, after);
    }

    /// Puts `task` at the end of `head`'s list.
    pub(crate) fn add_last(
        &mut self,
        context: &mut Context<'_>,
        layout: &Layout,
        head: Head,
        task: TaskId,
    ) {
        let (before, after) = (self.prev[head], head as u32);
        self.link(context, layout, task, before, after);
    }

    fn link(
        &mut self,
        context: &mut Context<'_>,
        layout: &Layout,
        task: TaskId,
        before: u32,
        after: u32,
    ) {
        let node = self.node(task);
        assert_eq!(self.next[node], node as u32, "{task} is in a list already");
        context.touch(self.forward_link(layout, before), Access::Write);
        context.touch(self.backward_link(layout, after), Access::Write);
        context.touch(layout.hot(task), Access::Write);
        context.touch(layout.prev_link(task), Access::Write);
        self.next[node] = after;
        self.prev[node] = before;
        self.next[before as usize] = node as u32;
        self.prev[after as usize] = node as u32;
    }

    /// Takes `task` out of its list; nothing when it is in none.
    pub(crate) fn remove(&mut self, context: &mut Context<'_>, layout: &Layout, task: TaskId) {
        let node = self.node(task);
        let (before, after) = (self.prev[node], self.next[node]);
        if after == node as u32 {
            return;
        }
        context.touch(layout.hot(task), Access::Read);
        context.touch(layout.prev_link(task), Access::Read);
        context.touch(self.forward_link(layout, before), Access::Write);
        context.touch(self.backward_link(layout, after), Access::Write);
        self.next[before as usize] = after;
        self.prev[after as usize] = before;
        self.next[node] = node as u32;
        self.prev[node] = node as u32;
    }

    /// True when `task` is in one of the lists.
    pub(crate) fn contains(&self, task: TaskId) -> bool {
        let node = self.node(task);
        self.next.get(node).is_some_and(|next| *next != node as u32)
    }

    /// The first task of `head`'s list.
    #[inline]
    pub(crate) fn first(&self, head: Head) -> Option<TaskId> {
        self.task_at(self.next[head])
    }

    /// The task after `task` in its list.
    #[inline]
    pub(crate) fn after(&self, task: TaskId) -> Option<TaskId> {
        self.task_at(self.next[self.node(task)])
    }

    /// The address of a list's head.
    pub(crate) fn head(&self, head: Head) -> Address {
        self.heads[head]
    }
}
