//! MQ: the multi-queue scheduler of IBM for Linux 2.4, a run queue and a lock for each CPU.
//!
//! Purpose: shorter walks and locks that hardly anybody shares. Each queue publishes the best
//! goodness, without the affinity bonus, among those of its tasks that wait. A CPU walks its own
//! queue; where another queue publishes more than its local best, it tries that queue's lock, looks
//! again, and takes the task. It does badly where few tasks run on few CPUs: the looking around
//! costs more than the walk that it saves.

use std::collections::BTreeSet;

use warmq_config::{Chosen, Setting};
use warmq_kernel::{Attach, Context, Mm, Pick, Scheduler, UnknownCost, Why, Within};
use warmq_machine::Access;
use warmq_units::{Address, Bytes, CpuId, LockId, TaskId};

use crate::family::layout;
use crate::family::list::Lists;
use crate::family::state::{Common, is_idle, may_go_on, mm_of, still_runnable};

const IDLE: i32 = -1_000;

pub(crate) fn settings() -> Vec<Setting> {
    layout::settings()
}

/// The multi-queue scheduler.
///
/// Invariant: a task is in the list of `queue_of` it from `enqueue` to `dequeue`, also while it
/// runs, and then it runs on that CPU.
pub(crate) struct Mq {
    queues: Vec<Queue>,
    /// One list a CPU.
    lists: Lists,
    queue_of: Vec<CpuId>,
    /// Tasks that could go on and must leave their CPU for good, since their affinity changed: from
    /// the pick there to the switch away.
    homeless: BTreeSet<TaskId>,
    common: Common,
}

struct Queue {
    lock: LockId,
    /// What others read without the lock, in a cache line of its own.
    published: i32,
    published_at: Address,
}

/// What a walk found.
#[derive(Clone, Copy)]
struct Found {
    weight: i32,
    task: Option<TaskId>,
}

