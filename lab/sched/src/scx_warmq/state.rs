//! What the scheduler knows: CPUs, domains, places, entities, groups, tasks, and where each lies.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use warmq_decide::{Domain, Entity, Policy};
use warmq_kernel::{Attach, Context, Fragment, GroupId};
use warmq_units::{Address, Bytes, CpuId, CpuSet, Instant, LockId, TaskId};

use super::cgroup::Cgroups;
use super::change::Known;
use super::costs::Costs;
use super::queue::Queue;
use super::topology::{PlaceKind, Topology};
use crate::grouping::Grouping;

/// Entities by number: the unmanaged tasks of each domain, then the tasks that may run on one CPU
/// only, then groups.
pub(super) type EntityId = usize;

/// How many groups there may be, as in the BPF program; tasks of further fragments are unmanaged.
pub(super) const MOST_GROUPS: usize = 1_023;
/// For how long a group without members keeps its home, in ns.
pub(super) const GROUP_LINGERS: u64 = 100_000_000;
/// The interval of the balance timer, in ns.
pub(super) const BALANCE_INTERVAL: u64 = 10_000_000;

/// Which tasks an entity consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Unmanaged { domain: usize },
    Pinned { cpu: CpuId },
    Group { group: usize },
}

pub(super) struct EntityState {
    pub(super) kind: Kind,
    pub(super) time: Entity,
    pub(super) queue: Queue,
    /// Since when its queue has not been empty, in ns.
    pub(super) queued_since: u64,
    pub(super) line: Address,
}

pub(super) struct DomainState {
    pub(super) time: Domain,
    /// Since when each round of the timer has found unmanaged tasks waiting here, and a CPU idle,
    /// in ns.
    pub(super) beside_idle_since: Option<u64>,
    /// The timer asks this domain to take an unmanaged task of that one.
    pub(super) pull_from: Option<usize>,
    /// Tasks that have waited for too long and come next.
    pub(super) late: Vec<TaskId>,
    pub(super) line: Address,
}

/// Where groups live.
pub(super) struct PlaceState {
    /// The weight of the runnable members of the groups that live here.
    pub(super) managed: u64,
    /// Since when another place of the node, and one of another node, has been much busier, in ns.
    pub(super) imbalanced_since: [Option<u64>; 2],
    /// Groups that were founded here since `founded_since`, in ns.
    pub(super) founded: u64,
    pub(super) founded_since: u64,
    /// Its groups.
    pub(super) groups: BTreeSet<usize>,
    pub(super) line: Address,
}

/// The tasks of one fragment.
pub(super) struct GroupState {
    pub(super) fragment: Option<Fragment>,
    pub(super) entity: EntityId,
    pub(super) home: usize,
    /// Tasks that named it, asleep or not.
    pub(super) members: u64,
    /// Members that have a CPU.
    pub(super) running: u64,
    /// It has had a member that may not run everywhere, so it does not move.
    pub(super) narrow: bool,
    /// When the last member left, in ns.
    pub(super) left_at: u64,
}

pub(super) struct CpuState {
    /// That of its run queue.
    pub(super) lock: LockId,
    /// Tasks that were sent to it when they woke; they run before all others (its local dispatch
    /// queue).
    pub(super) sent: VecDeque<TaskId>,
    /// Where code on this CPU queued the last task for which no CPU was better than another.
    pub(super) distributed: CpuId,
    /// The last wakeup preemption, in ns, if there has been one.
    pub(super) preempted_at: Option<u64>,
    pub(super) running: Option<TaskId>,
    /// The deadline of the task that runs, in its domain's time, from when it was picked or last
    /// charged.
    pub(super) run_deadline: u64,
    /// When its last tick was, and how long one takes (0: nobody knows yet), in ns.
    pub(super) ticked_at: Option<u64>,
    pub(super) tick: u64,
    /// Since when each tick has found a better core for the task that ran, in ns.
    pub(super) crowded_since: Option<u64>,
    /// When a task last left this core for a better one, in ns; of the first CPU of the core.
    pub(super) left_at: Option<u64>,
    /// The batch: the entity whose tasks run here in succession, and what they used, in ns.
    pub(super) batch: Option<EntityId>,
    pub(super) batch_used: u64,
    pub(super) line: Address,
}

