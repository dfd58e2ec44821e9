//! Priority arrays (`struct prio_array`): a list for each priority, first in, first out, and a
//! bitmap of the lists that are not empty. Finding the best task takes the same time whatever their
//! number.

use std::collections::VecDeque;

use warmq_units::{Address, TaskId};

use super::rules::PRIORITIES;

/// Where the list heads begin in the structure: after `nr_active` and the bitmap.
const HEADS: u64 = 24;
/// `sizeof(struct list_head)` on i386.
const HEAD: u64 = 8;

/// One of the two arrays of a run queue.
///
/// Invariant: a bit of `bits` is set if and only if that list is not empty, and `tasks` is the sum
/// of their lengths.
#[derive(Debug, Default)]
pub(super) struct PrioArray {
    base: Address,
    lists: Vec<VecDeque<TaskId>>,
    bits: [u64; 3],
    tasks: usize,
}

/// A node of a list: its head, or a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Head(Address),
    Task(TaskId),
}

impl PrioArray {
    /// Bytes of the structure.
    pub(super) const SIZE: u64 = HEADS + PRIORITIES as u64 * HEAD;

    /// An empty array whose structure lies at `base`.
    pub(super) fn new(base: Address) -> PrioArray {
        PrioArray {
            base,
            lists: vec![VecDeque::new(); PRIORITIES],
            ..PrioArray::default()
        }
    }

    /// Where `nr_active` and the bitmap lie.
    pub(super) fn base(&self) -> Address {
        self.base
    }

    /// Tasks in it (`nr_active`).
    pub(super) fn len(&self) -> usize {
        self.tasks
    }

