//! The interface of schedulers: a table of callbacks.
//!
//! A task's life, as a scheduler sees it:
//!
//! ```text
//! fork(child)                         the task exists, not yet runnable
//! exec_cpu(task)                      a first task of the run: where should it begin?
//! loop {
//!     select_cpu(task, why)           it was woken, or forked: where should it run?
//!     leaves_wakeup(task, cpu)        should that CPU queue it itself?
//!     enqueue(task, cpu, why)         the scheduler owns it from here on
//!     wakeup_preempt(task, cpu, why)  under the same locks: should a CPU be preempted?
//!     loop {
//!         pick_next(prev) -> task     on the CPU that asks
//!         tick(task) ...              while it runs
//!         switched(prev, next)        the CPU has changed tasks
//!         put_prev(task)              it left the CPU and is still runnable
//!     }
//!     set_fragment(task)              it said which data it uses, and may have to move
//!     dequeue(task)                   it sleeps or exits; within pick_next's locks
//! }                                   before it exits: leave_autogroup(task)
//! exit(task)                          its memory is freed after this call
//! ```

use warmq_units::{CpuId, LockId, TaskId};

use crate::core::View;
use crate::face::Context;
use crate::words::{Balance, Fragment, GroupId, Why};

/// What `pick_next` may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// Run this task. It must be runnable, allowed here, and on no other CPU.
    Task(TaskId),
    /// Nothing to run: go idle.
    Idle,
    /// Drop the locks, call [`Scheduler::unlocked`], take the locks and ask again.
    Retry,
}

/// The callbacks that run under locks; see [`Scheduler::queues`].
#[derive(Clone, Copy)]
pub enum Callback<'a> {
    /// `enqueue` and `wakeup_preempt`.
    Enqueue,
    /// `dequeue` and `pick_next`.
    PickNext,
    /// `put_prev`.
    PutPrev,
    /// `tick`.
    Tick,
    /// `yield_task`.
    YieldTask,
    /// `set_weight`.
    SetWeight(View<'a>),
    /// `set_cpumask`.
    SetCpumask(View<'a>),
    /// `pull`.
    Pull {
        /// The CPU from whose queue tasks are pulled.
        from: CpuId,
    },
}

/// How a program tells the scheduler which data it is about to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hint {
    /// By a system call, in which [`Scheduler::set_fragment`] is called.
    #[default]
    SystemCall,
    /// By a write to memory that it shares with the scheduler, which finds it in
    /// [`View::fragment`] the next time that it looks.
    MemoryWrite,
}

/// A scheduler: the policy, as callbacks. The kernel is the mechanism.
///
/// The constructor of a scheduler takes an [`Attach`](crate::Attach), with which it declares locks,
/// allocates memory and looks up costs before anything runs. Callbacks run on the CPU that
/// [`Context::cpu`] names, with interrupts off. They take as long as what they do through the
/// context: touches and computation.
pub trait Scheduler {
    /// The lock that guards the queue of `cpu`.
    fn lock_for(&self, cpu: CpuId) -> LockId;

    /// The CPUs under whose queues' locks the kernel calls `callback` for the queue of `cpu`. By
    /// default, callbacks that change a queue run under that queue's lock, `pull` under those of
    /// both queues, and all others under none.
    fn queues(&self, callback: Callback<'_>, cpu: CpuId) -> [Option<CpuId>; 2] {
        match callback {
            Callback::Enqueue | Callback::PickNext | Callback::PutPrev => [Some(cpu), None],
            Callback::Pull { from } => [Some(cpu), Some(from)],
            Callback::Tick
            | Callback::YieldTask
            | Callback::SetWeight(_)
            | Callback::SetCpumask(_) => [None, None],
        }
    }

    /// The locks of those, each once. The kernel takes them in this order, that of their numbers,
    /// which prevents deadlock.
    fn locks(&self, callback: Callback<'_>, cpu: CpuId) -> [Option<LockId>; 2] {
        let queues = self.queues(callback, cpu);
        match queues.map(|queue| queue.map(|cpu| self.lock_for(cpu))) {
            [Some(one), Some(other)] if one == other => [Some(one), None],
            [Some(one), Some(other)] => [Some(one.min(other)), Some(one.max(other))],
            [one, _] => [one, None],
        }
    }

    /// `parent` forked `child` (`None` for the first tasks of a run). No lock is held.
    fn fork(&mut self, context: &mut Context<'_>, parent: Option<TaskId>, child: TaskId);

    /// The CPU in whose queue a task that becomes runnable should go; by default its last CPU, or
    /// the first that its affinity allows. No lock is held. The kernel checks the answer against
    /// the affinity.
    fn select_cpu(&mut self, context: &mut Context<'_>, task: TaskId, _why: Why) -> CpuId {
        let view = context.task(task);
        let mut cpus = std::iter::once(view.last_cpu()).chain((0..context.cpus()).map(CpuId));
        let allowed = cpus.find(|cpu| view.may_run_on(*cpu));
        allowed.unwrap_or(view.last_cpu())
    }

    /// The CPU on which a program begins that a shell on this CPU has forked and that is being
    /// loaded (`sched_exec()`): the first tasks of a run. By default as at a fork. Where that
    /// leaves a child on its parent's CPU, that of a first task is the next in turn: one task after
    /// another goes to the CPU that has idled longest (`reschedule_idle()`), or is pulled by one
    /// that idles.
    fn exec_cpu(&mut self, context: &mut Context<'_>, task: TaskId) -> CpuId {
        self.select_cpu(context, task, Why::Fork)
    }

    /// Whether it is left to `target`, another CPU, to queue `task`, which this CPU wakes and which
    /// is on no queue: `target` does so in an interrupt or as it leaves idle, and its time pays. No
    /// lock is held.
    fn leaves_wakeup(&mut self, _context: &mut Context<'_>, _task: TaskId, _target: CpuId) -> bool {
        false
    }

    /// Queues a task that became runnable. From here on the scheduler owns it: a task that it never
    /// hands back by [`Scheduler::pick_next`] starves, and the kernel will report it.
    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why);