/// Invariant: `entity` is there from when a task becomes runnable until it sleeps, and `weight` is
/// what its entity and domain have for it. It is in that entity's queue if and only if `queued`,
/// and in a CPU's own if and only if `sent`; a task that has a CPU is in neither.
pub(super) struct TaskState {
    pub(super) entity: Option<EntityId>,
    pub(super) weight: u64,
    /// Its own weight, and the cgroup where it is counted as active; none while it sleeps.
    pub(super) counted: Option<(GroupId, u64)>,
    /// In its entity's time.
    pub(super) vtime: u64,
    pub(super) queued: bool,
    /// Since when it waits, whatever changes meanwhile, in ns; none: it runs or sleeps.
    pub(super) waits_since: Option<u64>,
    /// The domain in which it comes next, since it has waited for too long.
    pub(super) late_in: Option<usize>,
    /// In the time of `domain`, when it last left an entity; a new task has none.
    pub(super) vruntime: Option<u64>,
    pub(super) domain: usize,
    /// The entity that it left last, in whose time its vtime is.
    pub(super) left: Option<EntityId>,
    pub(super) group: Option<usize>,
    pub(super) parent: Option<TaskId>,
    /// The task that woke it last, and how often in a row the two woke each other.
    pub(super) waker: Option<TaskId>,
    pub(super) turns: u32,
    /// The CPU that was found for it when it woke, until it is queued there: one that idled, or
    /// that its waker is about to leave.
    pub(super) found: Option<CpuId>,
    /// The CPU on a better core for which it gives up its own.
    pub(super) goes_to: Option<CpuId>,
    /// In whose own queue it waits.
    pub(super) sent: Option<CpuId>,
    /// In whose run queue the kernel has it while it waits.
    pub(super) queued_at: CpuId,
    pub(super) known: Option<Known>,
    /// The only CPU where it may run, if there is but one.
    pub(super) only: Option<CpuId>,
    pub(super) on: Option<CpuId>,
    // In ns.
    pub(super) charged_at: u64,
    pub(super) picked_at: u64,
    pub(super) slice: u64,
    /// With which it was queued last, in its entity's time.
    pub(super) deadline: u64,
    /// The debts of its children that exited, for which it was not charged yet.
    pub(super) owes: u64,
    /// Since it woke.
    pub(super) ran: u64,
    /// What it runs between two sleeps; 0: nothing is known.
    pub(super) expected: u64,
    pub(super) slept_at: u64,
    pub(super) period_at: u64,
    /// In this period.
    pub(super) sleeps: u64,
    pub(super) yields: bool,
    /// Its state in the task-storage map.
    pub(super) line: Address,
    /// Its part of the task structure: vtime and the node of the dispatch queue.
    pub(super) node: Address,
}

impl TaskState {
    /// Whether it is in a queue.
    pub(super) fn waits(&self) -> bool {
        self.queued || self.sent.is_some()
    }

    /// What is left of the slice of a running task, in ns.
    pub(super) fn slice_left(&self, now: u64) -> u64 {
        (self.picked_at + self.slice).saturating_sub(now)
    }
}

