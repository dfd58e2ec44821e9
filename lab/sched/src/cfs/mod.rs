//! CFS: the Completely Fair Scheduler of Linux 2.6.24.
//!
//! Purpose: the scheduler of the starvation thesis' second half, and the ancestor of all that came
//! after. Each CPU has a tree of the tasks that wait, by vruntime: CPU time divided by weight. It
//! runs the leftmost one, for the part of a period that its weight is of all weights, and looks at
//! each tick whether that is over. `min_vruntime` follows the lower of the running and the leftmost
//! task and never falls. A woken task is placed at most one latency behind it, and preempts if it
//! is behind the running one by more than a granularity of CPU time. A new task starts one slice
//! later, and changes places with its parent. With group scheduling, each group is an entity on
//! each CPU, with a tree of its own. Load is the sum of the weights; CPUs pull it from the busiest
//! one in intervals and when they are about to idle.
//!
//! It does badly
//! - beside a task that sleeps often and shortly: the credit of a latency for any sleep lets each
//!   wakeup preempt, if the granularity is less than the latency. A packet receiver so takes half
//!   of the CPU from a hog, with two switches for each time that it sleeps;
//! - where wakeups wait: at the default granularity of 10 ms, a task with no credit left waits
//!   until a slice ends;
//! - where loads differ much: a CPU under whose cache a nice -20 task runs may idle for ever
//!   beside nice 0 tasks that wait under another, as that group has load enough;
//! - where a task changes its group, or was real-time for long: its vruntime is taken as it is into
//!   a tree with another `min_vruntime`, and it starves, or keeps the CPU, until the two have met.
//!
//! Different from the kernel:
//! - A woken task that moves leaves its old queue without that queue's lock.
//! - Balancing looks for what it can pull before it takes locks, pulls in one domain a time, and
//!   pushes a running task without a migration thread.
//! - Domains end with all CPUs: no NUMA nodes, no power saving, and no idle CPU balances for others
//!   whose tick is stopped.
//! - A CPU whose tick is stopped in idle loses that time on its clock, as on a machine whose idle
//!   loop does not report it.
//! - Only the first tasks are balanced as programs that are loaded; no task of a run calls exec.
//! - A domain's interval is at most 100 ms for each CPU that there is, where the kernel counts
//!   those that it was built for.
//! - Costs besides memory accesses are those of `linux-2.4` where a machine has no `linux-2.6.24`.

mod account;
mod balance;
mod base;
#[cfg(test)]
mod checks;
mod clock;
mod groups;
mod load;
mod migrate;
mod pick;
mod place;
mod select;
mod settings;
mod state;
mod tick;
mod wakeup;
mod weights;

use warmq_config::Chosen;
use warmq_kernel::{
    Attach, Balance, Callback, Context, GroupId, Pick, Scheduler, UnknownCost, View, Why,
};
use warmq_units::{CpuId, LockId, TaskId};

pub(crate) use self::settings::settings;
use self::state::{State, ns};

/// The scheduler.
pub(crate) struct Cfs {
    state: State,
}

impl Cfs {
    pub(crate) fn new(chosen: &Chosen, attach: &mut Attach<'_>) -> Result<Cfs, UnknownCost> {
        let state = State::new(attach, chosen)?;
        Ok(Cfs { state })
    }
}

impl Scheduler for Cfs {
    fn lock_for(&self, cpu: CpuId) -> LockId {
        self.state.cpu(cpu).lock
    }

    fn queues(&self, callback: Callback<'_>, cpu: CpuId) -> [Option<CpuId>; 2] {
        let of = |view: View<'_>| Some(self.state.tasks.get(view.id().index())?.cpu);
        match callback {
            Callback::Enqueue | Callback::PickNext | Callback::Tick | Callback::YieldTask => {
                [Some(cpu), None]
            }
            Callback::PutPrev => [Some(cpu), self.state.leaves_for(cpu)],
            Callback::SetWeight(view) => [of(view), None],
            Callback::SetCpumask(view) => {
                let mut cpus = (0..self.state.cpus.len() as u16).map(CpuId);
                [of(view), cpus.find(|cpu| view.may_run_on(*cpu))]
            }
            Callback::Pull { from } => [Some(cpu), Some(from)],
        }
    }

    fn fork(&mut self, context: &mut Context<'_>, parent: Option<TaskId>, child: TaskId) {
        self.state.admit(context, parent, child);
    }

    fn select_cpu(&mut self, context: &mut Context<'_>, task: TaskId, why: Why) -> CpuId {
        self.state.select(context, task, why)
    }

    fn exec_cpu(&mut self, context: &mut Context<'_>, task: TaskId) -> CpuId {
        self.state.idlest(context, task)
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why) {
        let state = &mut self.state;
        context.compute(state.wakeup_cost);
        state.update_clock(context, cpu);
        state.set_cpu(task, cpu);
        match why {
            Why::Fork => state.start(context, task, cpu),
            Why::Wakeup(_) => {
                let now = ns(context);
                state.begin_period(task, now);
                state.activate(context, task, true);
            }
        }
    }

    fn wakeup_preempt(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why) {
        if matches!(why, Why::Wakeup(_)) {
            self.state.check_preempt(context, cpu, task);
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = &mut self.state;
        let (cpu, now) = (state.tasks[task.index()].cpu, ns(context));
        state.update_clock(context, cpu);
        state.begin_period(task, now);
        let known = &mut state.tasks[task.index()];
        known.sleeps += 1;
        if known.queued {
            state.deactivate(context, task);
        }
    }

    fn pick_next(&mut self, context: &mut Context<'_>, _: Option<TaskId>) -> Pick {
        self.state.pick(context)
    }

    fn wants_put_prev(&self, prev: TaskId) -> bool {
        self.state.tasks[prev.index()].displaced
    }

    fn put_prev(&mut self, context: &mut Context<'_>, prev: TaskId) {
        self.state.handed_over(context, prev);
    }

    fn tick(&mut self, context: &mut Context<'_>, _: Option<TaskId>) {
        self.state.tick(context);
    }

    fn yield_task(&mut self, context: &mut Context<'_>, task: TaskId) -> bool {
        self.state.yields(context, task);
        true
    }

    fn set_weight(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.state.parameters_changed(context, task);
    }

    fn set_cpumask(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.state.cpumask_changed(context, task);
    }

    fn cpu_offline(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        self.state.vacate(context, cpu);
    }

    fn balance(&mut self, context: &mut Context<'_>, when: Balance) -> Option<CpuId> {
        self.state.look(context, when)
    }

    fn pull(&mut self, context: &mut Context<'_>, from: CpuId, when: Balance) {
        self.state.pull_from(context, from, when);
    }

    fn set_group_weight(&mut self, context: &mut Context<'_>, group: GroupId) {
        self.state.reweigh_group(context, group);
    }

    fn exit(&mut self, _: &mut Context<'_>, _: TaskId) {}
}
