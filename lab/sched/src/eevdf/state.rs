//! What the scheduler knows: entities, the queues that they are in, groups, CPUs and tasks.

use std::collections::BTreeSet;

use warmq_kernel::{Alarm, GroupId};
use warmq_units::{Address, CpuId, Cycles, Instant, LockId, TaskId};

use crate::affinity::Steering;
use crate::fair::tree::{EntityId, Tree};
pub(super) use crate::fair::tree::{QueueId, What};
use warmq_classes::{Joining, Reservation, Server, TaskClass, Throttle, Urgent};

use super::active::Push;
use super::balance::{Pass, Pull};
use super::cache_aware::CacheAware;
use super::domains::{Capacity, Domain};
use super::effects::Effects;
use super::fits::Clamp;
use super::idle::{Kick, Nohz};
use super::load::CAPACITY;
use super::pelt::{Average, Pace};
use super::settings::Rules;
use super::weights::NICE_0;

/// Where virtual time begins in a new queue, in ns (`init_cfs_rq()`).
const BEGINNING: i64 = -(1 << 20);

/// What waits for a turn in a queue: a task, or all tasks of a group on one CPU
/// (`struct sched_entity`).
///
/// Invariant: in the tree of its queue if it is queued and not the queue's current one.
#[derive(Default)]
pub(super) struct Entity {
    pub(super) what: What,
    /// With ten bits behind the point: nice 0 is 2^20.
    pub(super) weight: u64,
    /// That of a task among all tasks of its CPU, where only tasks are queued; of no meaning
    /// otherwise (`h_load`).
    pub(super) flat_weight: u64,
    /// In virtual ns, on the scale of its queue; of no meaning while it is in none.
    pub(super) vruntime: i64,
    /// The virtual deadline; while `relative` and in no queue, its distance from vruntime.
    pub(super) deadline: i64,
    pub(super) relative: bool,
    /// What it asks for at a time, in ns, and whether it or its tasks have chosen that.
    pub(super) slice: i64,
    pub(super) custom_slice: bool,
    /// What it was owed when it left its queue or was reweighted last, in virtual ns.
    pub(super) lag: i64,
    /// Until when it keeps the CPU, in virtual ns. Under
    /// [`Protection::Deadline`](super::rules::Protection): the deadline when it was picked.
    pub(super) protected: i64,
    /// When it was last charged, in ns (`exec_start`).
    pub(super) charged_at: i64,
    /// CPU time in ns (`sum_exec_runtime`), and what that was when it was picked.
    pub(super) ran: i64,
    pub(super) ran_when_picked: i64,
    /// It is counted in its queue (`on_rq`).
    pub(super) queued: bool,
    /// It sleeps, and is still queued until its lag is paid (`sched_delayed`).
    pub(super) delayed: bool,
    /// Its averages count in those of its queue.
    pub(super) attached: bool,
    pub(super) load: Average,
    /// What a task is expected to use of a CPU, in 1024ths (`util_est`).
    pub(super) estimate: u64,
    /// The queue that it belongs in.
    pub(super) queue: QueueId,
    pub(super) line: Address,
    pub(super) node: Address,
}

