//! scx_warmq: the sched_ext scheduler of this project, simulated.
//!
//! Purpose: to try the policy where there are caches to measure and seeds to repeat. All arithmetic
//! is that of the BPF program: `warmq_decide` compiles its header. The structure is the BPF program's,
//! too: a queue by virtual time for the unmanaged tasks of each last-level cache, one for each CPU's
//! bound tasks, one for each group (the tasks of one fragment), and a CPU chooses the entity that
//! stands first, or goes on with its batch.
//!
//! Not modelled, and better here than on a machine: what BPF costs more than C (a switch under a
//! sched_ext scheduler took 1.4 times the instructions of one under the kernel's own class), cgroups,
//! inference, labels, and hotplug. Not as there: one lock guards all queues of a domain, where
//! sched_ext has one for each queue; a task's turn ends with a tick, as there, but real-time tasks
//! are merely heavy. Costs besides memory accesses are those of `linux-2.4`, since nobody measured
//! sched_ext on these machines.
//!
//! It does badly where groups are larger than what their home can serve (`place = "cpu"` with many
//! threads a fragment), and where data is shared across fragments.

mod balance;
mod entity;
mod group;
mod idle;
mod pick;
mod queue;
mod state;
mod topology;
mod wakeup;

use warmq_config::{Chosen, Setting};
use warmq_decide::Policy;
use warmq_kernel::{Attach, Context, Fragment, Pick, Scheduler, UnknownCost, Why};
use warmq_machine::Access;
use warmq_units::{CpuId, Duration, LockId, TaskId};

use self::entity::Coming;
use self::state::{State, ns};
use self::topology::PlaceKind;

const DEFAULT: &str = "warmq_default_policy() in common/decide/include/decide.h";

/// A span of the policy.
fn span(name: &str, default: u64, least: Duration, what: &str) -> Setting {
    let bounds = (least, Duration::from_s(10));
    Setting::duration(name, bounds, Duration::from_ns(default)).says(what, DEFAULT)
}

/// What can be set: the policy, as on the command line of the real one.
pub(crate) fn settings() -> Vec<Setting> {
    let default = Policy::default();
    let (any, some) = (Duration::ZERO, Duration::from_us(10));
    vec![
        Setting::choice("place", &["llc", "cpu"]).says(
            "where a group lives: under a last-level cache, or on a CPU",
            "affinity paper: a CPU; a cache where several CPUs share one",
        ),
        span("slice", default.slice_max, some, "the longest slice"),
        span(
            "slice_min",
            default.slice_min,
            some,
            "the shortest slice; no more than `slice`",
        ),
        span(
            "period",
            default.period,
            some,
            "everybody runs once in it while few are runnable; sleeps are counted within it",
        ),
        span(
            "alpha",
            default.alpha,
            any,
            "granularity for one sleep a second, formula 5-1; 0 turns it off",
        ),
        span(
            "preempt_interval",
            default.preempt_interval,
            any,
            "least time between two wakeup preemptions of one CPU; 0 turns it off",
        ),
        span(
            "min_sleep",
            default.min_sleep,
            any,
            "shorter sleeps earn neither credit nor preemption; 0 turns it off",
        ),
        span(
            "batch_budget",
            default.batch_budget,
            any,
            "for how long a group runs in succession on one CPU while others wait",
        ),
        Setting::count("imbalance", (0, 1_000), default.imbalance as i64, "%").says(
            "by how much a place may be busier than another",
            "affinity paper: 25 %",
        ),
        span(
            "patience",
            default.patience,
            any,
            "how long an imbalance lasts before a group is split",
        ),
    ]
}

fn policy(chosen: &Chosen) -> Policy {
    let ns = |name: &str| chosen.duration(name).as_ns();
    let slice_max = ns("slice");
    Policy {
        period: ns("period"),
        slice_max,
        slice_min: ns("slice_min").min(slice_max),
        alpha: ns("alpha"),
        preempt_interval: ns("preempt_interval"),
        min_sleep: ns("min_sleep"),
        batch_budget: ns("batch_budget"),
        imbalance: chosen.count("imbalance"),
        patience: ns("patience"),
        ..Policy::default()
    }
}

/// The simulated scx_warmq.
pub(crate) struct ScxWarmq {
    state: State,
}

impl ScxWarmq {
    pub(crate) fn new(chosen: &Chosen, attach: &mut Attach<'_>) -> Result<ScxWarmq, UnknownCost> {
        let kind = match chosen.choice("place") {
            "cpu" => PlaceKind::Cpu,
            _ => PlaceKind::Llc,
        };
        let state = State::new(attach, policy(chosen), kind)?;
        Ok(ScxWarmq { state })
    }
}

