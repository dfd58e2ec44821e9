//! Deadline and real-time tasks, which run before those of sched_ext (kernel/sched/deadline.c,
//! rt.c), and the deadline server that gives the latter a part of each CPU all the same
//! (`ext_server`, from 7.0 on).
//!
//! A program hears of them by what it loses: a task of its own that is put back, CPUs that no
//! longer idle, `ops.cpu_release` and `ops.cpu_acquire`. A task that becomes one of these leaves
//! the program (`ops.disable`), and comes back to it (`ops.enable`) when it is none any more.
//!
//! Different from the kernel: nobody throttles real-time tasks; what a deadline task has is used up
//! at a tick, on 7.1 and later, too.

use warmq_classes::{IdleTime, Joining, Overload, Rank, Reservation, Server, Urgent};
use warmq_kernel::{Alarm, Context, Pick, Policy};
use warmq_units::{CpuId, Instant, TaskId};

use crate::events::Events;
use crate::execution::at_once;
use crate::pick::{Picked, Picks};
use crate::run_queue::{Machine, RunQueue};
use crate::state::{Here, State};
use crate::words::deq;

/// What distinguishes the server's timer from those of programs, which are addresses of 8 bytes.
pub(crate) const SERVER_TIMER: u64 = 1;
/// The same of a timer that ends the throttling of a task.
const REPLENISHMENT: u64 = 2;

/// Whose throttling a timer ends, if it is one of these.
pub(crate) fn replenished(token: u64) -> Option<TaskId> {
    (token % 8 == REPLENISHMENT).then_some(TaskId((token / 8) as u32))
}

/// `enum scx_cpu_preempt_reason`.
const PREEMPT_RT: u64 = 0;
const PREEMPT_DL: u64 = 1;

/// What tasks of sched_ext have in each period, in ns (`ext_server_init()`).
const RESERVATION: Reservation = Reservation {
    runtime: 50_000_000,
    period: 1_000_000_000,
    idle: IdleTime::Stops,
};

/// What a CPU has above its tasks of sched_ext.
#[derive(Default)]
pub(crate) struct Above {
    tasks: Urgent,
    /// Which of them runs, from the moment it is picked.
    pub(crate) current: Option<TaskId>,
    /// The program knows that it has lost the CPU (`rq->scx.cpu_released`).
    released: bool,
    server: Server,
    timer: Alarm,
    /// Tasks of sched_ext on this run queue (`rq->scx.nr_running`).
    runnable: u32,
}

impl Above {
    /// Tasks of sched_ext are counted anew, as a program gets to know them.
    pub(crate) fn forget_runnable(&mut self) {
        self.runnable = 0;
    }

    /// Of a kernel that has the server, or not.
    pub(crate) fn new(served: bool) -> Above {
        let reservation = if served {
            RESERVATION
        } else {
            Reservation::default()
        };
        Above {
            server: Server::new(reservation),
            ..Above::default()
        }
    }
}

/// The clock of servers, in ns.
fn clock(at: Instant) -> i64 {
    at.since(Instant::START).as_ns() as i64
}

impl State {
    fn above(&mut self, cpu: CpuId) -> &mut Above {
        &mut self.above[cpu.index()]
    }

    /// Who runs on a CPU, of any class.
    pub(crate) fn runs(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpu(cpu).current.or(self.above[cpu.index()].current)
    }

    pub(crate) fn is_urgent(&self, task: TaskId) -> bool {
        self.task(task).class.is_urgent()
    }

    /// The server of `cpu` may want its timer armed otherwise than it is.
    fn note_server(&mut self, cpu: CpuId) {
        if self.is_served && self.servers.last() != Some(&cpu) {
            self.servers.push(cpu);
        }
    }

    /// What a task is compared by with those above sched_ext's.
    pub(crate) fn rank(&self, task: TaskId) -> Rank {
        self.task(task).class.rank()
    }

    /// The same of who runs on a CPU.
    pub(crate) fn rank_on(&self, cpu: CpuId) -> Rank {
        let runs = self.above[cpu.index()].current;
        runs.map_or(Rank::Other, |task| self.rank(task))
    }

    /// Those above sched_ext's on a CPU.
    pub(crate) fn urgent(&self, cpu: CpuId) -> &Urgent {
        &self.above[cpu.index()].tasks
    }
}

impl Here<'_, '_> {
    /// A task of sched_ext has come onto the run queue of `cpu`, or has left it
    /// (`enqueue_task_scx()`, `dequeue_task_scx()`).
    pub(crate) fn count_runnable(&mut self, cpu: CpuId, comes: bool) {
        let now = clock(self.now());
        let above = self.state.above(cpu);
        if !comes {
            above.runnable = above.runnable.saturating_sub(1);
            return;
        }
        above.runnable += 1;
        if above.runnable > 1 {
            return;
        }
        above.server.start(now);
        if above.server.serves() {
            self.context.reschedule(cpu);
        }
        self.state.note_server(cpu);
    }