/// The entities of one group on one CPU, or those of a CPU (`struct cfs_rq`).
///
/// It has two sides. On the one it is a node of the tree of groups, with `weight`, `path` and the
/// averages of load. On the other it is a line of virtual time, in which entities compete: from
/// `tree` to `unlike`. Where only tasks are queued, the second is that of the CPU's own queue
/// alone.
///
/// Invariant: `weight` is the sum of the weights of the queued entities that belong in it,
/// `entities` the number of those that compete in it; `sum` and `tree_weight` are those of w * (v -
/// zero) and w over the tree, with w as it counts in averages; `runnable` is the number of tasks
/// below that do not sleep.
#[derive(Default)]
pub(super) struct Queue {
    pub(super) cpu: CpuId,
    /// The group whose tasks they are; `None` for the CPU's own queue.
    pub(super) group: Option<usize>,
    /// The entity that stands for this queue one level up.
    pub(super) owner: Option<EntityId>,
    /// Levels above it.
    pub(super) depth: u32,
    /// The entity in it that has the CPU, or a task below that (`h_curr`).
    pub(super) path: Option<EntityId>,
    pub(super) weight: u64,
    pub(super) runnable: u64,
    pub(super) load: Average,
    /// Its tasks' averages have changed by more than time since its entity learnt of it, and the
    /// sum of that (`propagate`, `prop_runnable_sum`).
    pub(super) propagates: bool,
    pub(super) moved: i64,
    /// What of `load` counts in the group's, and since when (`tg_load_avg_contrib`).
    pub(super) contribution: Contribution,
    pub(super) contributed_at: i64,
    /// By deadline.
    pub(super) tree: Tree,
    pub(super) zero: i64,
    pub(super) sum: i128,
    pub(super) tree_weight: u64,
    /// The entity that has the CPU, of those that compete here.
    pub(super) current: Option<EntityId>,
    /// Who should be picked next, if eligible (`next`).
    pub(super) buddy: Option<EntityId>,
    pub(super) entities: u64,
    /// How many queued entities have another slice than the base slice.
    pub(super) unlike: u64,
    pub(super) line: Address,
}

/// What a queue counts for in its group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Contribution {
    pub(super) load: u64,
    /// Tasks that are runnable, in 1024ths.
    pub(super) runnable: u64,
}

/// A task group on all CPUs (`struct task_group`).
pub(super) struct GroupState {
    pub(super) id: GroupId,
    /// With ten bits behind the point.
    pub(super) shares: u64,
    /// `cpu.idle`
    pub(super) idle: bool,
    /// The sum of the contributions of its queues.
    pub(super) total: Contribution,
    /// Its queue on each CPU.
    pub(super) queues: Vec<QueueId>,
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
    /// What the clock read when the lock was taken last, in ns.
    pub(super) clock: i64,
    /// The next `schedule()` leaves the clock as it is (`RQCF_REQ_SKIP`).
    pub(super) keeps_clock: bool,
    /// The task that was picked last; `None` is the idle task.
    pub(super) current: Option<TaskId>,
    /// Tasks that are still queued in their sleep.
    pub(super) delayed: u64,
    pub(super) urgent: Urgent,
    /// Lets fair tasks run before them, where they would starve (`fair_server`).
    pub(super) server: Server,
    /// The timer of that.
    pub(super) server_timer: Alarm,
    /// What limits real-time tasks where there is no server (`rt_rq.rt_time`, `rt_throttled`).
    pub(super) throttle: Throttle,
    /// How much of the CPU they use (`avg_rt`, `avg_dl`).
    pub(super) urgent_load: Average,
    /// The fair tasks that are runnable here, the latest that was queued or picked last
    /// (`cfs_tasks`).
    pub(super) recency: Vec<TaskId>,
    /// The sum of what they are expected to use.
    pub(super) estimate: u64,
    /// Tasks that other CPUs woke and left to this one, which has not queued them yet
    /// (`ttwu_pending`).
    pub(super) wakeups_left: u64,
    /// Where the task goes that this CPU switches away from.
    pub(super) leaving: Option<CpuId>,
    /// What its migration thread is to do, and the waiting task that it pushes.
    pub(super) push: Option<Push>,
    pub(super) pushed: Option<(TaskId, CpuId)>,
    /// The CPU that its running task is pushed to at the next pick.
    pub(super) push_to: Option<CpuId>,
    /// When it began to idle, and how long it does on average, in ns (`idle_stamp`, `avg_idle`).
    pub(super) idle_since: Option<i64>,
    pub(super) average_idle: i64,
    /// The timer that ends the slice of the running task, and when.
    pub(super) hrtick: Option<(warmq_kernel::Timer, warmq_units::Instant)>,
    /// In how many ns it is to end the slice of the task that was picked last, once this CPU has
    /// switched to it (`hrtick_delay`).
    pub(super) hrtick_after_switch: Option<i64>,