impl Scheduler for ScxWarmq {
    fn lock_for(&self, cpu: CpuId) -> LockId {
        let state = &self.state;
        state.domains[state.topology.domain_of(cpu)].lock
    }

    fn fork(&mut self, context: &mut Context<'_>, _: Option<TaskId>, child: TaskId) {
        self.state.admit(context, child);
    }

    fn select_cpu(&mut self, context: &mut Context<'_>, task: TaskId, _: Why) -> CpuId {
        self.state.select(context, task)
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, _: Why) {
        let state = &mut self.state;
        context.compute(state.wakeup_cost);
        let now = ns(context);
        state.begin_period(task, now);
        let counts = state.counts(task, now);
        state.settle(context, task, cpu, Coming::Woken { counts });
        state.queue(context, task);
    }

    fn wakeup_preempt(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, _: Why) {
        let state = &mut self.state;
        if !state.kick_idle(context, task, cpu) {
            state.preempt(context, task, cpu);
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = &mut self.state;
        state.charge(context, task);
        state.stop(task);
        state.unqueue(context, task);
        state.leave(context, task);
        let now = ns(context);
        let task = &mut state.tasks[task.index()];
        task.slept_at = now;
        task.sleeps += 1;
    }

    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        self.state.pick(context, prev)
    }

    fn wants_put_prev(&self) -> bool {
        !self.state.displaced.is_empty()
    }

    fn put_prev(&mut self, context: &mut Context<'_>, prev: TaskId) {
        let state = &mut self.state;
        if state.displaced.remove(&prev) && state.tasks[prev.index()].queued {
            state.kick_idle(context, prev, context.cpu());
        }
    }

    fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>) {
        let state = &mut self.state;
        state.balance(context);
        let Some(running) = running else { return };
        state.charge(context, running);
        let now = ns(context);
        state.begin_period(running, now);
        let task = &state.tasks[running.index()];
        if now.saturating_sub(task.picked_at) >= task.slice {
            context.reschedule(context.cpu());
        }
    }

    fn yield_task(&mut self, context: &mut Context<'_>, task: TaskId) {
        let task = &mut self.state.tasks[task.index()];
        task.yields = true;
        context.touch(task.line, Access::Write);
    }

    fn set_weight(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.state.parameters_changed(context, task);
    }

    fn set_cpumask(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.state.parameters_changed(context, task);
    }

    /// Where the fragment's home is elsewhere, the task moves before it goes on; else it changes its
    /// entity where it is.
    fn set_fragment(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        fragment: Option<Fragment>,
    ) {
        let (state, here) = (&mut self.state, context.cpu());
        state.charge(context, task);
        state.follow(context, task, fragment, here);
        let entity = state.entity_for(context.task(task), here);
        if state.serves(here, entity) {
            state.change_entity(context, task);
        } else {
            context.reschedule(here);
        }
    }

    fn exit(&mut self, context: &mut Context<'_>, task: TaskId) {
        let now = ns(context);
        self.state.enter(task, None, now);
    }
}

impl State {
    /// The weight or the affinity of a task has changed.
    fn parameters_changed(&mut self, context: &mut Context<'_>, task: TaskId) {
        let view = context.task(task);
        self.tasks[task.index()].only = self.topology.only_cpu(view);
        if self.tasks[task.index()].queued {
            self.requeue(context, task);
        } else if let Some(cpu) = self.tasks[task.index()].on {
            context.reschedule(cpu);
        }
    }

    /// What a task may do has changed while it waits: it waits where it belongs now.
    fn requeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.unqueue(context, task);
        let view = context.task(task);
        let last = view.last_cpu();
        let cpu = match view.may_run_on(last) {
            true => last,
            false => self.topology.first_cpu(view).unwrap_or(last),
        };
        self.settle(context, task, cpu, Coming::Awake);
        self.queue(context, task);
        self.kick_idle(context, task, cpu);
    }

    /// A running task goes on here, as a member of another entity.
    fn change_entity(&mut self, context: &mut Context<'_>, task: TaskId) {
        let here = context.cpu();
        self.stop(task);
        self.settle(context, task, here, Coming::Awake);
        let entity = self.tasks[task.index()].entity;
        self.tasks[task.index()].on = Some(here);
        self.cpus[here.index()].running = Some(task);
        if let Some(group) = entity.and_then(|entity| self.group_of_entity(entity)) {
            self.groups[group].running += 1;
        }
        self.cpus[here.index()].batch = entity;
        self.cpus[here.index()].batch_used = 0;
    }
}
