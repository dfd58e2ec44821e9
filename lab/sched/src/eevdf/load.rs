//! Averages of load: those of entities in those of their queues, and those of queues in those of
//! their groups (`update_load_avg()`).

use warmq_units::CpuId;

use crate::fair::tree::EntityId;

use super::rules::MS;
use super::state::{Class, QueueId, State};
use super::weights::down;

/// How often a queue tells its group what it has become, in ns (`update_tg_load_avg()`).
const CONTRIBUTION_INTERVAL: i64 = MS;
/// By what part it must have changed for that.
const CONTRIBUTION_PART: u64 = 64;
/// All of a CPU (`SCHED_CAPACITY_SCALE`).
pub(super) const CAPACITY: u64 = 1_024;

impl State {
    /// Brings the averages of `entity` and of its queue up to date, those of an entity that is new there
    /// join them, and, if `tells`, the queue's group learns of it.
    pub(super) fn update_load(&mut self, entity: EntityId, tells: bool) {
        let queue = self.entities[entity].queue;
        let (now, runs) = (self.now(queue), self.is_current(entity));
        let state = &mut self.entities[entity];
        let weight = down(state.weight);
        if state.attached {
            state.load.of_entity(now, weight, state.queued, runs);
        }
        let new = self.update_queue_load(queue, now);
        let state = &mut self.entities[entity];
        let joins = !std::mem::replace(&mut state.attached, true);
        if joins {
            self.queues[queue].load.attach(&mut state.load, weight);
        }
        if tells && (new || joins) {
            self.tell_group(queue, now);
        }
    }

    fn update_queue_load(&mut self, queue: QueueId, now: i64) -> bool {
        let there = &mut self.queues[queue];
        let (weight, runs) = (down(there.weight), there.current.is_some());
        there.load.of_queue(now, weight, runs)
    }

    /// A queue's load counts in its group's.
    fn tell_group(&mut self, queue: QueueId, now: i64) {
        let there = &mut self.queues[queue];
        let Some(group) = there.group else {
            return;
        };
        let load = there.load.load;
        let soon = now - there.contributed_at < CONTRIBUTION_INTERVAL;
        let changed = load.abs_diff(there.contribution);
        if soon || changed <= there.contribution / CONTRIBUTION_PART {
            return;
        }
        let group = &mut self.groups[group];
        group.load = group.load + load - there.contribution;
        (there.contribution, there.contributed_at) = (load, now);
        self.effects.write(group.line);
    }

    /// The averages of a task that leaves its CPU or group leave those of its queue.
    pub(super) fn detach_load(&mut self, entity: EntityId) {
        if !self.entities[entity].attached {
            return;
        }
        let queue = self.entities[entity].queue;
        self.update_load(entity, false);
        let state = &mut self.entities[entity];
        state.attached = false;
        let weight = down(state.weight);
        self.queues[queue].load.subtract(&state.load, weight);
        let now = self.now(queue);
        self.tell_group(queue, now);
    }

    /// Brings up to date how much of `cpu` real-time tasks use (`update_rt_rq_load_avg()`).
    pub(super) fn update_real_time_load(&mut self, cpu: CpuId) {
        let there = self.cpu(cpu);
        let current = there.current.map(|task| self.task(task).class);
        let (now, runs) = (there.clock, current == Some(Class::RealTime));
        self.cpu_mut(cpu).real_time_load.of_queue(now, 0, runs);
    }

    /// What of `cpu` is left to fair tasks, in 1024ths (`scale_rt_capacity()`).
    pub(super) fn capacity(&self, cpu: CpuId) -> u64 {
        CAPACITY
            .saturating_sub(self.cpu(cpu).real_time_load.util)
            .max(1)
    }

    /// Averages of queues where nothing runs decay only when somebody looks
    /// (`update_blocked_averages()`).
    pub(super) fn decay_blocked(&mut self, cpu: CpuId) {
        self.update_real_time_load(cpu);
        let now = self.cpu(cpu).clock;
        let queues = self.groups.iter().map(|group| group.queues[cpu.index()]);
        let queues: Vec<QueueId> = queues.chain([self.cpu(cpu).root]).collect();
        for queue in queues {
            if self.update_queue_load(queue, now) {
                self.tell_group(queue, now);
            }
            if let Some(owner) = self.queues[queue].owner
                && !self.entities[owner].queued
            {
                let weight = down(self.entities[owner].weight);
                self.entities[owner]
                    .load
                    .of_entity(now, weight, false, false);
            }
        }
    }
}
