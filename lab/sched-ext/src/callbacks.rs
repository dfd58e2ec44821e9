//! The kernel's part of sched_ext as a scheduler of the lab.

use warmq_classes::{Joining, Overload};
use warmq_kernel::{Callback, Context, Fragment, GroupId, Pick, Scheduler, Why};
use warmq_units::{CpuId, Duration, Instant, LockId, TaskId};

use crate::events::Events;
use crate::execution::at_once;
use crate::ground::Ground;
use crate::load::Loaded;
use crate::profile::{Hint, Run};
use crate::realtime::{SERVER_TIMER, replenished};
use crate::run_queue::{Machine, RunQueue};
use crate::tracing::Event;
use crate::words::{deq, ops, wake};

/// A compiled scheduler that is attached to a machine.
pub struct SchedExt {
    pub(crate) machine: Machine,
    /// What it takes to attach it once more.
    pub(crate) ground: Ground,
    pub(crate) loaded: Loaded,
    pub(crate) seed: u64,
    /// `ops.init` has run.
    pub(crate) begun: bool,
    pub(crate) runs: Vec<Run>,
    pub(crate) hint: Option<Hint>,
    /// The CPU that its loader's thread is bound to.
    pub(crate) loader: Option<CpuId>,
    /// The longest that a task may wait (`timeout_ms`), and when that was last looked at.
    pub(crate) timeout: Duration,
    pub(crate) watched: Instant,
    /// What its counters had counted when it was last started anew.
    pub(crate) counted: Vec<u64>,
}

impl SchedExt {
    /// What each of its counters has counted.
    pub(crate) fn counts(&self) -> Vec<u64> {
        let counters = self.loaded.counters.iter().enumerate();
        let before = |at: usize| self.counted.get(at).copied().unwrap_or(0);
        let now = |counter| self.machine.guest.counted(counter);
        counters
            .map(|(at, counter)| before(at).wrapping_add(now(counter)))
            .collect()
    }

    /// Runs what runs before the first task: `ops.init`, and the callbacks of cgroups.
    pub(crate) fn begin(&mut self, context: &mut Context<'_>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let machine = &mut self.machine;
        machine.state.bound_to = self.loader;
        self.loader_runs(context, false);
        let machine = &mut self.machine;
        let init = machine.code.callbacks.init;
        let returned = machine.here(context).call_for_free(init, &[]);
        if let Some(error) = returned
            .map(|value| value as i32)
            .filter(|value| *value < 0)
        {
            let text = format!("ops.init() failed ({error})");
            machine.here(context).eject(text);
        }
        machine.here(context).send_kicks();
        machine.know(context, GroupId::ROOT);
        self.loader_runs(context, true);
        self.machine.state.bound_to = None;
    }

    /// Runs the programs that the loader runs, in no time.
    fn loader_runs(&mut self, context: &mut Context<'_>, after: bool) {
        for run in self.runs.clone() {
            if run.after == after {
                self.loader_run(context, &run);
            }
        }
    }

    fn loader_run(&mut self, context: &mut Context<'_>, run: &Run) {
        let mut argument = run.argument.clone();
        if let Some(mask) = &run.mask {
            let mut place = vec![0; 8];
            self.loader_calls(context, "arena_alloc_mask", &mut place);
            self.machine.write_words(&place, mask);
            argument[..8].copy_from_slice(&place);
        }
        self.loader_calls(context, &run.program, &mut argument);
    }

    /// Runs a program of kind syscall, which may change its argument. Loaders give up if it does
    /// not return 0.
    fn loader_calls(&mut self, context: &mut Context<'_>, program: &str, argument: &mut [u8]) {
        let why = match self.machine.call_syscall(context, program, argument) {
            None => format!("its loader runs {program}, which is not there"),
            Some(Some(error)) if error != 0 => {
                format!("{program}, which its loader runs, returned {error}")
            }
            Some(_) => return,
        };
        self.machine.here(context).eject(why);
    }

    /// Hands an ejection over to the lab, which ends the run.
    fn report(&self, context: &mut Context<'_>) {
        if let Some(why) = &self.machine.state.ejected {
            context.eject(why);
        }
    }

    /// What is to be done after callbacks: kicks, queues to enqueue again, an ejection.
    fn finish(&mut self, context: &mut Context<'_>) {
        at_once(self.machine.on(context).reenqueue());
        self.machine.tell_migrations(context);
        let mut here = self.machine.here(context);
        here.send_kicks();
        here.arm_servers();
        if std::mem::take(&mut self.machine.state.restarts) {
            self.restart(context);
        }
        self.report(context);
    }

