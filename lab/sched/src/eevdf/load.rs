//! Averages of load: those of entities in those of their queues, and those of queues in those of
//! their groups (`update_load_avg()`).

use warmq_units::CpuId;

use crate::fair::tree::EntityId;

use super::pelt::Since;
use super::state::{Contribution, QueueId, State, What};
use super::weights::down;

/// By what part a queue must have changed to contribute to its group what it has become
/// (`update_tg_load_avg()`).
const CONTRIBUTION_PART: u64 = 64;
/// All of a CPU (`SCHED_CAPACITY_SCALE`).
pub(super) const CAPACITY: u64 = 1_024;

impl State {
    /// Brings the averages of `entity` and of its queue up to date, those of an entity that is new
    /// there join them, and, if `contributes`, the queue's group learns of it.
    pub(super) fn update_load(&mut self, entity: EntityId, contributes: bool) {
        let queue = self.entities[entity].queue;
        let now = self.load_now(queue);
        if self.entities[entity].attached {
            self.age(entity);
        }
        let weight = down(self.entities[entity].weight);
        let mut new = self.update_queue_load(queue, now);
        new |= self.propagate(entity);
        let state = &mut self.entities[entity];
        let joins = !std::mem::replace(&mut state.attached, true);
        if joins {
            let there = &mut self.queues[queue];
            there.load.attach(&mut state.load, weight);
            there.propagates = true;
            there.moved += state.load.unweighted_sum() as i64;
        }
        if (contributes && new) || joins {
            self.contribute(queue, now);
        }
    }

    /// A task that was just created is taken to run for half of what its CPU has left, or for as
    /// much as others of its weight in its queue, if that is less (`post_init_entity_util_avg()`).
    pub(super) fn presume_util(&mut self, entity: EntityId, cpu: CpuId) {
        let there = &self.queues[self.entities[entity].queue].load;
        let left = self.cpu(cpu).whole.saturating_sub(there.util) / 2;
        if left == 0 {
            return;
        }
        let state = &self.entities[entity];
        let alike = there.util * down(state.weight) / (there.load + 1);
        let util = match there.util {
            0 => left,
            _ => alike.min(left),
        };
        let load = &mut self.entities[entity].load;
        (load.util, load.runnable) = (util, util);
    }

    /// Brings the averages of `entity` up to date, which counts in its queue.
    pub(super) fn age(&mut self, entity: EntityId) {
        let now = self.load_now(self.entities[entity].queue);
        let since = self.since(entity);
        let state = &mut self.entities[entity];
        state.load.of_entity(now, down(state.weight), since);
    }

    /// What counts for `entity` since it was brought up to date.
    fn since(&self, entity: EntityId) -> Since {
        let state = &self.entities[entity];
        if !state.queued {
            return Since::IDLE;
        }
        let runnable = match state.what {
            What::Task(_) => u64::from(!state.delayed),
            What::Group(own) => self.queues[own].runnable,
        };
        Since {
            load: 1,
            runnable,
            ran: self.is_on_path(entity),
        }
    }

    fn update_queue_load(&mut self, queue: QueueId, now: i64) -> bool {
        let there = &mut self.queues[queue];
        let since = Since {
            load: down(there.weight),
            runnable: there.runnable,
            ran: there.path.is_some(),
        };
        there.load.of_queue(now, since)
    }

    /// What tasks have brought to the queue of a group, or taken from it, changes its entity and
    /// the queue above. True if there was such (`propagate_entity_load_avg()`).
    fn propagate(&mut self, entity: EntityId) -> bool {
        let state = &mut self.entities[entity];
        let What::Group(own) = state.what else {
            return false;
        };
        if !std::mem::take(&mut self.queues[own].propagates) {
            return false;
        }
        let moved = std::mem::take(&mut self.queues[own].moved);
        let [own, above] = self
            .queues
            .get_disjoint_mut([own, state.queue])
            .expect("a group is not around itself");
        above.propagates = true;
        above.moved += moved;
        let brought = (&own.load, down(own.weight), moved);
        let weight = down(state.weight);
        state.load.follow(weight, &mut above.load, brought);
        true
    }

    /// What a queue is counts in its group.
    fn contribute(&mut self, queue: QueueId, now: i64) {
        let there = &mut self.queues[queue];
        let Some(group) = there.group else {
            return;
        };
        let (before, is) = (
            there.contribution,
            Contribution {
                load: there.load.load,
                runnable: there.load.runnable,
            },
        );
        let soon = now - there.contributed_at < self.rules.load_interval;
        let changes = |before: u64, is: u64| is.abs_diff(before) > before / CONTRIBUTION_PART;
        let counts_tasks = self.rules.cgroup_mode.counts_tasks();
        let changed = changes(before.load, is.load)
            || (counts_tasks && changes(before.runnable, is.runnable));
        if soon || !changed {
            return;
        }
        let group = &mut self.groups[group];
        group.total.load = group.total.load + is.load - before.load;
        group.total.runnable = group.total.runnable + is.runnable - before.runnable;
        (there.contribution, there.contributed_at) = (is, now);
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
        let there = &mut self.queues[queue];
        there.load.subtract(&state.load, weight);
        there.propagates = true;
        there.moved -= state.load.unweighted_sum() as i64;
        let now = self.load_now(queue);
        self.contribute(queue, now);
    }

