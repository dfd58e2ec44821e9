//! EEVDF: the fair scheduler of Linux 6.6 to 7.3 (Earliest Eligible Virtual Deadline First).
//!
//! Purpose: what users run today, so that the laboratory can say where it does badly. Each CPU has
//! a queue for each task group, and a group is an entity with a weight in the queue above. Running
//! for t moves an entity's vruntime by t / weight. The average of a queue is V; an entity whose
//! vruntime is not after V is owed time and is *eligible*. Of the eligible entities the one with
//! the earliest virtual deadline runs, which is its vruntime when its slice began, and the slice by
//! its weight; it keeps the CPU for the slice. What an entity is owed or owes when it leaves, its
//! lag, it has again when it comes back; from 6.12 on, whoever sleeps while owing stays queued
//! until that is paid.
//!
//! It does badly
//! - from 6.13 to 7.0, where a group's tasks sleep and wake often: each change of the group's
//!   weight multiplies its lag while it runs, and a group beside it gets nothing (`reweight`);
//! - where a slice ends only with a tick: up to 7.0 two hogs take turns of 4 ms at HZ 250, not of a
//!   slice;
//! - under lazy preemption, where another CPU wakes a task beside a hog: it waits for the hog's
//!   next interrupt, up to a tick;
//! - where a receiver is owed nothing: it waits for a slice, as it preempts only whoever owes time.
//!
//! Different from the kernels:
//! - Time in interrupts is charged to who runs, as in Debian's kernels.
//! - The averages of a task that moves in its sleep leave its group's queue at once; in the kernel,
//!   when that is next looked at.
//! - Balancing looks for what it can pull before it takes locks, and pushes a task without a
//!   migration thread of its own (docs/fidelity/balancing.md). Preferred nodes are unknown to it.
//! - Newly idle CPUs draw from the clock whether to look.
//! - No core scheduling, uclamp, energy model.
//! - Balancing at exec is modelled for the first tasks only: the programs of scenarios call none.
//! - Costs besides memory accesses are those of `linux-6.18`; of `linux-2.4` on a machine that has
//!   only these; and those of `linux-6.18` on `epyc-12llc` where a machine has neither, as `host`.

mod account;
mod active;
mod asym;
mod balance;
mod base;
#[cfg(test)]
mod bench;
mod busiest;
mod cache_aware;
#[cfg(test)]
mod cases;
mod change;
mod deadline;
mod detach;
mod domains;
mod effects;
mod fits;
mod flat;
mod fork;
mod groups;
mod idle;
mod lags;
mod load;
mod newidle;
mod pelt;
mod pick;
mod place;
#[cfg(test)]
mod properties;
mod protect;
mod queueing;
mod reweight;
mod rules;
mod select;
mod server;
mod settings;
mod standing;
mod state;
mod throttle;
mod tick;
mod urgent;
mod util_est;
mod virtual_time;
mod wake_list;
mod wakeup;
mod weights;

use warmq_config::Chosen;
use warmq_kernel::{
    Alarm, Attach, Balance, Callback, Context, Fragment, GroupId, Pick, Scheduler, UnknownCost,
    View, Waiting, Why,
};
use warmq_units::{Bytes, CpuId, Cycles, Instant, LockId, TaskId};

use crate::affinity::Steering;
use warmq_classes::{Overload, Urgent};

use self::cache_aware::CacheAware;
use self::deadline::{PERIOD_TIMER, SERVER_TIMER, SLICE_TIMER};
use self::domains::{are_clustered, domains};
use self::effects::Effects;
use self::idle::Nohz;
use self::queueing::Leaving;
use self::settings::Rules;
pub(crate) use self::settings::{Version, settings};
use self::state::{CpuState, Queue, State};
use self::wakeup::Woken;

/// The scheduler.
pub(crate) struct Eevdf {
    state: State,
    pick_cost: Cycles,
    wakeup_cost: Cycles,
    /// A task has left its queue in a `schedule()` whose pick follows.
    scheduling: bool,
}

impl Eevdf {
    pub(crate) fn new(chosen: &Chosen, attach: &mut Attach<'_>) -> Result<Eevdf, UnknownCost> {
        Ok(Eevdf {
            state: State::attach(attach, chosen)?,
            pick_cost: attach.cost("schedule_fixed")?,
            wakeup_cost: attach.cost("wakeup")?,
            scheduling: false,
        })
    }
}