    /// A task of sched_ext ran for `ran` ns on `cpu` (`dl_server_update()`).
    pub(crate) fn charge_server(&mut self, cpu: CpuId, ran: u64) {
        let now = clock(self.now());
        if self.state.above(cpu).server.charge(now, ran as i64) {
            self.context.reschedule(cpu);
        }
        self.state.note_server(cpu);
    }

    /// Arms and cancels the timers of servers, as they ask for.
    pub(crate) fn arm_servers(&mut self) {
        for cpu in std::mem::take(&mut self.state.servers) {
            let above = self.state.above(cpu);
            let due = above.server.due();
            above.timer.set(self.context, due, (cpu, SERVER_TIMER));
        }
        for task in std::mem::take(&mut self.state.deadlines) {
            let state = self.state.task_mut(task);
            let token = 8 * u64::from(task.0) + REPLENISHMENT;
            state.class.arm(self.context, state.cpu, token);
        }
    }

    /// A task that runs on `cpu` and is above those of sched_ext ran for `ran` ns
    /// (`update_curr_dl()`).
    pub(crate) fn charge_urgent(&mut self, task: TaskId, cpu: CpuId, ran: u64) {
        let now = clock(self.now());
        if !self.state.task_mut(task).class.charge(now, ran as i64) {
            return;
        }
        self.remove_urgent(task);
        self.add_urgent(task, cpu);
        if self.state.urgent(cpu).iter().next() != Some(task) {
            self.context.reschedule(cpu);
        }
    }

    /// A task above those of sched_ext comes onto the queue of `cpu`.
    pub(crate) fn join_urgent(&mut self, task: TaskId, cpu: CpuId, how: Joining) {
        let now = clock(self.now());
        self.state.task_mut(task).class.joins(now, how);
        self.add_urgent(task, cpu);
    }

    /// `rq->rt.rt_nr_running`.
    fn write_urgent(&mut self, cpu: CpuId) {
        let count = self.state.above(cpu).tasks.real_time() as u64;
        let (Some(address), fields) = (
            self.state.variables.runqueues(),
            self.state.layouts.run_queue,
        ) else {
            return;
        };
        if let Some(there) = self.guest.per_cpu(address, cpu.0.into()) {
            fields.real_time.set(self.guest, there, count);
        }
    }

    /// A task is in the queue of `cpu` from now on, unless it is throttled.
    pub(crate) fn add_urgent(&mut self, task: TaskId, cpu: CpuId) {
        self.set_cpu(task, cpu);
        self.state.deadlines.push(task);
        let rank = self.state.rank(task);
        if rank.is_urgent() && !self.state.task(task).class.is_throttled() {
            self.state.above(cpu).tasks.add(rank, task);
            self.write_urgent(cpu);
        }
    }

    pub(crate) fn remove_urgent(&mut self, task: TaskId) {
        let cpu = self.state.task(task).cpu;
        self.state.above(cpu).tasks.remove(task);
        self.write_urgent(cpu);
    }

    /// A CPU picks again if one that came onto its run queue is better than who runs
    /// (`wakeup_preempt()`).
    pub(crate) fn preempt_for(&mut self, task: TaskId, cpu: CpuId) {
        let throttled = self.state.task(task).class.is_throttled();
        if !throttled && self.state.rank(task) < self.state.rank_on(cpu) {
            self.context.reschedule(cpu);
        }
    }
}

/// What the lab asks of tasks above those of sched_ext.
impl Machine {
    pub(crate) fn is_urgent(&self, task: TaskId) -> bool {
        self.state.is_urgent(task)
    }

    pub(crate) fn dequeue_urgent(&mut self, context: &mut Context<'_>, task: TaskId) {
        let cpu = self.state.task(task).cpu;
        let mut here = self.here(context);
        here.update_current(cpu);
        here.remove_urgent(task);
    }

    /// Tasks of SCHED_RR of one priority take turns (`task_tick_rt()`).
    pub(crate) fn tick_urgent(&mut self, context: &mut Context<'_>, task: TaskId) {
        let cpu = context.cpu();
        self.here(context).update_current(cpu);
        let slice = self.state.round_robin;
        let is_over = self.state.task_mut(task).class.tick(slice);
        let above = self.state.above(cpu);
        if is_over && above.tasks.has_equal(task) {
            above.tasks.requeue(task);
            context.reschedule(cpu);
        }
    }

    /// `yield_task_rt()`, `yield_task_dl()`.
    pub(crate) fn yield_urgent(&mut self, context: &mut Context<'_>, task: TaskId) {
        let state = self.state.task_mut(task);
        let cpu = state.cpu;
        match state.class.yields() {
            true => self.here(context).update_current(cpu),
            false => self.state.above(cpu).tasks.requeue(task),
        }
    }

