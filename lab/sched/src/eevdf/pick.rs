//! Picking: of all eligible entities, the one with the earliest deadline (`pick_eevdf()`).

use warmq_units::{CpuId, TaskId};

use crate::fair::tree::EntityId;

use super::pelt::Average;
use super::queueing::Leaving;
use super::state::{QueueId, State, What};

impl State {
    /// The entity of `queue` to run next. The running one goes on while it is protected and
    /// eligible, if `protects`; else somebody with an earlier deadline, or an equal one, goes
    /// before it.
    pub(super) fn best(&mut self, queue: QueueId, protects: bool) -> Option<EntityId> {
        let there = &self.queues[queue];
        let current = there
            .current
            .filter(|current| self.entities[*current].queued);
        if there.entities == 1 {
            return current.or(there.tree.first().map(|(_, entity)| entity));
        }
        let current = current.filter(|current| self.is_eligible(*current));
        if protects && current.is_some_and(|current| self.is_protected(current)) {
            return current;
        }
        let first = self.first_eligible(queue);
        let first_deadline = first.map(|first| self.entities[first].deadline);
        let earlier = |current: &EntityId| {
            first_deadline.is_none_or(|first| self.entities[*current].deadline < first)
        };
        current.filter(earlier).or(first)
    }

    /// The eligible entity of the tree with the earliest deadline. The kernel finds it on one way
    /// down, as each node knows the least vruntime below it.
    fn first_eligible(&mut self, queue: QueueId) -> Option<EntityId> {
        let mut visits = 0;
        let tree = &self.queues[queue].tree;
        let eligible = self.eligible_at(queue);
        let found = tree.iter().find(|entity| {
            visits += 1;
            eligible(self.entities[*entity].vruntime)
        });
        let depth = tree.len().max(1).ilog2() as usize + 1;
        self.effects.read(self.queues[queue].line);
        for entity in tree.iter().take(visits.min(depth)) {
            self.effects.read(self.entities[entity].node);
        }
        found
    }

    /// The entity of `queue` to run next: its buddy, if that is eligible (`pick_next_entity()`).
    pub(super) fn choose(&mut self, queue: QueueId) -> Option<EntityId> {
        let buddy = self.queues[queue].buddy.filter(|_| self.rules.pick_buddy);
        let buddy = buddy.filter(|buddy| self.is_eligible(*buddy));
        let best = buddy.or_else(|| self.best(queue, true))?;
        Some(self.successor(queue, best).unwrap_or(best))
    }

    /// The fair task to run next on `cpu` (`pick_task_fair()`). Delayed entities that are met
    /// leave.
    pub(super) fn pick_fair(&mut self, cpu: CpuId) -> Option<TaskId> {
        let root = self.cpu(cpu).root;
        let mut queue = root;
        while self.queues[root].entities > 0 {
            self.charge(queue);
            let entity = self.choose(queue)?;
            if self.entities[entity].delayed {
                self.dequeue(entity, Leaving::Paid);
                queue = root;
                continue;
            }
            match self.entities[entity].what {
                What::Task(task) => return Some(task),
                What::Group(own) => queue = own,
            }
        }
        None
    }

    /// `cpu` turns from its current task to `next`. Levels that both are below of are left alone.
    pub(super) fn turn_to(&mut self, cpu: CpuId, next: Option<TaskId>) {
        let prev = self.cpu(cpu).current;
        if prev == next {
            return;
        }
        self.update_urgent_load(cpu);
        self.count_idling(cpu, prev, next);
        let common = match (prev, next) {
            (Some(prev), Some(next)) => self.common_queue(prev, next),
            _ => None,
        };
        if let Some(prev) = prev {
            self.put_prev(prev, common);
        }
        self.cpu_mut(cpu).current = next;
        match next {
            Some(_) => self.end_resting(cpu),
            None => {
                let there = self.cpu(cpu);
                let root = &self.queues[there.root].load;
                let was_full = Average::are_full([root, &there.urgent_load]);
                self.cpu_mut(cpu).pace.begins_to_idle(was_full);
                self.begin_resting(cpu);
            }
        }
        if let Some(next) = next {
            self.set_current(next, common);
            let recency = &mut self.cpu_mut(cpu).recency;
            if let Some(at) = recency.iter().position(|task| *task == next) {
                recency[at..].rotate_left(1);
            }
        }
    }

    /// The lowest queue that two tasks of a CPU are both in or below of.
    fn common_queue(&self, one: TaskId, other: TaskId) -> Option<QueueId> {
        let both_fair = [one, other]
            .iter()
            .all(|task| !self.task(*task).class.is_urgent());
        if !both_fair {
            return None;
        }
        let (one, other) = self.siblings(self.entity_of(one), self.entity_of(other));
        let queue = self.entities[one].queue;
        Some(queue).filter(|queue| *queue == self.entities[other].queue)
    }

    /// The entities in one queue that `one` and `other` are or are below of
    /// (`find_matching_se()`).
    pub(super) fn siblings(&self, one: EntityId, other: EntityId) -> (EntityId, EntityId) {
        let (mut one, mut other) = (one, other);
        let depth = |entity: EntityId| self.queues[self.entities[entity].queue].depth;
        while self.entities[one].queue != self.entities[other].queue {
            let (deep, flat) = (depth(one), depth(other));
            if deep >= flat
                && let Some(parent) = self.parent(one)
            {
                one = parent;
            }
            if flat >= deep
                && let Some(parent) = self.parent(other)
            {
                other = parent;
            }
            if deep == 0 && flat == 0 {
                break;
            }
        }
        (one, other)
    }
}
