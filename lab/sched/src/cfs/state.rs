//! What the scheduler knows: entities, the queues that they are in, CPUs, tasks, and where each
//! lies.

use warmq_config::Chosen;
use warmq_kernel::{Attach, Context, GroupId, Policy, UnknownCost, View};
use warmq_machine::Access;
use warmq_units::{Address, Bytes, CpuId, Cycles, Instant, LockId, TaskId};

use super::clock::Clock;
use super::settings::Tunables;
use super::weights::{NICE_0, weight_of};
use crate::affinity::Steering;
use crate::fair::domains::{Domain, OF_2_6_24, domains};
use crate::fair::tree::{EntityId, Tree};
pub(super) use crate::fair::tree::{QueueId, What};
use warmq_classes::Urgent;

/// Averages of a CPU's load that are kept (`CPU_LOAD_IDX_MAX`).
pub(super) const LOADS: usize = 5;
/// Priorities from here on are those of fair tasks (`MAX_RT_PRIO`).
const REAL_TIME_PRIORITIES: i32 = 100;
/// The priority of the idle task, after all others (`MAX_PRIO`).
pub(super) const IDLE_PRIORITY: i32 = 140;

/// What waits for a turn in a queue: a task, or all tasks of a group on one CPU
/// (`struct sched_entity`).
#[derive(Default)]
pub(super) struct Entity {
    pub(super) what: What,
    pub(super) weight: u64,
    /// In virtual ns; while it is queued, on the scale of its queue.
    pub(super) vruntime: i64,
    /// When it was last charged, by its CPU's clock, in ns (`exec_start`).
    pub(super) charged_at: i64,
    /// CPU time in ns (`sum_exec_runtime`), and what that was when it was picked
    /// (`prev_sum_exec_runtime`).
    pub(super) ran: i64,
    pub(super) ran_when_picked: i64,
    /// It is counted in `queue`: it waits in the tree, or runs (`on_rq`).
    pub(super) queued: bool,
    /// The queue that it belongs in.
    pub(super) queue: QueueId,
    pub(super) line: Address,
    pub(super) node: Address,
}

/// The entities of one group on one CPU, or those of a CPU (`struct cfs_rq`).
///
/// Invariant: `weight` and `running` are the sum and number of the queued entities; `tree` holds
/// those of them that are not `current`.
#[derive(Default)]
pub(super) struct Queue {
    pub(super) cpu: CpuId,
    /// The group whose tasks they are; `None` for the CPU's own queue.
    pub(super) group: Option<GroupId>,
    /// The entity that stands for this queue one level up.
    pub(super) owner: Option<EntityId>,
    /// Levels above it.
    pub(super) depth: u32,
    pub(super) tree: Tree,
    /// The entity that has the CPU, if it is of this queue.
    pub(super) current: Option<EntityId>,
    /// Never falls. In virtual ns.
    pub(super) min_vruntime: i64,
    pub(super) weight: u64,
    pub(super) running: u64,
    pub(super) line: Address,
}

/// A CPU's run queue (`struct rq`).
#[derive(Default)]
pub(super) struct CpuState {
    // Set when the scheduler is attached, and never after.
    pub(super) lock: LockId,
    pub(super) root: QueueId,
    pub(super) line: Address,

    // Changed under the lock.
    pub(super) clock: Clock,
    /// The task that was picked last; `None` is the idle task.
    pub(super) current: Option<TaskId>,
    pub(super) realtime: Urgent,
    /// Tasks that are queued here, the running one among them, and the sum of their weights.
    pub(super) running: u64,
    pub(super) load: u64,
    /// Averages of the load, each slower than the one before.
    pub(super) loads: [u64; LOADS],
    /// The task that this CPU switches away from and that goes elsewhere.
    pub(super) leaving: Option<(TaskId, CpuId)>,
    /// The CPU that its running task is pushed to at the next pick.
    pub(super) push_to: Option<CpuId>,

    // Changed by balancing on this CPU.
    pub(super) domains: Vec<Domain>,
    /// In ticks of this CPU.
    pub(super) next_balance: u64,
    pub(super) pull: Option<Pull>,
}

/// What `balance` has found, for `pull`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pull {
    pub(super) domain: usize,
    pub(super) load: u64,
}

/// The class of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Class {
    #[default]
    Fair,
    RealTime,
}

#[derive(Default)]
pub(super) struct TaskState {
    pub(super) entity: EntityId,
    pub(super) class: Class,
    /// What it is compared by among classes: 0 to 99 real-time, 100 to 139 for nice -20 to 19; less
    /// is better (`p->prio`).
    pub(super) priority: i32,
    /// The CPU in whose queue it is, or was last (`task_cpu()`).
    pub(super) cpu: CpuId,
    /// It is queued there, or runs there.
    pub(super) queued: bool,
    /// When a CPU has switched away from it, somebody must learn that it can run.
    pub(super) displaced: bool,
    pub(super) parent: Option<TaskId>,
    /// Sleeps in the period that began at `period_at` ns.
    pub(super) sleeps: u64,
    pub(super) period_at: i64,
    /// Ticks that are left of a SCHED_RR slice.
    pub(super) slice: u64,
}

