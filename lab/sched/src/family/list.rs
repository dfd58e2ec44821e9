//! Circular doubly linked lists of tasks, as `struct list_head` makes them, with the memory
//! accesses that linking costs.

use warmq_machine::Access;
use warmq_units::{Address, TaskId};

use super::layout::Layout;
use super::state::Here;

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
            .map_or_else(|| self.heads[node as usize], |task| layout.links(task))
    }

    /// Puts `task` in front of `head`'s list.
    pub(crate) fn add_first(&mut self, here: &mut Here<'_, '_>, head: Head, task: TaskId) {
        let (before, after) = (head as u32, self.next[head]);
        self.link(here, task, before, after);
    }

    /// Puts `task` at the end of `head`'s list.
    pub(crate) fn add_last(&mut self, here: &mut Here<'_, '_>, head: Head, task: TaskId) {
        let (before, after) = (self.prev[head], head as u32);
        self.link(here, task, before, after);
    }

    fn link(&mut self, here: &mut Here<'_, '_>, task: TaskId, before: u32, after: u32) {
        let node = self.node(task);
        assert_eq!(self.next[node], node as u32, "{task} is in a list already");
        self.write(here, task, (before, after));
        self.next[node] = after;
        self.prev[node] = before;
        self.next[before as usize] = node as u32;
        self.prev[after as usize] = node as u32;
    }

    fn write(&self, here: &mut Here<'_, '_>, task: TaskId, neighbours: (u32, u32)) {
        for address in self.written(&here.common.layout, task, neighbours) {
            here.context.touch(address, Access::Write);
        }
    }

    /// What linking or unlinking `task` between two nodes writes: its own links, the forward one of
    /// the node before, the backward one of the node after.
    fn written(&self, layout: &Layout, task: TaskId, (before, after): (u32, u32)) -> [Address; 4] {
        [
            layout.hot(task),
            layout.links(task),
            self.forward_link(layout, before),
            self.backward_link(layout, after),
        ]
    }

    /// Takes `task` out of its list; nothing when it is in none.
    pub(crate) fn remove(&mut self, here: &mut Here<'_, '_>, task: TaskId) {
        let node = self.node(task);
        let (before, after) = (self.prev[node], self.next[node]);
        if after == node as u32 {
            return;
        }
        self.write(here, task, (before, after));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Decision case 14 of the coloring paper's specification.
    #[test]
    fn linking_writes_lines_of_the_neighbours() {
        let head = Address(0x9_0000);
        let layout = Layout::of([0x2000, 0x4000, 0x6000].map(Address).to_vec());
        let [before, task, after] = [0, 1, 2].map(TaskId);
        let mut lists = Lists::new(vec![head]);
        lists.admit(after);
        let node = |task| lists.node(task) as u32;
        let between = lists.written(&layout, task, (node(before), node(after)));
        let lines = [0x4030, 0x4040, 0x2030, 0x6040];
        assert_eq!(between, lines.map(Address), "T 1, T 2, P 1, N 2");
        let in_front = lists.written(&layout, task, (0, node(after)));
        let lines = [0x4030, 0x4040, 0x9_0000, 0x6040];
        assert_eq!(
            in_front,
            lines.map(Address),
            "T 1, T 2, the head, the old first's 2"
        );
    }
}