    /// The timer that ends the throttling of a task has expired (`dl_task_timer()`).
    pub(crate) fn replenish(&mut self, context: &mut Context<'_>, task: TaskId) {
        let now = clock(context.now());
        let state = self.state.task_mut(task);
        let cpu = state.cpu;
        if !state.class.replenish(now) || !context.task(task).is_runnable() {
            return;
        }
        let mut here = self.here(context);
        here.add_urgent(task, cpu);
        here.preempt_for(task, cpu);
        self.push_urgent(context, cpu);
    }

    /// Moves one that waits to a CPU where it may run.
    pub(crate) fn move_urgent(&mut self, context: &mut Context<'_>, task: TaskId) {
        let cpu = self.state.task(task).cpu;
        let to = self.allowed_near(context, task, cpu);
        self.put_urgent(context, task, to);
    }

    /// The affinity of one has changed (`set_cpus_allowed_common()`).
    pub(crate) fn affinity_of_urgent(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.here(context).write_affinity(task);
        let cpu = self.state.task(task).cpu;
        let view = context.task(task);
        if view.may_run_on(cpu) || !view.is_runnable() {
            return;
        }
        match self.state.above(cpu).current == Some(task) {
            true => context.reschedule(cpu),
            false => self.move_urgent(context, task),
        }
    }

    /// A task's policy may have changed to that of another class, or to another priority.
    pub(crate) fn policy_changed(&mut self, context: &mut Context<'_>, task: TaskId) {
        let before = self.state.task(task).class.policy();
        let policy = context.task(task).policy();
        match (before.is_fair(), policy.is_fair()) {
            (true, true) => {
                self.state.task_mut(task).class.set_policy(policy);
                at_once(self.on(context).weight_changed(task));
            }
            (true, false) => self.leaves_program(context, task, policy),
            (false, true) => self.comes_to_program(context, task, policy),
            (false, false) => {
                at_once(self.on(context).move_group(task));
                if before != policy {
                    self.priority_changed(context, task, policy);
                }
            }
        }
    }

    fn priority_changed(&mut self, context: &mut Context<'_>, task: TaskId, policy: Policy) {
        let cpu = self.state.task(task).cpu;
        let before = self.state.rank(task);
        self.state.task_mut(task).class.set_policy(policy);
        self.state.deadlines.push(task);
        let mut here = self.here(context);
        here.write_weight(task);
        if !here.view(task).is_runnable() {
            return;
        }
        here.remove_urgent(task);
        here.join_urgent(task, cpu, Joining::Changed);
        here.context.reschedule(cpu);
        if self.state.above(cpu).current == Some(task) {
            self.pull_urgent(context, cpu, before);
        }
    }

    /// A task becomes one above those of sched_ext (`switched_from_scx()`).
    fn leaves_program(&mut self, context: &mut Context<'_>, task: TaskId, policy: Policy) {
        let state = self.state.task(task);
        let (cpu, queued, address) = (state.cpu, state.queued, state.address);
        let runs = self.state.cpu(cpu).current == Some(task);
        at_once(self.on(context).dequeue(task, deq::SAVE));
        let disable = self.code.callbacks.disable;
        self.here(context).call(disable, &[address]);
        let state = self.state.task_mut(task);
        state.class.set_policy(policy);
        state.waits_since = None;
        let mut here = self.here(context);
        here.write_weight(task);
        if !queued {
            return;
        }
        here.join_urgent(task, cpu, Joining::Changed);
        if runs {
            here.state.cpu_mut(cpu).current = None;
            here.state.above(cpu).current = Some(task);
        } else {
            here.preempt_for(task, cpu);
        }
    }

    /// A task is none of those any more (`switching_to_scx()`).
    fn comes_to_program(&mut self, context: &mut Context<'_>, task: TaskId, policy: Policy) {
        let cpu = self.state.task(task).cpu;
        let queued = context.task(task).is_runnable();
        let runs = self.state.above(cpu).current == Some(task);
        let before = self.state.rank(task);
        self.state.deadlines.push(task);
        let mut here = self.here(context);
        here.update_current(cpu);
        here.remove_urgent(task);
        here.state.task_mut(task).class.set_policy(policy);
        here.write_weight(task);
        self.enable(context, task);
        at_once(self.on(context).set_cpumask(task));
        match (queued, runs) {
            (_, true) => {
                self.state.above(cpu).current = None;
                self.state.cpu_mut(cpu).current = Some(task);
                at_once(self.on(context).goes_on(task));
                self.pull_urgent(context, cpu, before);
            }
            (true, false) => {
                let restore = self.state.enq.restore;
                at_once(self.on(context).enqueue(task, cpu, restore));
            }
            (false, false) => {}
        }
    }