impl State {
    fn attach(attach: &mut Attach<'_>, chosen: &Chosen) -> Result<State, UnknownCost> {
        let (line, cpus, tick) = (attach.line(), attach.cpus(), attach.tick().as_ns());
        let rules = Rules::new(chosen, cpus, tick);
        let (domains, capacities) = domains(attach);
        let mut state = State {
            cpus: Vec::new(),
            queues: Vec::new(),
            entities: Vec::new(),
            tasks: Vec::new(),
            groups: Vec::new(),
            clustered: domains.iter().any(|domains| are_clustered(domains)),
            unlike: domains
                .iter()
                .flatten()
                .any(|domain| domain.capacities.is_any()),
            capacities,
            nodes_balanced_until: Instant::START,
            nohz: Nohz::default(),
            stop_cost: Cycles(2 * attach.cost("context_switch")?.0),
            resting: (0..cpus).map(CpuId).collect(),
            overloaded: false,
            effects: Effects::new(attach.wants_details()),
            cache_aware: CacheAware::attach(attach, chosen),
            timers: Vec::new(),
            servers: Vec::new(),
            deadlines: Vec::new(),
            period_ends: None,
            period_timer: Alarm::default(),
            hrtick_cost: attach.cost("hrtick_start")?,
            steering: Steering::default(),
            line,
            round_robin: Urgent::slice(tick),
            rules,
        };
        for (cpu, domains) in (0..cpus).map(CpuId).zip(domains) {
            state.queues.push(Queue::new(cpu, attach.data(Bytes(line))));
            let (lock, root) = (attach.lock("rq_lock"), state.queues.len() - 1);
            state.cpus.push(CpuState {
                average_idle: 2 * state.rules.migration_cost,
                most_idle_cost: state.rules.migration_cost,
                priority: attach.priority(cpu),
                whole: attach.capacity(cpu),
                capacity: attach.capacity(cpu),
                domains,
                ..CpuState::new(
                    lock,
                    root,
                    attach.data(Bytes(line)),
                    state.rules.fair_server,
                )
            });
        }
        for cpu in (0..cpus).map(CpuId) {
            state.cpu_mut(cpu).scanned = state.scanned_span(cpu).len();
        }
        Ok(state)
    }

    /// Brings the clock of `cpu` up to date (`update_rq_clock()`).
    fn sync(&mut self, context: &Context<'_>, cpu: CpuId) {
        let now = (context.now() - Instant::START).as_ns() as i64;
        self.advance_to(cpu, now);
    }

    /// The clock of `cpu` is `now`, unless it was beyond that.
    fn advance_to(&mut self, cpu: CpuId, now: i64) {
        let there = self.cpu_mut(cpu);
        let passed = (now - there.clock).max(0);
        there.clock += passed;
        match there.current {
            None => there.pace.catches_up(),
            Some(_) => there.pace.runs(passed, there.whole),
        }
    }

    /// Brings the clock of `cpu`, which is in `schedule()`, up to date, unless that was just done.
    fn sync_to_schedule(&mut self, context: &Context<'_>, cpu: CpuId) {
        if !std::mem::take(&mut self.cpu_mut(cpu).keeps_clock) {
            self.sync(context, cpu);
        }
    }

    /// The clock of `cpu` was just read, and it is about to pick again: it is not read then
    /// (`rq_clock_skip_update()`). What passes until the switch is charged to whoever is picked.
    fn keep_clock(&mut self, cpu: CpuId) {
        self.cpu_mut(cpu).keeps_clock = self.rules.clock_skip;
    }

    /// Makes happen what has been decided.
    fn settle(&mut self, context: &mut Context<'_>) {
        self.effects.apply(context);
        while let Some((cpu, span)) = self.timers.pop() {
            self.arm_hrtick(context, cpu, span);
        }
        while let Some(cpu) = self.servers.pop() {
            self.arm_server(context, cpu);
        }
        while let Some(task) = self.deadlines.pop() {
            self.arm_replenishment(context, task);
        }
        let here = context.cpu();
        self.period_timer
            .set(context, self.period_ends, (here, PERIOD_TIMER));
    }

    /// The task that `here` runs next. One that may not stay, or is pushed elsewhere, leaves first.
    fn pick(&mut self, context: &mut Context<'_>) -> Option<TaskId> {
        let here = context.cpu();
        let prev = self.cpu(here).current;
        if let Some(prev) = prev {
            self.send_away(context, prev);
            if !self.is_queued(prev) {
                self.pull_urgent(context, here, self.task(prev).class.rank());
            }
        }
        self.cpu_mut(here).push_to = None;
        let next = self.pick_served(here).or_else(|| {
            let mut urgent = self.cpu(here).urgent.iter();
            urgent.find(|task| context.task(*task).may_run_on(here) && !self.is_throttled(*task))
        });
        let next = next.or_else(|| self.pick_fair(here));
        self.turn_to(here, next);
        if let Some(next) = next.filter(|_| next != prev) {
            self.note_misfit_of_fair(context, here, next);
        }
        self.record_lags(self.cpu(here).root);
        self.effects.has_picked(here);
        let turn = next.and_then(|_| self.left_of_turn(here));
        let turn = turn.filter(|left| *left >= 0);
        self.cpu_mut(here).hrtick_after_switch = turn.filter(|_| next != prev);
        if next == prev && self.rules.hrtick_again {
            self.timers.extend(turn.map(|left| (here, left)));
        }
        next
    }