pub(super) struct State {
    pub(super) tunables: Tunables,
    pub(super) cpus: Vec<CpuState>,
    pub(super) queues: Vec<Queue>,
    pub(super) entities: Vec<Entity>,
    pub(super) tasks: Vec<TaskState>,
    /// The queues of each group by CPU, the newest group first. Empty without group scheduling.
    pub(super) groups: Vec<Vec<QueueId>>,
    pub(super) line: u64,
    /// A slice of SCHED_RR, in ticks.
    pub(super) round_robin: u64,
    /// What a layer of affinity wants, if there is one.
    pub(super) steering: Steering,
    pub(super) pick_cost: Cycles,
    pub(super) wakeup_cost: Cycles,
}

/// The TSC in ns.
pub(super) fn ns(context: &Context<'_>) -> i64 {
    (context.now() - Instant::START).as_ns() as i64
}

/// The class of a task, and its priority.
pub(super) fn class_of(view: View<'_>) -> (Class, i32) {
    let best = REAL_TIME_PRIORITIES;
    match view.policy().real_time() {
        Some(priority) => (Class::RealTime, best - 1 - i32::from(priority)),
        None => (Class::Fair, best + 20 + i32::from(view.nice())),
    }
}

impl State {
    pub(super) fn new(attach: &mut Attach<'_>, chosen: &Chosen) -> Result<State, UnknownCost> {
        let (line, cpus) = (attach.line(), attach.cpus());
        let tick = attach.tick().as_ns();
        let jiffies = chosen.choice("clock") == "jiffies";
        let mut state = State {
            tunables: Tunables::new(chosen, cpus),
            cpus: Vec::new(),
            queues: Vec::new(),
            entities: Vec::new(),
            tasks: Vec::new(),
            groups: Vec::new(),
            line,
            round_robin: Urgent::slice(tick),
            steering: Steering::default(),
            pick_cost: attach.cost("schedule_fixed")?,
            wakeup_cost: attach.cost("wakeup")?,
        };
        for cpu in (0..cpus).map(CpuId) {
            let head = attach.data(Bytes(line));
            let root = state.add_queue(cpu, None, None, head);
            state.cpus.push(CpuState {
                lock: attach.lock("rq_lock"),
                root,
                line: attach.data(Bytes(line)),
                clock: Clock::new(tick as i64, jiffies),
                domains: domains(attach, cpu, OF_2_6_24, 0),
                ..CpuState::default()
            });
        }
        Ok(state)
    }

    /// A queue whose tree begins at `head`, below the entity `owner`.
    pub(super) fn add_queue(
        &mut self,
        cpu: CpuId,
        group: Option<GroupId>,
        owner: Option<EntityId>,
        head: Address,
    ) -> QueueId {
        let above = owner.map(|owner| self.queues[self.entities[owner].queue].depth);
        self.queues.push(Queue {
            cpu,
            group,
            owner,
            depth: above.map_or(0, |above| above + 1),
            line: head,
            ..Queue::default()
        });
        self.queues.len() - 1
    }

    /// An entity that is in no queue yet, and belongs in `queue`.
    pub(super) fn add_entity(
        &mut self,
        context: &mut Context<'_>,
        what: What,
        queue: QueueId,
    ) -> EntityId {
        let line = context.data(Bytes(2 * self.line));
        self.entities.push(Entity {
            what,
            weight: NICE_0,
            vruntime: self.queues[queue].min_vruntime,
            queue,
            line,
            node: line + self.line,
            ..Entity::default()
        });
        self.entities.len() - 1
    }

    /// Makes room for `child`, which was just created on its parent's CPU and is a copy of its
    /// parent. Forks on two CPUs may be reported in another order than that of the task numbers.
    pub(super) fn admit(
        &mut self,
        context: &mut Context<'_>,
        parent: Option<TaskId>,
        child: TaskId,
    ) {
        while self.tasks.len() <= child.index() {
            let task = TaskId(self.tasks.len() as u32);
            let root = self.cpus[0].root;
            let entity = self.add_entity(context, What::Task(task), root);
            self.tasks.push(TaskState {
                entity,
                priority: IDLE_PRIORITY,
                slice: self.round_robin,
                ..TaskState::default()
            });
        }
        let view = context.task(child);
        let (cpu, (class, priority), weight) = (view.last_cpu(), class_of(view), weight_of(view));
        let queue = self.queue_of_task(context, child, cpu);
        let vruntime = self.queues[queue].min_vruntime;
        let task = &mut self.tasks[child.index()];
        (task.cpu, task.class, task.priority) = (cpu, class, priority);
        task.parent = parent;
        let entity = &mut self.entities[task.entity];
        (entity.queue, entity.weight, entity.vruntime) = (queue, weight, vruntime);
    }

    pub(super) fn entity_of(&self, task: TaskId) -> EntityId {
        self.tasks[task.index()].entity
    }

    pub(super) fn cpu(&self, cpu: CpuId) -> &CpuState {
        &self.cpus[cpu.index()]
    }

    pub(super) fn cpu_mut(&mut self, cpu: CpuId) -> &mut CpuState {
        &mut self.cpus[cpu.index()]
    }

    /// Brings the clock of `cpu` up to date (`update_rq_clock()`).
    pub(super) fn update_clock(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        let raw = ns(context);
        context.touch(self.cpu(cpu).line, Access::Write);
        self.cpu_mut(cpu).clock.update(raw);
    }

    /// The entity that stands for the queue of `entity` one level up.
    pub(super) fn parent(&self, entity: EntityId) -> Option<EntityId> {
        self.queues[self.entities[entity].queue].owner
    }

    /// The policy of a task that decides among fair tasks.
    pub(super) fn is_batch(context: &Context<'_>, task: TaskId) -> bool {
        context.task(task).policy() == Policy::Batch
    }
}