    /// The timer of the server of this CPU has expired (`dl_server_timer()`).
    pub(crate) fn server_is_due(&mut self, context: &mut Context<'_>) {
        let cpu = context.cpu();
        let now = clock(context.now());
        self.state.above(cpu).timer.expired();
        self.here(context).update_current(cpu);
        let above = self.state.above(cpu);
        above.server.timer(now);
        if above.server.serves() {
            context.reschedule(cpu);
        }
        self.state.note_server(cpu);
    }

    /// The server of a CPU that has gone offline stops.
    pub(crate) fn stop_server(&mut self, cpu: CpuId) {
        self.state.above(cpu).server.stop();
        self.state.note_server(cpu);
    }
}

/// How a CPU picks among the classes.
impl Machine {
    /// The next task of this CPU: one above those of sched_ext if there is one, unless the server
    /// serves, and that before the deadline of this one.
    pub(crate) fn pick_of_all(
        &mut self,
        context: &mut Context<'_>,
        previous: Option<TaskId>,
    ) -> Pick {
        let (cpu, now) = (context.cpu(), clock(context.now()));
        self.here(context).update_current(cpu);
        let idled = self.state.runs(cpu).is_none();
        let ran = self.state.above(cpu).current.take();
        if let Some(left) = ran.filter(|task| self.state.urgent(cpu).iter().all(|one| one != *task))
        {
            let before = self.state.rank(left);
            self.pull_urgent(context, cpu, before);
        }
        let above = self.state.above(cpu);
        if idled {
            above.server.end_idle(now);
        }
        let serves = above.server.rank() < above.tasks.best();
        let urgent = {
            let mut tasks = above.tasks.iter();
            tasks.find(|task| context.task(*task).may_run_on(cpu))
        };
        let picked = match urgent {
            Some(task) if !serves => {
                context.compute(self.state.costs.pick);
                at_once(give_way(&mut self.on(context), previous, ran, task))
            }
            _ => self.pick(context, previous, urgent),
        };
        self.here(context).send_kicks();
        if picked == Picked::Next(None) {
            self.state.above(cpu).server.begin_idle(now);
        }
        self.state.note_server(cpu);
        self.here(context).arm_servers();
        picked.into()
    }

    /// The program loses the CPU to a task of another class.
    fn release(&mut self, context: &mut Context<'_>, cpu: CpuId, to: TaskId) {
        let Some(release) = self.code.callbacks.cpu_release else {
            return;
        };
        if std::mem::replace(&mut self.state.above(cpu).released, true) {
            return;
        }
        let fields = self.state.layouts.release;
        let Ok(args) = self.guest.allocate(fields.size) else {
            return;
        };
        let reason = match self.state.rank(to) {
            Rank::Deadline(_) => PREEMPT_DL,
            Rank::RealTime(_) | Rank::Other => PREEMPT_RT,
        };
        fields.reason.set(&mut self.guest, args, reason);
        let address = self.state.task(to).address;
        fields.task.set(&mut self.guest, args, address);
        let call = [u64::from(cpu.0), args];
        self.here(context).call(Some(release), &call);
        self.guest.free(args, fields.size);
    }

    /// The program has the CPU again (`balance_one()`).
    pub(crate) fn acquire(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        if std::mem::take(&mut self.state.above(cpu).released) {
            let acquire = self.code.callbacks.cpu_acquire;
            self.here(context).call(acquire, &[cpu.0.into(), 0]);
        }
    }

    /// This CPU runs a task of a class above.
    pub(crate) fn set_urgent(&mut self, context: &mut Context<'_>, task: TaskId) {
        let (cpu, now) = (context.cpu(), context.now());
        let there = self.state.cpu_mut(cpu);
        there.current = None;
        there.exec_start = now;
        self.state.above(cpu).current = Some(task);
    }
}

/// `task` takes this CPU from whoever ran (`put_prev_task_scx()`, `switch_class()`). `ran` is the
/// task of a class above that did.
async fn give_way(
    steps: &mut impl Picks,
    previous: Option<TaskId>,
    ran: Option<TaskId>,
    task: TaskId,
) -> Picked {
    let cpu = steps.cpu();
    let (left, is_served) = steps.with(|machine, _| {
        let state = &machine.state;
        (state.cpu(cpu).current, state.is_served)
    });
    let stays = steps.keep_or_move(previous).await;
    // Up to 6.19 the program is asked all the same (`prev_balance()`).
    if ran.is_none() && !is_served {
        steps.find(stays).await;
    }
    if let Some(stays) = stays {
        steps.put_back(stays, Some(task)).await;
    }
    steps.with(|machine, at| {
        machine.state.own.picking = None;
        if left.is_some() {
            machine.here(at).count_switch(cpu);
            machine.release(at, cpu, task);
        }
    });
    steps.run_urgent(task).await;
    Picked::Next(Some(task))
}
