//! How the kernel's part of sched_ext is executed: at once, as the laboratory does, or
//! interrupted (interleaved/).
//!
//! Each rule of kernel/sched/ext stands once, as an `async fn` over an [`Execution`]: run_queue.rs
//! (onto a run queue and off it), pick.rs (the next task of a CPU), events.rs (the rest). An
//! execution says what a call of the program is, and what a lock; nothing of [`AtOnce`] waits.

use std::pin::pin;
use std::task::{Poll, Waker};

use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use crate::call::Call;
use crate::run_queue::{Callbacks, Machine};
use crate::state::{During, Here, Insert};

/// A lock of the kernel, or of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lock {
    /// A task's `pi_lock`, under which it is woken and changed.
    Task(TaskId),
    /// The lock of a run queue.
    RunQueue(CpuId),
    /// `cgroup_mutex`: one task at a time moves to another cgroup.
    Groups,
    /// A task goes to the program or comes from it (`SCX_OPSS_QUEUEING`, `SCX_OPSS_DISPATCHING`).
    Handover(TaskId),
    /// A `bpf_spin_lock` at an address.
    Spin(u64),
}

/// What a CPU does in the kernel, from the beginning of an event to its end.
pub(crate) trait Execution {
    /// The CPU.
    fn cpu(&self) -> CpuId;

    /// Does something in one piece.
    fn with<R>(&mut self, act: impl FnOnce(&mut Machine, &mut Context<'_>) -> R) -> R;

    /// Calls a function of the program; `None` if that has been ejected, now or before.
    async fn run(&mut self, call: Call<'_>) -> Option<u64>;

    /// A task goes where the program said, now or once locks are free; false if it has not said.
    fn place(&mut self, task: TaskId, flags: u64) -> bool;

    /// What `ops.dispatch` has inserted so far takes effect.
    async fn flush(&mut self);

    /// The program is notified of tasks that have left it, unless it was.
    async fn notify_left(&mut self) {}

    /// Waits until it has all of these locks.
    async fn lock(&mut self, _: &[Lock]) {}

    /// Gives locks back.
    fn unlock(&mut self, _: &[Lock]) {}

    /// Tasks go where they were to go once locks are free (`run_deferred()`).
    async fn place_deferred(&mut self) {}

    /// The CPU has picked a task, or none.
    fn picked(&mut self, _: Option<TaskId>) {}

    /// A task has left the CPU while that picks.
    fn left(&mut self, _: TaskId) {}

    /// Does something in one piece with the state.
    fn here<R>(&mut self, act: impl FnOnce(&mut Here<'_, '_>) -> R) -> R {
        self.with(|machine, at| act(&mut machine.here(at)))
    }

    fn callbacks(&mut self) -> Callbacks {
        self.with(|machine, _| machine.code.callbacks)
    }

    /// Calls a callback, if it is defined.
    async fn call(&mut self, function: Option<u32>, during: During, args: &[u64]) -> Option<u64> {
        self.run(Call::callback(function?, during, args)).await
    }

    /// Calls a callback with a task as its first argument.
    async fn call_task(
        &mut self,
        function: Option<u32>,
        task: TaskId,
        more: &[u64],
    ) -> Option<u64> {
        function?;
        let mut args = vec![self.here(|here| {
            here.write_state(task);
            here.state.task(task).address
        })];
        args.extend(more);
        self.call(function, During::Other, &args).await
    }
}

/// The laboratory's: each event is one piece, and all locks are free.
pub(crate) struct AtOnce<'a, 'k> {
    pub(crate) machine: &'a mut Machine,
    pub(crate) context: &'a mut Context<'k>,
}

impl Execution for AtOnce<'_, '_> {
    fn cpu(&self) -> CpuId {
        self.context.cpu()
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Machine, &mut Context<'_>) -> R) -> R {
        act(self.machine, self.context)
    }

    async fn run(&mut self, call: Call<'_>) -> Option<u64> {
        self.machine.here(self.context).run(call)
    }

    fn place(&mut self, task: TaskId, flags: u64) -> bool {
        self.here(|here| here.place_direct(task, flags)).is_some()
    }

    async fn flush(&mut self) {
        let cpu = self.cpu();
        self.here(|here| here.flush(cpu));
    }
}

/// The result of what an [`AtOnce`] does.
pub(crate) fn at_once<R>(steps: impl Future<Output = R>) -> R {
    let mut context = std::task::Context::from_waker(Waker::noop());
    match pin!(steps).poll(&mut context) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("all locks are free"),
    }
}

impl Machine {
    /// How the laboratory executes something on the CPU of a context.
    pub(crate) fn on<'a, 'k>(&'a mut self, context: &'a mut Context<'k>) -> AtOnce<'a, 'k> {
        AtOnce {
            machine: self,
            context,
        }
    }
}

impl Here<'_, '_> {
    /// Puts a task where the program said; the queue's number.
    pub(crate) fn place_direct(&mut self, task: TaskId, flags: u64) -> Option<u64> {
        let how = self.set_direct(task, None)?;
        let flags = how.flags | flags;
        self.place(task, Insert { flags, ..how });
        Some(how.dsq)
    }
}