    /// The groups above `entity` learn what it has brought or taken (`propagate_entity_cfs_rq()`).
    pub(super) fn update_loads_above(&mut self, entity: EntityId) {
        let mut next = self.parent(entity);
        while let Some(entity) = next {
            self.update_load(entity, true);
            next = self.parent(entity);
        }
    }

    /// Brings up to date how much of `cpu` real-time tasks use (`update_rt_rq_load_avg()`).
    pub(super) fn update_urgent_load(&mut self, cpu: CpuId) {
        let there = self.cpu(cpu);
        let runs = there
            .current
            .is_some_and(|task| self.task(task).class.is_urgent());
        let now = self.load_clock(cpu);
        let since = Since {
            load: u64::from(runs),
            runnable: u64::from(runs),
            ran: runs,
        };
        self.cpu_mut(cpu).urgent_load.of_queue(now, since);
    }

    /// What of `cpu` is left to fair tasks, in 1024ths of the fastest CPU, as of when it was
    /// balanced last (`capacity_of()`).
    pub(super) fn capacity(&self, cpu: CpuId) -> u64 {
        self.cpu(cpu).capacity
    }

    /// The same as of now (`scale_rt_capacity()`).
    pub(super) fn scaled_capacity(&self, cpu: CpuId) -> u64 {
        let there = self.cpu(cpu);
        there.whole.saturating_sub(there.urgent_load.util).max(1)
    }

    /// Whether real-time tasks take so much of `cpu` that `pct` counts it as a smaller one
    /// (`check_cpu_capacity()`).
    pub(super) fn lacks_capacity(&self, cpu: CpuId, pct: u64) -> bool {
        self.capacity(cpu) * pct < self.cpu(cpu).whole * 100
    }

    /// The same, where one fair task is there (`sched_reduced_capacity()`).
    pub(super) fn has_reduced_capacity(&self, cpu: CpuId, pct: u64) -> bool {
        self.fair_tasks(cpu) == 1 && self.lacks_capacity(cpu, pct)
    }

    /// Tasks that are queued on `cpu`, also in their sleep (`rq->nr_running`).
    pub(super) fn nr_running(&self, cpu: CpuId) -> u64 {
        self.running(cpu) + self.cpu(cpu).delayed
    }

    /// Fair tasks that balancing counts on `cpu` (`h_nr_runnable`; in 6.12 `h_nr_queued`).
    pub(super) fn fair_tasks(&self, cpu: CpuId) -> u64 {
        let there = self.cpu(cpu);
        let delayed = match self.rules.counts_delayed {
            true => there.delayed,
            false => 0,
        };
        self.queues[there.root].runnable + delayed
    }

    /// Whether the averages of the queue of a group, and those of its entity, are nothing and stay
    /// so (`cfs_rq_is_decayed()`, `skip_blocked_update()`).
    fn has_decayed(&self, queue: QueueId) -> bool {
        let there = &self.queues[queue];
        let owner = there.owner.map(|owner| self.entities[owner].load);
        let known = there.contribution == Contribution::default() && !there.propagates;
        let none = there.load.is_nothing() && owner.is_none_or(|load| load.is_nothing());
        there.weight == 0 && known && none
    }

    /// Averages of queues where nothing runs decay only when somebody looks
    /// (`update_blocked_averages()`).
    pub(super) fn decay_blocked(&mut self, cpu: CpuId) {
        self.update_urgent_load(cpu);
        let now = self.load_clock(cpu);
        self.cpu_mut(cpu).decayed_at = self.jiffies(cpu);
        // A group is younger than the one around it.
        for group in (0..self.groups.len()).rev() {
            let queue = self.groups[group].queues[cpu.index()];
            let Some(owner) = self.queues[queue]
                .owner
                .filter(|_| !self.has_decayed(queue))
            else {
                continue;
            };
            if self.update_queue_load(queue, now) {
                self.contribute(queue, now);
            }
            self.update_load(owner, true);
        }
        self.update_queue_load(self.cpu(cpu).root, now);
    }

    /// Whether averages of `cpu` still have to decay (`others_have_blocked()`,
    /// `cfs_rq_has_blocked_load()`).
    pub(super) fn has_blocked(&self, cpu: CpuId) -> bool {
        let there = self.cpu(cpu);
        let root = &self.queues[there.root].load;
        root.load > 0 || root.util > 0 || there.urgent_load.util > 0
    }
}