    /// Ejects the program if a task has waited for longer than it allows
    /// (`check_rq_for_timeouts()`).
    fn watch(&mut self, context: &mut Context<'_>) {
        let now = context.now();
        if now.since(self.watched).0 < self.timeout.0 / 2 {
            return;
        }
        self.watched = now;
        let tasks = self.machine.state.tasks.iter().enumerate();
        let waited = |since: Instant| now.since(since);
        let mut waits = tasks.filter_map(|(at, task)| Some((at, waited(task.waits_since?))));
        if let Some((at, waited)) = waits.find(|(_, waited)| *waited > self.timeout) {
            let text = format!(
                "task {at} failed to run for {}.{:03} s",
                waited.as_us() / 1_000_000,
                waited.as_us() / 1_000 % 1_000
            );
            self.machine.here(context).eject(text);
        }
    }
}

impl Scheduler for SchedExt {
    fn lock_for(&self, cpu: CpuId) -> LockId {
        self.machine.state.cpu(cpu).lock
    }

    /// A change of attributes takes the task off its run queue, under that queue's lock, as ticks
    /// and yields are under theirs.
    fn queues(&self, callback: Callback<'_>, cpu: CpuId) -> [Option<CpuId>; 2] {
        match callback {
            Callback::Pull { from } => [Some(cpu), Some(from)],
            _ => [Some(cpu), None],
        }
    }

    fn fork(&mut self, context: &mut Context<'_>, parent: Option<TaskId>, child: TaskId) {
        self.begin(context);
        self.machine.init_task(context, parent, child);
        self.machine.happens(context, Event::Fork(parent, child));
        self.finish(context);
    }

    fn select_cpu(&mut self, context: &mut Context<'_>, task: TaskId, why: Why) -> CpuId {
        if let Why::Wakeup(_) = why {
            self.machine.happens(context, Event::Waking(task));
        }
        if self.machine.is_urgent(task) {
            let last = context.task(task).last_cpu();
            let last = self.machine.allowed_near(context, task, last);
            return self.machine.select_urgent(context, task, last);
        }
        let wakes = match why {
            Why::Fork => wake::FORK,
            Why::Wakeup(wakeup) if wakeup.sync => wake::WAKEUP | wake::SYNC,
            Why::Wakeup(_) => wake::WAKEUP,
        };
        let cpu = at_once(self.machine.on(context).select(task, wakes));
        self.finish(context);
        cpu
    }

    /// At exec the program is not asked (`WF_EXEC` in `select_task_rq_scx()`).
    fn exec_cpu(&mut self, context: &mut Context<'_>, task: TaskId) -> CpuId {
        self.machine.happens(context, Event::Exec(task));
        let last = context.task(task).last_cpu();
        self.machine.allowed_near(context, task, last)
    }

    fn leaves_wakeup(&mut self, context: &mut Context<'_>, _: TaskId, target: CpuId) -> bool {
        let allowed = self.machine.state.flags & ops::ALLOW_QUEUED_WAKEUP != 0;
        let cache = |cpu: CpuId| self.machine.state.idle.shares_cache(cpu, context.cpu());
        allowed && !cache(target)
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why) {
        context.compute(self.machine.state.costs.wakeup);
        let flags = match why {
            Why::Fork => 0,
            Why::Wakeup(_) => self.machine.state.enq.wakeup,
        };
        match self.machine.is_urgent(task) {
            true => {
                let mut here = self.machine.here(context);
                here.join_urgent(task, cpu, Joining::Woken);
            }
            false => at_once(self.machine.on(context).activate(task, cpu, flags)),
        }
        let event = match why {
            Why::Fork => Event::WakeupNew(task),
            Why::Wakeup(_) => Event::Wakeup(task),
        };
        self.machine.happens(context, event);
        self.finish(context);
    }