impl Mq {
    pub(crate) fn new(chosen: &Chosen, attach: &mut Attach<'_>) -> Result<Mq, UnknownCost> {
        let common = Common::new(attach, chosen)?;
        let line = Bytes(attach.line());
        let queue = |attach: &mut Attach<'_>| Queue {
            lock: attach.lock("mq_lock"),
            published: IDLE,
            published_at: attach.data(line),
        };
        let queues: Vec<Queue> = (0..attach.cpus()).map(|_| queue(attach)).collect();
        let heads = (0..attach.cpus()).map(|_| attach.data(line)).collect();
        Ok(Mq {
            queues,
            lists: Lists::new(heads),
            queue_of: Vec::new(),
            homeless: BTreeSet::new(),
            common,
        })
    }

    /// Walks the queue of `of` for the best task for this CPU.
    fn walk(&self, context: &mut Context<'_>, of: CpuId, mm: Option<Mm>, mut best: Found) -> Found {
        let mut visits = 0;
        context.touch(self.lists.head(of.index()), Access::Read);
        context.within(Within::RunQueueWalk);
        let mut next = self.lists.first(of.index());
        while let Some(task) = next {
            next = self.lists.after(task);
            visits += 1;
            let weight = self.common.visit(context, task, mm, None);
            if let Some(weight) = weight.filter(|weight| *weight > best.weight) {
                best = Found {
                    weight,
                    task: Some(task),
                };
            }
        }
        context.within(Within::Elsewhere);
        context.walked(visits);
        best
    }

    /// Publishes the best goodness without affinity among those of `of`'s tasks that wait, but for
    /// `taken`. The walk before has just seen them all, so this costs one write.
    fn publish(&mut self, context: &mut Context<'_>, of: CpuId, taken: Option<TaskId>) {
        let mut best = IDLE;
        let mut next = self.lists.first(of.index());
        while let Some(task) = next {
            next = self.lists.after(task);
            if Some(task) != taken && context.task(task).on_cpu().is_none() {
                best = best.max(self.worth_elsewhere(context, task));
            }
        }
        self.set_published(context, of, best);
    }

    fn set_published(&mut self, context: &mut Context<'_>, of: CpuId, best: i32) {
        let queue = &mut self.queues[of.index()];
        if queue.published != best {
            queue.published = best;
            context.touch(queue.published_at, Access::Write);
        }
    }

    /// Moves `task`, if it waits in the queue of a CPU that its affinity forbids by now, to the first
    /// where it may run. It does so without that queue's lock: a path that 2.4 did not have.
    fn find_home(&mut self, context: &mut Context<'_>, task: TaskId) {
        let (view, queue) = (context.task(task), self.queue_of[task.index()]);
        let waits = view.is_runnable() && view.on_cpu().is_none();
        let allowed = (0..context.cpus())
            .map(CpuId)
            .find(|cpu| view.may_run_on(*cpu));
        let Some(home) = allowed.filter(|_| waits && !view.may_run_on(queue)) else {
            return;
        };
        self.lists.remove(context, &self.common.layout, task);
        self.lists
            .add_first(context, &self.common.layout, home.index(), task);
        self.queue_of[task.index()] = home;
        self.publish(context, home, None);
        context.reschedule(home);
    }

    fn worth_elsewhere(&self, context: &Context<'_>, task: TaskId) -> i32 {
        self.common
            .slices
            .candidate_anywhere(context, task)
            .goodness()
    }

    /// Looks at what the other queues publish, best first, and takes a task that beats `best`.
    fn take_from_others(
        &mut self,
        context: &mut Context<'_>,
        mm: Option<Mm>,
        best: Found,
    ) -> Found {
        let here = context.cpu();
        let mut offers: Vec<(i32, CpuId)> = Vec::new();
        for cpu in (0..self.queues.len() as u16)
            .map(CpuId)
            .filter(|cpu| *cpu != here)
        {
            let queue = &self.queues[cpu.index()];
            context.touch(queue.published_at, Access::Read);
            if queue.published > best.weight && queue.published > 0 {
                offers.push((queue.published, cpu));
            }
        }
        offers.sort_by_key(|(offer, cpu)| (-offer, *cpu));
        for (_, cpu) in offers {
            if let Some(found) = self.take_from(context, cpu, mm, best) {
                return found;
            }
        }
        best
    }

    fn take_from(
        &mut self,
        context: &mut Context<'_>,
        from: CpuId,
        mm: Option<Mm>,
        best: Found,
    ) -> Option<Found> {
        let (here, lock) = (context.cpu(), self.queues[from.index()].lock);
        if !context.try_lock(lock) {
            return None;
        }
        let found = self.walk(context, from, mm, best);
        let taken = found
            .task
            .filter(|task| self.queue_of[task.index()] == from);
        if let Some(task) = taken {
            self.lists.remove(context, &self.common.layout, task);
            self.lists
                .add_first(context, &self.common.layout, here.index(), task);
            self.queue_of[task.index()] = here;
        }
        self.publish(context, from, None);
        context.unlock(lock);
        taken.map(|_| found)
    }
}

impl Scheduler for Mq {
    fn lock_for(&self, cpu: CpuId) -> LockId {
        self.queues[cpu.index()].lock
    }

    fn fork(&mut self, context: &mut Context<'_>, parent: Option<TaskId>, child: TaskId) {
        self.common.fork(context, parent, child);
        self.lists.admit(child);
        let known = self.queue_of.len().max(child.index() + 1);
        self.queue_of.resize(known, CpuId(0));
    }