    /// If the running task may not stay here, or is to be pushed elsewhere, it leaves the queue;
    /// when this CPU has switched away from it, it joins another.
    fn send_away(&mut self, context: &mut Context<'_>, current: TaskId) {
        let here = context.cpu();
        if !self.task(current).runnable {
            return;
        }
        let view = context.task(current);
        let to = match view.may_run_on(here) {
            true => self.cpu(here).push_to.filter(|to| view.may_run_on(*to)),
            false => Some(context.allowed_near(current, here)),
        };
        let Some(to) = to.filter(|to| *to != here) else {
            return;
        };
        self.deactivate(current, Leaving::Moves);
        self.displace(current, here, to);
    }

    /// `task` is to be queued on `to` when `from` has switched away from it.
    fn displace(&mut self, task: TaskId, from: CpuId, to: CpuId) {
        self.task_mut(task).displaced = Some(to);
        self.cpu_mut(from).leaving = Some(to);
    }
}

impl Scheduler for Eevdf {
    fn lock_for(&self, cpu: CpuId) -> LockId {
        self.state.cpu(cpu).lock
    }

    fn queues(&self, callback: Callback<'_>, cpu: CpuId) -> [Option<CpuId>; 2] {
        let of = |view: View<'_>| Some(self.state.tasks.get(view.id().index())?.cpu);
        match callback {
            Callback::Enqueue | Callback::PickNext | Callback::Tick | Callback::YieldTask => {
                [Some(cpu), None]
            }
            Callback::PutPrev => [Some(cpu), self.state.cpu(cpu).leaving],
            Callback::SetWeight(view) => [of(view), None],
            Callback::SetCpumask(view) => {
                let mut cpus = (0..self.state.cpus.len() as u16).map(CpuId);
                [of(view), cpus.find(|cpu| view.may_run_on(*cpu))]
            }
            Callback::Pull { from } => {
                let pull = self.state.cpu(cpu).pull.as_ref();
                [Some(pull.map_or(cpu, |pull| pull.to)), Some(from)]
            }
        }
    }

    fn fork(&mut self, context: &mut Context<'_>, _: Option<TaskId>, child: TaskId) {
        self.state.admit(context, child);
        self.state.join_sharers(context, child);
    }

    fn select_cpu(&mut self, context: &mut Context<'_>, task: TaskId, why: Why) -> CpuId {
        self.state.sync(context, context.cpu());
        self.state.select(context, task, why)
    }

    fn leaves_wakeup(&mut self, context: &mut Context<'_>, task: TaskId, target: CpuId) -> bool {
        self.state.leaves_wakeup(context.cpu(), task, target)
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why) {
        context.compute(self.wakeup_cost);
        let state = &mut self.state;
        state.was_left(task);
        state.sync(context, cpu);
        if let Some(there) = context.task(task).on_cpu().filter(|there| *there != cpu) {
            return state.displace(task, there, cpu);
        }
        state.set_cpu(task, cpu);
        state.end_idling(cpu);
        state.activate(task, why == Why::Fork);
        state.settle(context);
    }