    /// A CPU that idles picks again whenever a task comes onto its run queue.
    fn wakeup_preempt(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, _: Why) {
        if context.running_on(cpu).is_none() {
            context.reschedule(cpu);
        } else if self.machine.is_urgent(task) {
            self.machine.here(context).preempt_for(task, cpu);
            self.machine.push_woken(context, task, cpu);
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        if self.machine.is_urgent(task) {
            return self.machine.dequeue_urgent(context, task);
        }
        at_once(self.machine.on(context).dequeue(task, deq::SLEEP));
        self.report(context);
    }

    fn pick_next(&mut self, context: &mut Context<'_>, previous: Option<TaskId>) -> Pick {
        let pick = self.machine.pick_of_all(context, previous);
        let next = match pick {
            Pick::Task(task) => Some(task),
            _ => None,
        };
        if next != previous {
            self.machine.happens(context, Event::Switch(previous, next));
        }
        at_once(self.machine.on(context).reenqueue());
        self.machine.tell_migrations(context);
        self.report(context);
        pick
    }

    fn switched(&mut self, context: &mut Context<'_>, _: Option<TaskId>, next: Option<TaskId>) {
        if next.is_some_and(|task| self.machine.is_urgent(task)) {
            self.machine.push_urgent(context, context.cpu());
        }
    }

    fn keeps_waiting(&mut self, context: &mut Context<'_>) -> bool {
        let cpu = context.cpu();
        let waits = self.machine.here(context).keeps_waiting(cpu);
        self.report(context);
        waits
    }

    fn wants_put_prev(&self, previous: TaskId) -> bool {
        let mut leaving = self.machine.state.leaving.iter();
        leaving.any(|(task, _)| *task == previous)
    }

    fn put_prev(&mut self, context: &mut Context<'_>, previous: TaskId) {
        if self.machine.is_urgent(previous) {
            let cpu = context.cpu();
            if !context.task(previous).may_run_on(cpu) {
                self.machine.move_urgent(context, previous);
            }
            return;
        }
        self.machine.has_left(context, previous);
    }

    fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>) {
        if context.cpu() == CpuId(0) {
            self.watch(context);
        }
        let cpu = context.cpu();
        let current = self.machine.state.runs(cpu);
        if let Some(task) = running.filter(|task| current == Some(*task)) {
            match self.machine.is_urgent(task) {
                true => self.machine.tick_urgent(context, task),
                false => at_once(self.machine.on(context).tick(task)),
            }
        }
        self.machine.happens(context, Event::Tick);
        self.finish(context);
    }

    fn yield_task(&mut self, context: &mut Context<'_>, task: TaskId) -> bool {
        match self.machine.is_urgent(task) {
            true => self.machine.yield_urgent(context, task),
            false => at_once(self.machine.on(context).yields(task)),
        }
        self.finish(context);
        true
    }

    fn set_weight(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.machine.policy_changed(context, task);
        self.finish(context);
    }

    fn set_cpumask(&mut self, context: &mut Context<'_>, task: TaskId) {
        if self.machine.is_urgent(task) {
            self.machine.affinity_of_urgent(context, task);
            return self.finish(context);
        }
        at_once(self.machine.on(context).set_affinity(task, |_| {}));
        self.finish(context);
    }

    fn cpu_offline(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        self.machine.offline(context, cpu);
        self.machine.stop_server(cpu);
        self.finish(context);
    }

    fn timer(&mut self, context: &mut Context<'_>, token: u64) {
        match token {
            SERVER_TIMER => self.machine.server_is_due(context),
            timer => match replenished(timer) {
                Some(task) => self.machine.replenish(context, task),
                None => at_once(self.machine.on(context).timer(timer)),
            },
        }
        self.finish(context);
    }

    fn set_group_weight(&mut self, context: &mut Context<'_>, group: GroupId) {
        at_once(self.machine.on(context).group_changed(group));
        self.finish(context);
    }

    fn set_fragment(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        fragment: Option<Fragment>,
    ) {
        let value = fragment.map_or(0, |fragment| {
            (u64::from(fragment.app) << 32 | u64::from(fragment.number)) + 1
        });
        if let Some(hint) = &self.hint
            && at_once(self.machine.on(context).hears(hint, value))
        {
            self.yield_task(context, task);
            context.reschedule(context.cpu());
        }
        self.finish(context);
    }

    fn counted(&self) -> Vec<(String, u64)> {
        let names = self.loaded.counters.iter();
        let names = names.map(|counter| counter.name.clone());
        names.zip(self.counts()).collect()
    }

    /// It is dequeued and enqueued once more while it runs, and its CPU picks again: who has used
    /// up its slice gives way here (`sched_move_task()`).
    fn leave_autogroup(&mut self, context: &mut Context<'_>, task: TaskId) {
        if !self.machine.is_urgent(task) {
            at_once(self.machine.on(context).leave_autogroup(task));
        }
        context.reschedule(context.cpu());
        self.finish(context);
    }

    fn exit(&mut self, context: &mut Context<'_>, task: TaskId) {
        if self.machine.state.task(task).address != 0 {
            self.machine.happens(context, Event::Exit(task));
        }
        self.machine.exit_task(context, task);
        self.finish(context);
    }
}
