//! The tree of entities that wait, by vruntime (CFS) or by virtual deadline (EEVDF).

use warmq_machine::Access;
use warmq_units::{Address, TaskId};

/// The number of an entity among all of its scheduler.
pub(crate) type EntityId = usize;
/// The number of a queue among all of its scheduler.
pub(crate) type QueueId = usize;

/// What an entity stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Task(TaskId),
    /// The tasks in this queue.
    Group(QueueId),
}

impl Default for What {
    fn default() -> What {
        What::Group(0)
    }
}

/// Entities that wait, the least key first; equals in the order in which they were queued. The
/// running entity is not in it.
///
/// Each operation touches the lines that a red-black tree would: its head, which also holds the
/// leftmost node, the nodes on the way down, and those that change. The way down is that of a
/// balanced tree; a red-black one may be twice as deep.
#[derive(Default)]
pub(crate) struct Tree {
    waiting: Vec<(i64, EntityId)>,
}

impl Tree {
    /// The leftmost entity, and its key.
    pub(crate) fn first(&self) -> Option<(i64, EntityId)> {
        self.waiting.first().copied()
    }

    /// The greatest key (`__pick_last_entity()`).
    pub(crate) fn last_key(&self) -> Option<i64> {
        self.waiting.last().map(|(key, _)| *key)
    }

    /// The entity that has `left` others to its left.
    pub(crate) fn nth(&self, left: usize) -> Option<EntityId> {
        self.waiting.get(left).map(|(_, entity)| *entity)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// From left to right.
    pub(crate) fn iter(&self) -> impl Iterator<Item = EntityId> + '_ {
        self.waiting.iter().map(|(_, entity)| *entity)
    }

    /// Queues `entity` behind all whose key is not greater (`__enqueue_entity()`). `nodes` says
    /// where each entity's node lies, `head` where the tree begins, and `touch` makes the accesses.
    pub(crate) fn insert(
        &mut self,
        mut touch: impl FnMut(Address, Access),
        head: Address,
        nodes: impl Fn(EntityId) -> Address,
        (key, entity): (i64, EntityId),
    ) {
        touch(head, Access::Write);
        let (mut low, mut high) = (0, self.waiting.len());
        let mut parent = None;
        while low < high {
            let middle = low.midpoint(high);
            let (there, other) = self.waiting[middle];
            touch(nodes(other), Access::Read);
            parent = Some(other);
            if key < there {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let changed = parent.into_iter().chain([entity]);
        changed.for_each(|entity| touch(nodes(entity), Access::Write));
        self.waiting.insert(low, (key, entity));
    }

    /// Takes `entity` out, if it is in (`__dequeue_entity()`). Its key is what it was when it was
    /// queued.
    pub(crate) fn remove(
        &mut self,
        mut touch: impl FnMut(Address, Access),
        head: Address,
        nodes: impl Fn(EntityId) -> Address,
        (key, entity): (i64, EntityId),
    ) {
        let equals = self.waiting.partition_point(|(there, _)| *there < key);
        let mut from_here = self.waiting[equals..].iter();
        let Some(after) = from_here.position(|(_, other)| *other == entity) else {
            return;
        };
        touch(head, Access::Write);
        touch(nodes(entity), Access::Write);
        if let Some((_, next)) = self.waiting.get(equals + after + 1) {
            touch(nodes(*next), Access::Write);
        }
        self.waiting.remove(equals + after);
    }
}