    fn wakeup_preempt(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why) {
        let state = &mut self.state;
        if state.task(task).displaced.is_some() {
            return;
        }
        // The clock is that of the enqueue (ttwu_do_activate() updates it once): were the running
        // task charged for the nanoseconds since, it would be ahead of whoever was placed at V.
        let sync = matches!(why, Why::Wakeup(wakeup) if wakeup.sync);
        let unthrottled = matches!(why, Why::Wakeup(wakeup) if wakeup.slept == Waiting::Quota);
        if unthrottled && state.cpu(cpu).current.is_some() {
            // Nobody is preempted by who has quota again (unthrottle_cfs_rq()).
            return state.settle(context);
        }
        let woken = Woken {
            is_new: why == Why::Fork,
            sync,
            selected: true,
        };
        state.check_preempt(cpu, task, woken, context.must_reschedule(cpu));
        if state.is_queued(task) {
            state.push_woken(context, task, cpu);
        }
        state.settle(context);
        let current = state.cpu(cpu).current;
        let queued = current.is_none_or(|task| state.task(task).runnable);
        if queued && context.must_reschedule(cpu) {
            state.keep_clock(cpu);
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = &mut self.state;
        let view = context.task(task);
        // What is frozen with its group sleeps as others do (do_freezer_trap()).
        let special = matches!(view.waits_for(), Some(Waiting::Continue | Waiting::Quota));
        let leaving = match special || view.has_exited() {
            true => Leaving::AtOnce,
            false => Leaving::Sleeps,
        };
        state.sync_to_schedule(context, state.task(task).cpu);
        if state.task(task).runnable {
            state.deactivate(task, leaving);
        }
        self.scheduling = true;
    }

    fn pick_next(&mut self, context: &mut Context<'_>, _: Option<TaskId>) -> Pick {
        let state = &mut self.state;
        // __schedule() updates the clock once, before a task that sleeps leaves its queue.
        if !std::mem::take(&mut self.scheduling) {
            state.sync_to_schedule(context, context.cpu());
        }
        context.compute(self.pick_cost);
        let next = state.pick(context);
        state.settle(context);
        next.map_or(Pick::Idle, Pick::Task)
    }

    fn switched(&mut self, context: &mut Context<'_>, _: Option<TaskId>, next: Option<TaskId>) {
        self.state.switched(context, next);
        self.state.settle(context);
    }

    fn wants_put_prev(&self, prev: TaskId) -> bool {
        self.state.task(prev).displaced.is_some()
    }

    fn put_prev(&mut self, context: &mut Context<'_>, prev: TaskId) {
        let state = &mut self.state;
        state.cpu_mut(context.cpu()).leaving = None;
        if let Some(to) = state.task_mut(prev).displaced.take() {
            let to = context.allowed_near(prev, to);
            state.sync(context, to);
            state.end_idling(to);
            state.arrive(context, prev, to);
        } else {
            state.cpumask_changed(context, prev);
        }
        state.settle(context);
    }

    fn tick(&mut self, context: &mut Context<'_>, _: Option<TaskId>) {
        self.state.sync(context, context.cpu());
        self.state.tick(context);
        self.state.settle(context);
    }

    fn timer(&mut self, context: &mut Context<'_>, token: u64) {
        let here = context.cpu();
        self.state.sync(context, here);
        match token {
            SLICE_TIMER => self.state.slice_is_over(here),
            SERVER_TIMER => self.state.server_is_due(here),
            PERIOD_TIMER => {
                self.state.period_timer.expired();
                self.state.end_period(self.state.cpu(here).clock);
            }
            task => self.state.replenishment_is_due(context, task),
        }
        self.state.settle(context);
    }

    fn yield_task(&mut self, context: &mut Context<'_>, task: TaskId) -> bool {
        let state = &mut self.state;
        let here = context.cpu();
        state.sync(context, here);
        if state.yields(task) {
            state.keep_clock(here);
        }
        state.settle(context);
        true
    }

    fn set_weight(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = &mut self.state;
        state.sync(context, state.task(task).cpu);
        state.parameters_changed(context, task);
        state.settle(context);
    }

    fn set_cpumask(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = &mut self.state;
        state.sync(context, state.task(task).cpu);
        state.cpumask_changed(context, task);
        state.settle(context);
    }

    fn cpu_offline(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        self.state.sync(context, cpu);
        self.state.vacate(context, cpu);
        self.state.stop_server(cpu);
        self.state.cpu_mut(cpu).pass = None;
        self.state.settle(context);
    }

    fn balance(&mut self, context: &mut Context<'_>, when: Balance) -> Option<CpuId> {
        let state = &mut self.state;
        state.sync(context, context.cpu());
        let in_softirq = when != Balance::NewlyIdle;
        let stopped = match in_softirq {
            true => state.stop(context),
            false => None,
        };
        let from = stopped.or_else(|| {
            let here = context.cpu();
            let has_scanned = in_softirq && state.scan_caches(context);
            let there = state.cpu(here);
            let goes_on = there.pass.is_some() || there.kick.is_any();
            let balances = goes_on || state.is_due(here);
            match has_scanned && !balances {
                true => None,
                false => state.look(context, when),
            }
        });
        state.settle(context);
        from
    }

    fn keeps_balancing(&self, cpu: CpuId) -> bool {
        let there = self.state.cpu(cpu);
        there.pass.is_some() || there.pushed.is_some()
    }

    fn pull(&mut self, context: &mut Context<'_>, from: CpuId, _: Balance) {
        let state = &mut self.state;
        state.sync(context, from);
        match state.cpu_mut(context.cpu()).pushed.take() {
            Some((task, to)) => state.push_out(context, task, to),
            None => state.pull_from(context, from),
        }
        state.settle(context);
    }

    fn set_group_weight(&mut self, context: &mut Context<'_>, group: GroupId) {
        self.state.group_changed(context, group);
        self.state.settle(context);
    }

    fn set_fragment(&mut self, context: &mut Context<'_>, task: TaskId, _: Option<Fragment>) {
        self.state.join_sharers(context, task);
    }

    fn exit(&mut self, _: &mut Context<'_>, task: TaskId) {
        self.state.leave_sharers(task);
    }
}
