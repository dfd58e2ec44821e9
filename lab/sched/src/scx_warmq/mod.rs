//! scx_warmq: the sched_ext scheduler of this project, simulated.
//!
//! Purpose: to try the policy where caches can be measured and seeds repeat a run. The decisions
//! (vruntime and lag, slices, preemption, balance) are computed by the BPF program's own header,
//! which `warmq_decide` compiles. The queues are the BPF program's, too: one by deadline for the
//! unmanaged tasks of each last-level cache, one for the tasks that may run on one CPU only, one
//! for each group (the tasks of one fragment). A CPU goes on with its batch, or picks the entity
//! with the least key.
//!
//! Not modelled: labels, and hotplug. Groups by process and by cgroup (`grouping`) the program has
//! not, and inference differs a little (`grouping.rs`).
//!
//! Different from the BPF program:
//! - Callbacks run under the lock of a CPU's run queue, as there. A queue of sched_ext has a lock
//!   besides, held while a task is put in or taken out, and a task that is taken from another CPU's
//!   run queue needs that one's lock: here both cost the lines that they change, and nobody waits
//!   for them.
//! - The balance timer is CPU 0's tick.
//! - `place` is `llc` unless it is set, also where all CPUs share one cache.
//! - Real-time tasks have the largest weight; a real kernel does not give them to sched_ext.
//! - What BPF and sched_ext cost more than the kernel's own class is spread evenly over wakeups and
//!   picks (`bpf`).
//!
//! It does badly where groups are larger than what their home can serve (`place = "cpu"` with many
//! threads per fragment), and where data is shared across fragments.

mod balance;
mod cgroup;
mod change;
mod cores;
mod costs;
mod entity;
mod group;
mod idle;
mod pick;
mod queue;
mod state;
mod topology;
mod wakeup;
mod weight;

use warmq_config::{Chosen, Setting};
use warmq_decide::{self as decide, Policy};
use warmq_kernel::{Attach, Context, Fragment, GroupId, Pick, Scheduler, UnknownCost, Why};
use warmq_machine::Access;
use warmq_units::{CpuId, Duration, LockId, TaskId};

use self::costs::Costs;
use self::state::{State, ns};
use self::topology::PlaceKind;
use crate::grouping::{self, Grouping};

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
            "while few tasks are runnable, each runs once in it; sleeps are counted within it",
        ),
        span(
            "alpha",
            default.alpha,
            any,
            "wakeup granularity for one sleep per second, formula 5-1; 0 turns it off",
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
            "after a shorter sleep a task keeps no lag and does not preempt; 0 turns it off",
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
        costs::setting(),
    ]
    .into_iter()
    .chain(grouping::settings())
    .collect()
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
        let costs = Costs::new(attach, chosen.count("bpf"))?;
        let state = State::new(attach, policy(chosen), kind, costs, Grouping::new(chosen));
        Ok(ScxWarmq { state })
    }
}

impl Scheduler for ScxWarmq {
    fn lock_for(&self, cpu: CpuId) -> LockId {
        self.state.cpus[cpu.index()].lock
    }

    fn fork(&mut self, context: &mut Context<'_>, parent: Option<TaskId>, child: TaskId) {
        self.state.admit(context, parent, child);
        let cpu = context.task(child).last_cpu();
        self.state.regroup(context, child, cpu);
    }

    fn select_cpu(&mut self, context: &mut Context<'_>, task: TaskId, why: Why) -> CpuId {
        self.state.infer(context, task, why);
        self.state.select(context, task, why)
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, _: Why) {
        let state = &mut self.state;
        context.compute(state.costs.wakeup);
        let now = ns(context);
        state.tasks[task.index()].queued_at = cpu;
        let found = state.goes_where_found(context, task, cpu);
        if found && state.is_unmanaged(context, task, cpu) {
            return state.send(context, task, cpu);
        }
        state.begin_period(task, now);
        let coming = state.woken(context, task);
        state.settle(context, task, cpu, coming);
        match found {
            true => state.send(context, task, cpu),
            false => state.queue(context, task),
        }
    }

