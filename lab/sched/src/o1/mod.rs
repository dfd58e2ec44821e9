//! The O(1) scheduler of Linux 2.6.16, and of 2.6.4 (release.rs says what differs).
//!
//! Purpose: the scheduler of the starvation paper. Each CPU has a run queue with two priority
//! arrays, *active* and *expired*. A CPU runs the first task of the best list of the active array.
//! A task that has used up its slice gets a new one and goes to the expired array; when the active
//! array is empty, the two are swapped. So no decision looks at more than one task.
//!
//! A task's priority is its nice value plus a bonus of -5 to +5 for sleeping. `sleep_avg` grows by
//! a sleep, more so while it is low, and shrinks by running, less so while it is high. A task with
//! enough bonus is *interactive*: with its slice used up, it goes back to the active array, and
//! runs again before everybody in the expired one. That ends when the expired tasks have waited for
//! a second for each runnable task (the starvation clock), or when one of them has a better nice
//! value.
//!
//! It does badly where a task sleeps often and briefly. Each sleep is credited with up to ten times
//! its length, and on the clock of jiffies, which most i386 kernels have, a sleep of microseconds
//! with a tick in it counts as a whole jiffy. A receiver of packets so keeps the greatest bonus
//! while it uses half of the CPU or more: it preempts whatever computes at each packet, its slices
//! end in the active array, and the others starve until the starvation clock lets them go on.
//!
//! Different from 2.6.16:
//! - Two levels of balancing domains: the threads of a core, and all CPUs. NUMA nodes have a level
//!   of their own there, and a hyperthread is kept idle beside a task of a much better nice value
//!   (`dependent_sleeper()`).
//! - Balancing follows the tick in a softirq; in 2.6.16 the handler of the tick balances itself.
//! - No migration thread preempts a CPU from which its running task is to be pushed: the CPU picks
//!   another task, and moves the first one once it has left.
//! - Clocks of all CPUs agree, so that none is corrected at a remote wakeup or a migration.
//! - The first tasks of a run have a whole slice and no `sleep_avg`. A process that is created with
//!   another nice value or policy than its parent's is queued like a thread.
//! - `exec()` balances the first tasks only, since programs of the laboratory do not call it.
//! - Freezing is the only uninterruptible sleep: the laboratory has no disk.

mod arrays;
mod balance;
mod base;
#[cfg(test)]
mod checked;
mod clock;
mod credit;
mod domains;
mod fork;
mod interactive_credit;
mod links;
mod local;
mod migrate;
mod parameters;
mod pick;
mod queue;
mod queue_lengths;
mod release;
mod rules;
mod settings;
mod statistics;
mod task;
mod tick;
mod wakeup;

use warmq_config::Chosen;
use warmq_kernel::{Attach, Balance, Callback, Context, Pick, Scheduler, UnknownCost, Why};
use warmq_machine::Access;
use warmq_units::{Address, CpuId, Cycles, LockId, TaskId};

use crate::affinity::Steering;
use crate::fair::domains::{OF_2_6_16, domains};

use self::clock::Clock;
use self::queue::RunQueue;
pub(crate) use self::release::Release;
use self::rules::Rules;
use self::settings::Options;
pub(crate) use self::settings::{of_2_6_4, settings};
pub(crate) use self::statistics::STATISTICS;
use self::task::TaskState;

/// The scheduler.
pub(crate) struct O1 {
    rules: Rules,
    options: Options,
    clock: Clock,
    queues: Vec<RunQueue>,
    tasks: Vec<TaskState>,
    /// Structures of tasks that have exited.
    freed: Vec<Address>,
    /// The other CPUs of each CPU's core.
    siblings: Vec<Vec<CpuId>>,
    /// What a layer of affinity wants, if there is one.
    steering: Steering,
    /// `schedule()` without memory accesses, and the same of `try_to_wake_up()`.
    schedule_cost: Cycles,
    wakeup_cost: Cycles,
}

impl O1 {
    pub(crate) fn new(
        release: Release,
        chosen: &Chosen,
        attach: &mut Attach<'_>,
    ) -> Result<O1, UnknownCost> {
        let options = Options::new(release, chosen);
        let rules = Rules {
            interactive_delta: options.interactive_delta,
            ..Rules::new(options.release, attach.tick())
        };
        let cpus = || (0..attach.cpus()).map(CpuId);
        let siblings = |cpu: CpuId| {
            let core = attach.place(cpu).core;
            let others = cpus().filter(|other| *other != cpu);
            others
                .filter(|other| attach.place(*other).core == core)
                .collect()
        };
        let siblings = cpus().map(siblings).collect();
        let all = attach.cpus();
        let last = |cpu| balance::first_balance(&rules, cpu, all);
        let domains = |cpu| domains(attach, cpu, OF_2_6_16, last(cpu));
        let domains: Vec<_> = cpus().map(domains).collect();
        let queue = |domains| RunQueue::new(attach, domains);
        let queues = domains.into_iter().map(queue).collect();
        Ok(O1 {
            rules,
            options,
            clock: Clock::new(options.clock, attach.tick(), attach.cpus()),
            queues,
            tasks: Vec::new(),
            freed: Vec::new(),
            siblings,
            steering: Steering::default(),
            schedule_cost: attach.cost("schedule_fixed")?,
            wakeup_cost: attach.cost("wakeup")?,
        })
    }