    // Changed by balancing on this CPU.
    pub(super) domains: Vec<Domain>,
    /// How high it boosts (`arch_asym_cpu_priority()`).
    pub(super) priority: u16,
    /// All of it, in 1024ths of the fastest CPU (`arch_scale_cpu_capacity()`).
    pub(super) whole: u64,
    /// What of that is left to fair tasks, as of when it was balanced last (`cpu_capacity`).
    pub(super) capacity: u64,
    /// The load of its running task, if that needs a larger CPU (`misfit_task_load`).
    pub(super) misfit: u64,
    /// How far what it did is behind that of the fastest CPU.
    pub(super) pace: Pace,
    /// When to balance next, in jiffies.
    pub(super) next_balance: i64,
    /// The most that looking for work before it idled took lately, in ns; at least the cost of a
    /// migration (`max_idle_balance_cost`).
    pub(super) most_idle_cost: i64,
    /// When its averages were made to decay, in jiffies, and whether some still have to
    /// (`last_blocked_load_update_tick`, `has_blocked_load`).
    pub(super) decayed_at: i64,
    pub(super) has_blocked: bool,
    /// If it is the first under a last-level cache: at how many of the CPUs there a wakeup looks
    /// for an idle one (`nr_idle_scan`).
    pub(super) scanned: usize,
    pub(super) pull: Option<Pull>,
    /// The pass that a pull has interrupted.
    pub(super) pass: Option<Pass>,
    /// What a busy CPU has woken it for, and when, in jiffies (`nohz_flags`).
    pub(super) kick: Kick,
    pub(super) kicked_at: i64,
}

#[derive(Default)]
pub(super) struct TaskState {
    pub(super) entity: EntityId,
    pub(super) class: TaskClass,
    /// How it comes onto its next queue.
    pub(super) joining: Joining,
    /// Between which capacities it asks to be run.
    pub(super) clamp: Clamp,
    /// The CPU in whose queue it is, or was last (`task_cpu()`).
    pub(super) cpu: CpuId,
    /// It is runnable there, or runs there.
    pub(super) runnable: bool,
    /// It was woken, and the CPU whose list of wakeups it is on.
    pub(super) left_to: Option<CpuId>,
    /// The CPU that it is to be queued on once another has switched away from it.
    pub(super) displaced: Option<CpuId>,
    /// Whom it woke last, and how often that changed, halved each second (`last_wakee`,
    /// `wakee_flips`).
    pub(super) last_wakee: Option<TaskId>,
    pub(super) wakee_flips: u64,
    pub(super) flips_halved_at: i64,
    /// Where it ran before its last CPU (`recent_used_cpu`).
    pub(super) recent_cpu: CpuId,
}

/// The scheduler's whole state, without the machine.
pub(super) struct State {
    pub(super) rules: Rules,
    pub(super) cpus: Vec<CpuState>,
    pub(super) queues: Vec<Queue>,
    pub(super) entities: Vec<Entity>,
    pub(super) tasks: Vec<TaskState>,
    pub(super) groups: Vec<GroupState>,
    /// What groups of domains know.
    pub(super) capacities: Vec<Capacity>,
    /// Its CPUs are of unlike capacity (`sched_asym_cpucap_active()`).
    pub(super) unlike: bool,
    /// Some share a level-2 cache within a larger one (`sched_cluster_active`).
    pub(super) clustered: bool,
    /// Until when a CPU balances a domain that spans nodes (`sched_balance_running`).
    pub(super) nodes_balanced_until: Instant,
    pub(super) nohz: Nohz,
    /// What the switches to a migration thread and from it take.
    pub(super) stop_cost: Cycles,
    /// The CPUs that run no task (`nohz.idle_cpus_mask`).
    pub(super) resting: BTreeSet<CpuId>,
    /// A task waited somewhere when a CPU got its second one, or when all were last looked at
    /// (`rd->overloaded`).
    pub(super) overloaded: bool,
    pub(super) effects: Effects,
    /// Where balancing knows of caches.
    pub(super) cache_aware: Option<CacheAware>,
    /// CPUs whose running task's slice is to be ended by a timer, in so many ns.
    pub(super) timers: Vec<(CpuId, i64)>,
    /// CPUs whose server may want its timer armed otherwise than it is, and deadline tasks.
    pub(super) servers: Vec<CpuId>,
    pub(super) deadlines: Vec<TaskId>,
    /// When the period of that ends on all CPUs, and the timer of it (`rt_period_timer`).
    pub(super) period_ends: Option<i64>,
    pub(super) period_timer: Alarm,
    /// What arming a timer of a slice takes.
    pub(super) hrtick_cost: Cycles,
    /// What a layer of affinity wants, if there is one.
    pub(super) steering: Steering,
    /// The size of a cache line.
    pub(super) line: u64,
    /// A slice of SCHED_RR, in ticks.
    pub(super) round_robin: u64,
}