    /// Called right after `enqueue`, under the same locks: calls [`Context::reschedule`] for the
    /// CPU that should be preempted, if any.
    fn wakeup_preempt(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why);

    /// `task` is no longer runnable. It may be the one that `pick_next` picked last here.
    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId);

    /// The task that this CPU should run next. `prev` is the task that runs now; its view shows
    /// whether it is still runnable. If not, it has just been dequeued.
    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick;

    /// Called without locks after `pick_next` answered [`Pick::Retry`].
    fn unlocked(&mut self, _context: &mut Context<'_>) {}

    /// This CPU switched from `prev` to `next` (`None` is the idle task). No lock is held.
    fn switched(
        &mut self,
        _context: &mut Context<'_>,
        _prev: Option<TaskId>,
        _next: Option<TaskId>,
    ) {
    }

    /// Whether this CPU goes on waiting, after [`Context::wait_busily`].
    fn keeps_waiting(&mut self, _context: &mut Context<'_>) -> bool {
        false
    }

    /// Whether the kernel should call [`Scheduler::put_prev`] after a switch away from `prev`,
    /// which is still runnable. Called before [`Scheduler::switched`]. If `prev` may no longer run
    /// on this CPU, `put_prev` is called in any case.
    fn wants_put_prev(&self, _prev: TaskId) -> bool {
        false
    }

    /// `prev` left this CPU and is still runnable; it may be moved to another CPU.
    fn put_prev(&mut self, _context: &mut Context<'_>, _prev: TaskId) {}

    /// The tick interrupted `running` (`None` is the idle task).
    fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>);

    /// `task` called `sched_yield`. Returns whether this CPU should pick again.
    fn yield_task(&mut self, _context: &mut Context<'_>, _task: TaskId) -> bool {
        true
    }

    /// The nice value, policy, slice or group of `task` changed.
    fn set_weight(&mut self, _context: &mut Context<'_>, _task: TaskId) {}

    /// The affinity of `task` changed, or the CPU in whose queue it waits goes offline: the
    /// scheduler must move it off a CPU that [`View::may_run_on`] forbids.
    fn set_cpumask(&mut self, _context: &mut Context<'_>, _task: TaskId) {}

    /// `cpu` has gone offline. `set_cpumask` is called for each waiting task that last ran there; a
    /// scheduler that has moved other tasks into that CPU's queue moves them out now.
    fn cpu_offline(&mut self, _context: &mut Context<'_>, _cpu: CpuId) {}

    /// Looks for a CPU from whose queue this CPU could pull tasks; no lock is held. If there is
    /// one, the kernel takes the locks of both queues and calls [`Scheduler::pull`].
    fn balance(&mut self, _context: &mut Context<'_>, _when: Balance) -> Option<CpuId> {
        None
    }

    /// Moves tasks from the queue of `from` to that of this CPU, under the locks of both.
    fn pull(&mut self, _context: &mut Context<'_>, _from: CpuId, _when: Balance) {}

    /// Whether `balance` is called again after a pull on `cpu`, in the same softirq. A CPU that is
    /// about to idle picks first.
    fn keeps_balancing(&self, _cpu: CpuId) -> bool {
        false
    }

    /// A timer that [`Context::arm_timer`] armed has expired on this CPU, in an interrupt.
    fn timer(&mut self, _context: &mut Context<'_>, _token: u64) {}

    /// The weight of `group` changed, or its limits, where the scheduler keeps these. No lock is
    /// held.
    fn set_group_weight(&mut self, _context: &mut Context<'_>, _group: GroupId) {}

    /// How programs name the data that they use.
    fn hint(&self) -> Hint {
        Hint::SystemCall
    }

    /// `task`, which runs here, named other data than before. No lock is held. A scheduler that
    /// wants to move it calls [`Context::reschedule`] for this CPU: the task is then preempted
    /// before it continues.
    fn set_fragment(
        &mut self,
        _context: &mut Context<'_>,
        _task: TaskId,
        _fragment: Option<Fragment>,
    ) {
    }

    /// `task`, which runs here, is about to exit, and leaves its autogroup. No lock is held.
    fn leave_autogroup(&mut self, _context: &mut Context<'_>, _task: TaskId) {}

    /// What it has counted since it was attached, by name.
    fn counted(&self) -> Vec<(String, u64)> {
        Vec::new()
    }

    /// `task` has exited. No lock is held.
    fn exit(&mut self, context: &mut Context<'_>, task: TaskId);
}