pub(super) struct State {
    pub(super) policy: Policy,
    pub(super) topology: Topology,
    pub(super) domains: Vec<DomainState>,
    pub(super) places: Vec<PlaceState>,
    pub(super) entities: Vec<EntityState>,
    pub(super) groups: Vec<GroupState>,
    pub(super) group_of: BTreeMap<Fragment, usize>,
    pub(super) cgroups: Cgroups,
    pub(super) cpus: Vec<CpuState>,
    pub(super) tasks: Vec<TaskState>,
    /// Queued tasks of groups.
    pub(super) managed_queued: u64,
    /// Queued tasks whose CPU still switches away from them, and that another CPU would run.
    /// With the CPU that is to reschedule for it: one that idles, or whose task it preempts.
    pub(super) displaced: BTreeMap<TaskId, Option<CpuId>>,
    pub(super) balanced_at: u64,
    pub(super) balance_rounds: u64,
    /// The tick of an idle CPU stops.
    pub(super) idle_ticks_stop: bool,
    /// A timer is armed for the next balance.
    pub(super) watches: bool,
    /// The mask of idle CPUs, one for the machine, and its line. Whoever finds a task for one takes
    /// it out, and it comes back when it idles again.
    pub(super) idle: CpuSet,
    pub(super) idle_line: Address,
    /// The map from fragments to groups.
    pub(super) group_table: Address,
    pub(super) costs: Costs,
    pub(super) grouping: Grouping,
}

/// Nanoseconds since time started.
pub(super) fn ns(context: &Context<'_>) -> u64 {
    (context.now() - Instant::START).as_ns()
}

impl State {
    pub(super) fn new(
        attach: &mut Attach<'_>,
        policy: Policy,
        kind: PlaceKind,
        costs: Costs,
        grouping: Grouping,
    ) -> State {
        let topology = Topology::new(attach, kind);
        let domains: Vec<DomainState> = topology
            .domains()
            .map(|domain| new_domain(attach, topology.cpus_of_domain(domain).len()))
            .collect();
        let places = topology.places().map(|_| new_place(attach)).collect();
        let unmanaged = topology.domains().map(|domain| Kind::Unmanaged { domain });
        let pinned = topology.cpus().map(|cpu| Kind::Pinned {
            cpu: CpuId(cpu as u16),
        });
        let entities = unmanaged
            .chain(pinned)
            .map(|kind| match kind {
                // A domain and its unmanaged tasks are one line.
                Kind::Unmanaged { domain } => new_entity(kind, domains[domain].line, line(attach)),
                Kind::Pinned { .. } | Kind::Group { .. } => {
                    new_entity(kind, line(attach), line(attach))
                }
            })
            .collect();
        let cpus = topology.cpus().map(|_| new_cpu(attach)).collect();
        State {
            policy,
            domains,
            places,
            entities,
            groups: Vec::new(),
            group_of: BTreeMap::new(),
            cgroups: Cgroups::default(),
            cpus,
            tasks: Vec::new(),
            managed_queued: 0,
            displaced: BTreeMap::new(),
            balanced_at: 0,
            balance_rounds: 0,
            idle_ticks_stop: attach.stops_idle_ticks(),
            watches: false,
            idle: CpuSet::first_cpus(attach.cpus()),
            idle_line: line(attach),
            group_table: line(attach),
            costs,
            grouping,
            topology,
        }
    }

    /// Makes room for `task`, which was just created. Forks on two CPUs may be reported in another
    /// order than that of the task numbers.
    pub(super) fn admit(
        &mut self,
        context: &mut Context<'_>,
        parent: Option<TaskId>,
        task: TaskId,
    ) {
        while self.tasks.len() <= task.index() {
            self.tasks.push(new_task(context));
        }
        let view = context.task(task);
        let state = &mut self.tasks[task.index()];
        state.parent = parent;
        state.only = self.topology.only_cpu(view);
        state.domain = self.topology.domain_of(view.last_cpu());
        state.queued_at = view.last_cpu();
        state.known = Some(Known::of(view));
    }

    /// The entity of the unmanaged tasks of `domain`.
    pub(super) fn unmanaged(&self, domain: usize) -> EntityId {
        domain
    }

    /// The entity of those that may run on `cpu` only.
    pub(super) fn pinned(&self, cpu: CpuId) -> EntityId {
        self.domains.len() + cpu.index()
    }