    fn wakeup_preempt(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, _: Why) {
        let state = &mut self.state;
        if state.tasks[task.index()].sent.is_some() {
            if context.running_on(cpu).is_none() {
                context.reschedule(cpu);
            }
        } else if !state.kick_idle(context, task, cpu) {
            let slept = state.slept(task, ns(context));
            state.preempt(context, task, cpu, slept);
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = &mut self.state;
        state.note_run(context, task);
        state.charge(context, task);
        state.stop(task);
        state.unqueue(context, task);
        state.leave(context, task);
        state.uncount(context, task);
        let now = ns(context);
        let task = &mut state.tasks[task.index()];
        task.slept_at = now;
        task.waits_since = None;
        task.goes_to = None;
        task.sleeps += 1;
        task.expected = decide::expect(task.expected, std::mem::take(&mut task.ran));
    }

    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        self.state.pick(context, prev)
    }

    fn wants_put_prev(&self, _: TaskId) -> bool {
        !self.state.displaced.is_empty()
    }

    fn put_prev(&mut self, context: &mut Context<'_>, prev: TaskId) {
        let state = &mut self.state;
        let Some(asked) = state.displaced.remove(&prev) else {
            return;
        };
        if let Some(cpu) = asked {
            context.reschedule(cpu);
        }
        // Nobody was asked, or the group has moved since, and who took it could not take this task
        // with it yet.
        let comes = asked.is_some_and(|cpu| state.is_for(prev, cpu));
        if !comes && state.tasks[prev.index()].waits() {
            let queued_at = state.tasks[prev.index()].queued_at;
            state.kick_idle(context, prev, queued_at);
        }
    }

    fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>) {
        let state = &mut self.state;
        if context.cpu() == CpuId(0) {
            state.balance(context);
        }
        let Some(running) = running else { return };
        state.count_late(context, running);
        state.charge(context, running);
        state.forgive(context, running);
        let now = ns(context);
        state.begin_period(running, now);
        let here = &mut state.cpus[context.cpu().index()];
        let last = here.ticked_at.replace(now);
        let since = last.map_or(u64::MAX, |last| now.saturating_sub(last));
        here.tick = decide::tick_length(here.tick, since);
        let tick = here.tick;
        let left = state.tasks[running.index()].slice_left(now);
        state.note_deadline(context.cpu(), running, left);
        // It must move before it runs on, or its slice is over.
        let leaves = state.leaves_core(context, running);
        let over = left == 0 || decide::slice_ends(left, tick);
        if leaves || over || state.is_misplaced(context, running) {
            state.tasks[running.index()].slice = 0;
            context.reschedule(context.cpu());
        }
    }

    fn timer(&mut self, context: &mut Context<'_>, _: u64) {
        self.state.watches = false;
        self.state.balance(context);
        if context.running_on(CpuId(0)).is_none() {
            self.state.watch(context);
        }
    }

    fn yield_task(&mut self, context: &mut Context<'_>, task: TaskId) -> bool {
        let task = &mut self.state.tasks[task.index()];
        task.yields = true;
        task.slice = 0;
        context.touch(task.line, Access::Write);
        true
    }

    fn set_weight(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.state.weight_changed(context, task);
    }

    fn set_group_weight(&mut self, context: &mut Context<'_>, group: GroupId) {
        self.state.cgroups.reweighed(context, group);
    }

    fn set_cpumask(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.state.affinity_changed(context, task);
    }

    /// If the fragment's home is elsewhere, the task moves before it runs on; otherwise it changes
    /// its entity when it is next queued, after the next tick at the latest.
    fn set_fragment(&mut self, context: &mut Context<'_>, task: TaskId, _: Option<Fragment>) {
        let (state, here) = (&mut self.state, context.cpu());
        state.follow(context, task, here);
        if state.group_belongs_elsewhere(context.task(task), here) {
            // The library yields.
            let task = &mut state.tasks[task.index()];
            task.yields = true;
            task.slice = 0;
            context.reschedule(here);
        }
    }

    fn exit(&mut self, context: &mut Context<'_>, task: TaskId) {
        let now = ns(context);
        self.state.enter(task, None, now);
        self.state.grouping.exit(task, context.now());
    }
}