    fn queue(&self, cpu: CpuId) -> &RunQueue {
        &self.queues[cpu.index()]
    }

    fn queue_mut(&mut self, cpu: CpuId) -> &mut RunQueue {
        &mut self.queues[cpu.index()]
    }

    fn task(&self, task: TaskId) -> &TaskState {
        &self.tasks[task.index()]
    }

    fn task_mut(&mut self, task: TaskId) -> &mut TaskState {
        &mut self.tasks[task.index()]
    }

    /// What `sched_clock()` reads, in ns.
    fn now(&self, context: &Context<'_>) -> u64 {
        self.clock.read(context.now())
    }
}

impl Scheduler for O1 {
    fn lock_for(&self, cpu: CpuId) -> LockId {
        self.queue(cpu).lock
    }

    fn queues(&self, callback: Callback<'_>, cpu: CpuId) -> [Option<CpuId>; 2] {
        match callback {
            Callback::Enqueue | Callback::PickNext | Callback::Tick | Callback::YieldTask => {
                [Some(cpu), None]
            }
            Callback::PutPrev => [Some(cpu), self.queue(cpu).gives_to()],
            Callback::SetWeight(view) => [Some(self.task(view.id()).cpu), None],
            Callback::SetCpumask(view) => {
                let from = self.task(view.id()).cpu;
                [
                    Some(from),
                    Some(view.allowed_near(self.queues.len() as u16, from)),
                ]
            }
            Callback::Pull { from } => [Some(cpu), Some(from)],
        }
    }

    fn fork(&mut self, context: &mut Context<'_>, parent: Option<TaskId>, child: TaskId) {
        self.admit(context, child);
        self.share_with_child(context, parent, child);
    }

    fn select_cpu(&mut self, context: &mut Context<'_>, task: TaskId, why: Why) -> CpuId {
        match why {
            Why::Fork => context.allowed_near(task, context.task(task).last_cpu()),
            Why::Wakeup(wakeup) => self.place(context, task, &wakeup),
        }
    }

    fn exec_cpu(&mut self, context: &mut Context<'_>, task: TaskId) -> CpuId {
        match self.rules.release {
            // It balances at exec only between NUMA nodes.
            Release::V2_6_4 => self.select_cpu(context, task, Why::Fork),
            Release::V2_6_16 => self.idlest(context, task),
        }
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why) {
        context.compute(self.wakeup_cost);
        context.touch(self.task(task).state_line(), Access::Write);
        let there = context.task(task).on_cpu();
        let state = self.task_mut(task);
        state.cpu = cpu;
        state.displaced = there.is_some_and(|there| there != cpu);
        match why {
            Why::Fork => self.activate_new(context, task),
            Why::Wakeup(wakeup) => self.activate(context, task, &wakeup),
        }
    }

    fn wakeup_preempt(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why) {
        match why {
            Why::Fork => self.preempt_for_new(context, task, cpu),
            Why::Wakeup(wakeup) if self.may_preempt(&wakeup, cpu, context.cpu()) => {
                self.preempt(context, task);
            }
            Why::Wakeup(_) => {}
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.remove(context, task);
    }

    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        context.compute(self.schedule_cost);
        self.pick(context, prev)
    }

    fn wants_put_prev(&self, prev: TaskId) -> bool {
        let state = self.task(prev);
        state.displaced || self.queue(state.cpu).gives_to().is_some()
    }

    fn put_prev(&mut self, context: &mut Context<'_>, prev: TaskId) {
        self.task_mut(prev).displaced = false;
        self.leave_forbidden(context, prev);
        match self.queue_mut(context.cpu()).leaving.take() {
            Some((task, to)) => self.hand_over(context, task, to),
            None => self.push(context),
        }
    }

    fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>) {
        let (here, now) = (context.cpu(), self.now(context));
        self.queue_mut(here).ticked_at = now;
        if let Some(running) = running {
            self.charge_tick(context, running);
        }
        match self.rules.release {
            Release::V2_6_4 => self.look_at_tick(context, running.is_none()),
            Release::V2_6_16 => self.rebalance_tick(context, running.is_none()),
        }
    }

    fn yield_task(&mut self, context: &mut Context<'_>, task: TaskId) -> bool {
        self.expire_yielding(context, task);
        true
    }

    fn set_weight(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.parameters_changed(context, task);
    }

    fn set_cpumask(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.leave_forbidden(context, task);
    }

    fn cpu_offline(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        self.vacate(context, cpu);
    }

    fn balance(&mut self, context: &mut Context<'_>, when: Balance) -> Option<CpuId> {
        match self.rules.release {
            Release::V2_6_4 => self.longest_queue(context, when),
            Release::V2_6_16 => self.find_busiest(context, when),
        }
    }

    fn pull(&mut self, context: &mut Context<'_>, from: CpuId, when: Balance) {
        match self.rules.release {
            Release::V2_6_4 => self.pull_by_length(context, from, when),
            Release::V2_6_16 => self.pull_tasks(context, from, when),
        }
    }

    fn exit(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.return_to_parent(context, task);
    }
}