    /// Its last CPU if that idles, else one that does, else its last.
    fn select_cpu(&mut self, context: &mut Context<'_>, task: TaskId, _: Why) -> CpuId {
        let view = context.task(task);
        let last = view.last_cpu();
        let mut allowed = (0..context.cpus())
            .map(CpuId)
            .filter(|cpu| view.may_run_on(*cpu));
        // Only the CPU that still switches away from the task can know when it is free again.
        let there = view.on_cpu().is_some() || is_idle(context, last);
        if view.may_run_on(last) && there {
            return last;
        }
        let free = |cpu: &CpuId| is_idle(context, *cpu) && !context.will_reschedule(*cpu);
        let idle = allowed.clone().find(free);
        let stays = Some(last).filter(|last| view.may_run_on(*last));
        idle.or(stays).or_else(|| allowed.next()).unwrap_or(last)
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, _: Why) {
        self.common.queued(context, task);
        self.lists
            .add_first(context, &self.common.layout, cpu.index(), task);
        self.queue_of[task.index()] = cpu;
        let worth = self.worth_elsewhere(context, task);
        if worth > self.queues[cpu.index()].published {
            self.set_published(context, cpu, worth);
        }
    }

    fn wakeup_preempt(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, _: Why) {
        let common = &self.common;
        let Some(running) = context.running_on(cpu) else {
            return context.reschedule(cpu);
        };
        context.touch(common.layout.hot(running), Access::Read);
        let mm = context.task(running).mm();
        let ours = common.slices.candidate(context, task, cpu, mm).goodness();
        let theirs = common
            .slices
            .candidate(context, running, cpu, mm)
            .goodness();
        if ours > theirs + 1 {
            context.touch(common.layout.need_resched(running), Access::Write);
            context.reschedule(cpu);
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.lists.remove(context, &self.common.layout, task);
    }

    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        let here = context.cpu();
        context.compute(self.common.fixed);
        let mm = mm_of(context, prev);
        let mut best = Found {
            weight: IDLE,
            task: None,
        };
        if let Some(prev) = may_go_on(context, prev) {
            if self.common.slices.renew_round_robin(context, prev) {
                // Last in the queue, the walk gives its equals their turn.
                self.lists.remove(context, &self.common.layout, prev);
                let layout = &self.common.layout;
                self.lists.add_last(context, layout, here.index(), prev);
            } else {
                let (weight, task) = (self.common.weight_of_prev(context, prev), Some(prev));
                best = Found { weight, task };
            }
        }
        let local = self.walk(context, here, mm, best);
        let found = self.take_from_others(context, mm, local);
        if may_go_on(context, prev).is_none() {
            self.homeless.extend(still_runnable(context, prev));
        }
        match found {
            Found { weight: 0, .. } => Pick::Retry,
            Found { task: None, .. } => {
                self.publish(context, here, None);
                Pick::Idle
            }
            Found {
                task: Some(next), ..
            } => {
                self.publish(context, here, Some(next));
                self.common.hand_over(context, prev, next);
                if let Some(prev) = prev {
                    self.common.slices.forget_yield(prev);
                }
                Pick::Task(next)
            }
        }
    }

    fn wants_put_prev(&self) -> bool {
        !self.homeless.is_empty()
    }

    /// `prev` may not run here any more, if it is homeless.
    fn put_prev(&mut self, context: &mut Context<'_>, prev: TaskId) {
        if self.homeless.remove(&prev) {
            self.find_home(context, prev);
        }
    }

    fn set_cpumask(&mut self, context: &mut Context<'_>, task: TaskId) {
        let view = context.task(task);
        match view.on_cpu() {
            Some(cpu) if !view.may_run_on(cpu) => context.reschedule(cpu),
            _ => self.find_home(context, task),
        }
    }

    fn unlocked(&mut self, context: &mut Context<'_>) {
        self.common.recalculate(context);
        for cpu in (0..context.cpus()).map(CpuId) {
            self.publish(context, cpu, None);
        }
    }

    fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>) {
        self.common.tick(context, running);
    }

    fn yield_task(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.common.slices.yields(context, task);
    }

    fn exit(&mut self, _: &mut Context<'_>, task: TaskId) {
        self.common.slices.exit(task);
    }
}