impl Queue {
    pub(super) fn new(cpu: CpuId, line: Address) -> Queue {
        Queue {
            cpu,
            zero: BEGINNING,
            line,
            ..Queue::default()
        }
    }
}

impl CpuState {
    /// An idle CPU that balances with no other.
    pub(super) fn new(
        lock: LockId,
        root: QueueId,
        line: Address,
        fair_server: Reservation,
    ) -> CpuState {
        CpuState {
            lock,
            root,
            line,
            whole: CAPACITY,
            capacity: CAPACITY,
            server: Server::new(fair_server),
            ..CpuState::default()
        }
    }
}

impl TaskState {
    /// A task that nothing is known of.
    pub(super) fn new(entity: EntityId) -> TaskState {
        TaskState {
            entity,
            ..TaskState::default()
        }
    }
}

impl Entity {
    /// An entity that is in no queue yet, and belongs in `queue`.
    pub(super) fn new(what: What, queue: QueueId, slice: i64, lines: [Address; 2]) -> Entity {
        Entity {
            what,
            weight: NICE_0,
            flat_weight: NICE_0,
            slice,
            queue,
            line: lines[0],
            node: lines[1],
            ..Entity::default()
        }
    }
}

impl State {
    pub(super) fn cpu(&self, cpu: CpuId) -> &CpuState {
        &self.cpus[cpu.index()]
    }

    pub(super) fn cpu_mut(&mut self, cpu: CpuId) -> &mut CpuState {
        &mut self.cpus[cpu.index()]
    }

    pub(super) fn task(&self, task: TaskId) -> &TaskState {
        &self.tasks[task.index()]
    }

    pub(super) fn task_mut(&mut self, task: TaskId) -> &mut TaskState {
        &mut self.tasks[task.index()]
    }

    pub(super) fn entity_of(&self, task: TaskId) -> EntityId {
        self.tasks[task.index()].entity
    }

    /// The clock of the CPU of `queue` by which averages count (`cfs_rq_clock_pelt()`).
    pub(super) fn load_now(&self, queue: QueueId) -> i64 {
        self.load_clock(self.queues[queue].cpu)
    }

    /// The clock of `cpu` by which averages count (`rq_clock_pelt()`).
    pub(super) fn load_clock(&self, cpu: CpuId) -> i64 {
        let there = self.cpu(cpu);
        there.clock - there.pace.behind()
    }

    /// The clock of the CPU of `queue`.
    pub(super) fn now(&self, queue: QueueId) -> i64 {
        self.cpu(self.queues[queue].cpu).clock
    }

    /// The entity that stands for the queue of `entity` one level up.
    pub(super) fn parent(&self, entity: EntityId) -> Option<EntityId> {
        self.queues[self.entities[entity].queue].owner
    }

    /// The queue in whose virtual time the entities of `queue` compete: it, or that of its CPU.
    pub(super) fn timeline_of(&self, queue: QueueId) -> QueueId {
        match self.rules.flat {
            true => self.cpu(self.queues[queue].cpu).root,
            false => queue,
        }
    }

    /// The queue in whose virtual time `entity` competes.
    pub(super) fn timeline(&self, entity: EntityId) -> QueueId {
        self.timeline_of(self.entities[entity].queue)
    }

    /// Whether `entity` has the CPU, as far as those go that it competes with.
    pub(super) fn is_current(&self, entity: EntityId) -> bool {
        self.queues[self.timeline(entity)].current == Some(entity)
    }

    /// Whether the task that has the CPU is `entity` or is below it.
    pub(super) fn is_on_path(&self, entity: EntityId) -> bool {
        self.queues[self.entities[entity].queue].path == Some(entity)
    }
}