    /// True if no task is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.tasks == 0
    }

    /// Priorities that have tasks, the best first.
    fn priorities(&self) -> impl Iterator<Item = usize> + '_ {
        self.bits.iter().enumerate().flat_map(|(word, bits)| {
            let mut left = *bits;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(word * 64 + bit)
            })
        })
    }

    /// All tasks, the best first (`sched_find_first_bit()`), those of a list in its order.
    pub(super) fn iter(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.priorities()
            .flat_map(|priority| &self.lists[priority])
            .copied()
    }

    /// All tasks as balancing looks at them: the best list first, each from its tail.
    pub(super) fn iter_from_tails(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.priorities()
            .flat_map(|priority| self.lists[priority].iter().rev())
            .copied()
    }

    /// Puts `task` at the end of the list of `priority`. Returns the nodes that it is between.
    pub(super) fn add_last(&mut self, priority: usize, task: TaskId) -> [Node; 2] {
        let at = self.lists[priority].len();
        self.insert(priority, at, task)
    }

    /// Puts `task` before `other`, or at the end if that is not in the list of `priority`.
    pub(super) fn add_before(&mut self, priority: usize, task: TaskId, other: TaskId) -> [Node; 2] {
        let list = &self.lists[priority];
        let at = list.iter().position(|listed| *listed == other);
        self.insert(priority, at.unwrap_or(list.len()), task)
    }

    fn insert(&mut self, priority: usize, at: usize, task: TaskId) -> [Node; 2] {
        let list = &mut self.lists[priority];
        debug_assert!(!list.contains(&task), "{task} is in the list already");
        list.insert(at, task);
        self.bits[priority / 64] |= 1 << (priority % 64);
        self.tasks += 1;
        self.neighbours(priority, at)
    }

    /// Takes `task` out of the list of `priority`. Returns the nodes that it was between, or
    /// `None` if it is not there.
    pub(super) fn remove(&mut self, priority: usize, task: TaskId) -> Option<[Node; 2]> {
        let mut list = self.lists[priority].iter();
        let at = list.position(|listed| *listed == task)?;
        let neighbours = self.neighbours(priority, at);
        self.lists[priority].remove(at);
        self.tasks -= 1;
        if self.lists[priority].is_empty() {
            self.bits[priority / 64] &= !(1 << (priority % 64));
        }
        Some(neighbours)
    }

    /// The nodes before and after the one at index `at`.
    fn neighbours(&self, priority: usize, at: usize) -> [Node; 2] {
        let list = &self.lists[priority];
        let head = Node::Head(self.base + (HEADS + priority as u64 * HEAD));
        let node = |at: Option<usize>| {
            let task = at.and_then(|at| list.get(at)).copied();
            task.map_or(head, Node::Task)
        };
        [node(at.checked_sub(1)), node(Some(at + 1))]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bitmap_finds_the_best_list() {
        let mut array = PrioArray::new(Address(0));
        for (priority, task) in [(139, 1), (115, 2), (0, 3), (115, 4), (64, 5)] {
            array.add_last(priority, TaskId(task));
        }
        let order = |array: &PrioArray| array.iter().map(|task| task.0).collect::<Vec<_>>();
        assert_eq!(order(&array), [3, 5, 2, 4, 1]);
        let tails: Vec<_> = array.iter_from_tails().map(|task| task.0).collect();
        assert_eq!(tails, [3, 5, 4, 2, 1]);
        array.add_before(115, TaskId(6), TaskId(4));
        assert_eq!(order(&array), [3, 5, 2, 6, 4, 1]);
        let nodes = array.remove(115, TaskId(2));
        let head = Node::Head(Address(HEADS + 115 * HEAD));
        assert_eq!(nodes, Some([head, Node::Task(TaskId(6))]));
        assert_eq!(array.remove(115, TaskId(2)), None);
    }

    /// What is done to the two arrays of a queue.
    #[derive(Clone, Debug)]
    enum Act {
        Add(u32, usize),
        Remove(u32),
        Expire(u32),
        Swap,
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            4 => (0u32..20, 0..PRIORITIES).prop_map(|(task, priority)| Act::Add(task, priority)),
            2 => (0u32..20).prop_map(Act::Remove),
            2 => (0u32..20).prop_map(Act::Expire),
            1 => Just(Act::Swap),
        ];
        prop::collection::vec(act, 0..200)
    }

    proptest! {
        #[test]
        fn no_task_is_lost_or_doubled_and_the_best_comes_first(acts in acts()) {
            let mut arrays = [PrioArray::new(Address(0)), PrioArray::new(Address(0x1000))];
            let mut active = 0;
            // Which array each task is in, and its priority.
            let mut known: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
            for act in acts {
                match act {
                    Act::Add(task, priority) if !known.contains_key(&task) => {
                        arrays[active].add_last(priority, TaskId(task));
                        known.insert(task, (active, priority));
                    }
                    Act::Remove(task) => {
                        let Some((array, priority)) = known.remove(&task) else { continue };
                        prop_assert!(arrays[array].remove(priority, TaskId(task)).is_some());
                    }
                    Act::Expire(task) => {
                        let Some((array, priority)) = known.get_mut(&task) else { continue };
                        prop_assert!(arrays[*array].remove(*priority, TaskId(task)).is_some());
                        *array = 1 - active;
                        arrays[*array].add_last(*priority, TaskId(task));
                    }
                    Act::Swap => active = 1 - active,
                    Act::Add(..) => {}
                }
                let mut found: Vec<u32> = Vec::new();
                for (index, array) in arrays.iter().enumerate() {
                    let tasks: Vec<u32> = array.iter().map(|task| task.0).collect();
                    prop_assert_eq!(array.len(), tasks.len());
                    let priorities: Vec<usize> = tasks.iter().map(|task| known[task].1).collect();
                    prop_assert!(priorities.is_sorted());
                    prop_assert!(tasks.iter().all(|task| known[task].0 == index));
                    found.extend(tasks);
                }
                found.sort_unstable();
                prop_assert_eq!(found, known.keys().copied().collect::<Vec<_>>());
            }
        }
    }
}
