//! The simplest scheduler, and hooks for tests that need another one.

use std::collections::VecDeque;

use warmq_kernel::*;
use warmq_units::{CpuId, Duration, LockId, TaskId};

/// What a test scheduler does besides round robin, or instead of it.
///
/// A hook runs before round robin's own part of the callback, which is skipped if it returns false,
/// or an answer.
pub trait Hooks {
    fn select_cpu(&mut self) -> Option<CpuId> {
        None
    }
    fn enqueue(&mut self, _: &mut Context<'_>, _: Why) -> bool {
        true
    }
    fn wakeup_preempt(&mut self, _: &mut Context<'_>, _: CpuId) -> bool {
        true
    }
    fn pick_next(&mut self, _: &mut Context<'_>) -> Option<Pick> {
        None
    }
    fn tick(&mut self, _: &mut Context<'_>) -> bool {
        true
    }
    fn keeps_waiting(&mut self) -> bool {
        false
    }
    fn set_weight(&mut self, _: &mut Context<'_>, _: TaskId) {}
    fn set_fragment(&mut self, _: &mut Context<'_>, _: TaskId, _: Option<Fragment>) {}
    fn exit(&mut self, _: TaskId) {}
}

impl Hooks for () {}

/// The simplest scheduler: one queue, one lock, a turn of one tick.
struct RoundRobin<H> {
    lock: LockId,
    queue: VecDeque<TaskId>,
    /// The time that a pick takes, all under the lock, in ns.
    pick_ns: u64,
    /// Never sends a reschedule to a CPU for a woken task.
    forgetful: bool,
    hooks: H,
}

/// Round robin whose picks take `pick_ns` nanoseconds each.
pub fn round_robin(pick_ns: u64) -> MakeScheduler {
    Box::new(move |attach| Ok(Box::new(RoundRobin::new(attach, pick_ns, ()))))
}

/// Round robin that queues woken tasks but asks no CPU to run them.
pub fn forgetful() -> MakeScheduler {
    Box::new(|attach| {
        Ok(Box::new(RoundRobin {
            forgetful: true,
            ..RoundRobin::new(attach, 0, ())
        }))
    })
}

/// Round robin with the hooks that `make` makes.
pub fn hooked<H: Hooks + 'static>(
    make: impl FnOnce(&mut Attach<'_>) -> H + 'static,
) -> MakeScheduler {
    Box::new(|attach| {
        let hooks = make(attach);
        Ok(Box::new(RoundRobin::new(attach, 0, hooks)))
    })
}

impl<H> RoundRobin<H> {
    fn new(attach: &mut Attach<'_>, pick_ns: u64, hooks: H) -> RoundRobin<H> {
        RoundRobin {
            lock: attach.lock("queue"),
            queue: VecDeque::new(),
            pick_ns,
            forgetful: false,
            hooks,
        }
    }

    fn offer(&self, context: &mut Context<'_>, task: TaskId) {
        let idle = |cpu| context.running_on(cpu).is_none();
        if let Some(cpu) = first_cpu(context, task, idle).filter(|_| !self.forgetful) {
            context.reschedule(cpu);
        }
    }
}

/// The first CPU that `task` may use and that is `wanted`, beginning with its last one.
fn first_cpu(context: &Context<'_>, task: TaskId, wanted: impl Fn(CpuId) -> bool) -> Option<CpuId> {
    let view = context.task(task);
    let mut cpus = std::iter::once(view.last_cpu()).chain((0..context.cpus()).map(CpuId));
    cpus.find(|cpu| view.may_run_on(*cpu) && wanted(*cpu))
}

impl<H: Hooks> Scheduler for RoundRobin<H> {
    fn lock_for(&self, _: CpuId) -> LockId {
        self.lock
    }

    fn fork(&mut self, _: &mut Context<'_>, _: Option<TaskId>, _: TaskId) {}

    fn select_cpu(&mut self, context: &mut Context<'_>, task: TaskId, _: Why) -> CpuId {
        let chosen = self.hooks.select_cpu();
        chosen.unwrap_or_else(|| first_allowed(context, task))
    }

    fn exec_cpu(&mut self, context: &mut Context<'_>, task: TaskId) -> CpuId {
        first_allowed(context, task)
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, _: CpuId, why: Why) {
        if self.hooks.enqueue(context, why) {
            self.queue.push_back(task);
        }
    }

    fn wakeup_preempt(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, _: Why) {
        if self.hooks.wakeup_preempt(context, cpu) {
            self.offer(context, task);
        }
    }

    fn dequeue(&mut self, _: &mut Context<'_>, task: TaskId) {
        self.queue.retain(|queued| *queued != task);
    }

    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        if let Some(answer) = self.hooks.pick_next(context) {
            return answer;
        }
        context.spend(Duration::from_ns(self.pick_ns));
        let (here, prev) = (
            context.cpu(),
            prev.filter(|prev| !self.queue.contains(prev)),
        );
        self.queue
            .extend(prev.filter(|prev| context.task(*prev).is_runnable()));
        let free = |task: &TaskId| {
            let view = context.task(*task);
            view.may_run_on(here) && view.on_cpu().is_none_or(|there| there == here)
        };
        let first = self.queue.iter().position(free);
        first
            .and_then(|index| self.queue.remove(index))
            .map_or(Pick::Idle, Pick::Task)
    }

    fn keeps_waiting(&mut self, _: &mut Context<'_>) -> bool {
        self.hooks.keeps_waiting()
    }

    fn wants_put_prev(&self, _: TaskId) -> bool {
        true
    }

    fn put_prev(&mut self, context: &mut Context<'_>, prev: TaskId) {
        self.offer(context, prev);
    }

    fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>) {
        if self.hooks.tick(context) && running.is_some() {
            context.reschedule(context.cpu());
        }
    }

    fn set_cpumask(&mut self, context: &mut Context<'_>, task: TaskId) {
        let view = context.task(task);
        match view.on_cpu() {
            Some(cpu) if !view.may_run_on(cpu) => context.reschedule(cpu),
            None if view.is_runnable() => self.offer(context, task),
            Some(_) | None => {}
        }
    }

    fn set_weight(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.hooks.set_weight(context, task);
    }

    fn set_fragment(&mut self, context: &mut Context<'_>, task: TaskId, to: Option<Fragment>) {
        self.hooks.set_fragment(context, task, to);
    }

    fn exit(&mut self, _: &mut Context<'_>, task: TaskId) {
        self.hooks.exit(task);
    }
}

fn first_allowed(context: &Context<'_>, task: TaskId) -> CpuId {
    let allowed = first_cpu(context, task, |_| true);
    allowed.unwrap_or(context.task(task).last_cpu())
}
