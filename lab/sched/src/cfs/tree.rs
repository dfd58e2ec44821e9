//! The tree of entities that wait, by vruntime.

use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_units::Address;

use super::state::EntityId;

/// Entities that wait, the least vruntime first; equals in the order in which they were queued. The
/// running entity is not in it.
///
/// Each operation touches the lines that a red-black tree would: its head, which also holds the
/// leftmost node, the nodes on the way down, and those that change. The way down is that of a
/// balanced tree; a red-black one may be twice as deep.
pub(super) struct Tree {
    waiting: Vec<(i64, EntityId)>,
}

impl Tree {
    pub(super) fn new() -> Tree {
        Tree {
            waiting: Vec::new(),
        }
    }

    /// The leftmost entity, and its vruntime.
    pub(super) fn first(&self) -> Option<(i64, EntityId)> {
        self.waiting.first().copied()
    }

    /// The greatest vruntime (`__pick_last_entity()`).
    pub(super) fn last_vruntime(&self) -> Option<i64> {
        self.waiting.last().map(|(vruntime, _)| *vruntime)
    }

    /// The entity that has `left` others to its left.
    pub(super) fn nth(&self, left: usize) -> Option<EntityId> {
        self.waiting.get(left).map(|(_, entity)| *entity)
    }

    /// From left to right.
    pub(super) fn iter(&self) -> impl Iterator<Item = EntityId> + '_ {
        self.waiting.iter().map(|(_, entity)| *entity)
    }

    /// Queues `entity` behind all whose vruntime is not greater (`__enqueue_entity()`). `nodes`
    /// says where each entity's node lies, `head` where the tree begins.
    pub(super) fn insert(
        &mut self,
        context: &mut Context<'_>,
        head: Address,
        nodes: impl Fn(EntityId) -> Address,
        (vruntime, entity): (i64, EntityId),
    ) {
        context.touch(head, Access::Write);
        let (mut low, mut high) = (0, self.waiting.len());
        let mut parent = None;
        while low < high {
            let middle = low.midpoint(high);
            let (there, other) = self.waiting[middle];
            context.touch(nodes(other), Access::Read);
            parent = Some(other);
            if vruntime < there {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let changed = parent.into_iter().chain([entity]);
        changed.for_each(|entity| context.touch(nodes(entity), Access::Write));
        self.waiting.insert(low, (vruntime, entity));
    }

    /// Takes `entity` out, if it is in (`__dequeue_entity()`). Its vruntime is what it was when it
    /// was queued.
    pub(super) fn remove(
        &mut self,
        context: &mut Context<'_>,
        head: Address,
        nodes: impl Fn(EntityId) -> Address,
        (vruntime, entity): (i64, EntityId),
    ) {
        let equals = self.waiting.partition_point(|(there, _)| *there < vruntime);
        let mut from_here = self.waiting[equals..].iter();
        let Some(after) = from_here.position(|(_, other)| *other == entity) else {
            return;
        };
        context.touch(head, Access::Write);
        context.touch(nodes(entity), Access::Write);
        if let Some((_, next)) = self.waiting.get(equals + after + 1) {
            context.touch(nodes(*next), Access::Write);
        }
        self.waiting.remove(equals + after);
    }
}