    pub(super) fn group_of_entity(&self, entity: EntityId) -> Option<usize> {
        match self.entities[entity].kind {
            Kind::Group { group } => Some(group),
            Kind::Unmanaged { .. } | Kind::Pinned { .. } => None,
        }
    }

    /// The domain whose virtual time an entity's vruntime is in.
    pub(super) fn domain_of_entity(&self, entity: EntityId) -> usize {
        match self.entities[entity].kind {
            Kind::Unmanaged { domain } => domain,
            Kind::Pinned { cpu } => self.topology.domain_of(cpu),
            Kind::Group { group } => self.topology.domain_of_place(self.groups[group].home),
        }
    }

    /// How many CPUs its members can have at the same time.
    pub(super) fn cpus_of_entity(&self, entity: EntityId) -> u64 {
        let one = match self.entities[entity].kind {
            Kind::Unmanaged { .. } => false,
            Kind::Pinned { .. } => true,
            Kind::Group { .. } => self.topology.place_is_cpu(),
        };
        match one {
            true => 1,
            false => self.domains[self.domain_of_entity(entity)].time.cpus.into(),
        }
    }

    /// Whether `cpu` chooses between this entity and others.
    pub(super) fn serves(&self, cpu: CpuId, entity: EntityId) -> bool {
        match self.entities[entity].kind {
            Kind::Unmanaged { domain } => self.topology.domain_of(cpu) == domain,
            Kind::Pinned { cpu: only } => only == cpu,
            Kind::Group { group } => self.topology.place_of(cpu) == self.groups[group].home,
        }
    }
}

/// A cache line of its own.
fn line(attach: &mut Attach<'_>) -> Address {
    let bytes = Bytes(attach.line());
    attach.data(bytes)
}

fn new_domain(attach: &mut Attach<'_>, cpus: usize) -> DomainState {
    DomainState {
        time: Domain {
            cpus: cpus as u32,
            ..Domain::default()
        },
        beside_idle_since: None,
        pull_from: None,
        late: Vec::new(),
        line: line(attach),
    }
}

fn new_place(attach: &mut Attach<'_>) -> PlaceState {
    PlaceState {
        managed: 0,
        imbalanced_since: [None; 2],
        founded: 0,
        founded_since: 0,
        groups: BTreeSet::new(),
        line: line(attach),
    }
}

fn new_task(context: &mut Context<'_>) -> TaskState {
    let (now, line) = (ns(context), Bytes(1));
    TaskState {
        entity: None,
        weight: 0,
        counted: None,
        vtime: 0,
        queued: false,
        waits_since: None,
        late_in: None,
        vruntime: None,
        domain: 0,
        left: None,
        group: None,
        parent: None,
        waker: None,
        turns: 0,
        found: None,
        goes_to: None,
        sent: None,
        queued_at: CpuId(0),
        known: None,
        only: None,
        on: None,
        charged_at: now,
        picked_at: now,
        slice: 0,
        deadline: 0,
        owes: 0,
        ran: 0,
        expected: 0,
        slept_at: now,
        period_at: now,
        sleeps: 0,
        yields: false,
        line: context.data(line),
        node: context.data(line),
    }
}

pub(super) fn new_entity(kind: Kind, line: Address, head: Address) -> EntityState {
    EntityState {
        kind,
        time: Entity::default(),
        queue: Queue::new(head),
        queued_since: 0,
        line,
    }
}

fn new_cpu(attach: &mut Attach<'_>) -> CpuState {
    CpuState {
        lock: attach.lock("rq_lock"),
        sent: VecDeque::new(),
        distributed: CpuId(0),
        preempted_at: None,
        running: None,
        run_deadline: 0,
        ticked_at: None,
        tick: 0,
        crowded_since: None,
        left_at: None,
        batch: None,
        batch_used: 0,
        line: line(attach),
    }
}
