//! A path on its CPU: how it reaches the kernel's state, calls the program, and waits.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use warmq_bpf_run::{Callee, Next};
use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use crate::call::{Call, Code};
use crate::execution::{Execution, Lock};
use crate::interleaved::world::{Place, What, World};
use crate::kfuncs::KFUNCS;
use crate::masks;
use crate::queue::Dsq;
use crate::run_queue::Machine;
use crate::state::Dispatched;
use crate::words::dsq;

/// `bpf_spin_lock` and `bpf_spin_unlock`.
const SPIN_LOCK: u32 = 93;
const SPIN_UNLOCK: u32 = 94;

/// A path of the kernel, on its CPU.
pub(super) struct On {
    pub(super) world: Rc<RefCell<World>>,
    /// Its number.
    pub(super) path: usize,
    pub(super) cpu: CpuId,
}

impl Execution for On {
    fn cpu(&self) -> CpuId {
        self.cpu
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Machine, &mut Context<'_>) -> R) -> R {
        self.world.borrow_mut().with(self.cpu, act)
    }

    /// The call may be interrupted.
    async fn run(&mut self, call: Call<'_>) -> Option<u64> {
        if self.is_ejected() {
            return None;
        }
        self.note(What::Begins(call.function));
        let (code, outer) =
            self.with(|machine, _| (machine.code.clone(), machine.state.own.during));
        let mut callback = self.here(|here| here.begin(call));
        let returned = loop {
            let next = callback.next(&code.program);
            let taken = self.before(next, &code).await;
            let result = self.here(|here| here.go_on(&mut callback));
            Box::pin(self.notify_left()).await;
            self.after(next, &taken);
            match result {
                Ok(None) => {
                    let at = callback.at(&code.program);
                    self.interrupted(Place::Before(at)).await;
                }
                Ok(Some(value)) => break Some(value),
                Err(ended) => {
                    self.with(|machine, _| machine.state.ejected = Some(ended.to_string()));
                    break None;
                }
            }
        };
        self.with(|machine, _| machine.state.own.during = outer);
        self.note(What::Returns(call.function));
        returned.filter(|_| !self.is_ejected())
    }

    fn place(&mut self, task: TaskId, flags: u64) -> bool {
        self.place_or_defer(task, flags)
    }

    async fn flush(&mut self) {
        let cpu = self.cpu;
        while let Some(dispatched) = self.here(|here| here.next_dispatched(cpu)) {
            self.finish_dispatch(dispatched).await;
        }
    }

    async fn notify_left(&mut self) {
        while let Some(task) = self.with(|machine, _| machine.state.own.left.pop()) {
            let dequeue = self.callbacks().dequeue;
            self.call_task(dequeue, task, &[0]).await;
        }
    }

    async fn lock(&mut self, locks: &[Lock]) {
        poll_fn(|_| self.world.borrow_mut().poll_locks(self.path, locks)).await;
    }

    fn unlock(&mut self, locks: &[Lock]) {
        let mut world = self.world.borrow_mut();
        for lock in locks {
            world.locks.release(self.path, *lock);
        }
    }

    async fn place_deferred(&mut self) {
        self.place_elsewhere().await;
    }

    fn picked(&mut self, next: Option<TaskId>) {
        self.world(|world| world.hand.set_running(self.cpu, next));
    }

    fn left(&mut self, task: TaskId) {
        self.world(|world| world.hand.set_on_cpu(task, None));
    }
}

impl On {
    /// Reads or changes what is around sched_ext.
    pub(super) fn world<R>(&self, act: impl FnOnce(&mut World) -> R) -> R {
        act(&mut self.world.borrow_mut())
    }

    /// Waits for the CPUs that it has kicked with `SCX_KICK_WAIT`, if it is to.
    pub(super) async fn wait_for_kicked(&self) {
        poll_fn(|_| self.world.borrow_mut().poll_kicked(self.path)).await;
    }

    /// A task goes where `ops.dispatch` said. A dequeue of the task waits until it is in a queue of
    /// no CPU, and may come in on the way to one of a CPU (`dispatch_to_local_dsq()`).
    async fn finish_dispatch(&mut self, (task, sequence, how): Dispatched) {
        let (handover, target) = ([Lock::Handover(task)], on_cpu(how.dsq));
        self.lock(&handover).await;
        if target.is_some() {
            self.unlock(&handover);
        }
        let cpus = |machine: &mut Machine| {
            let from = target.map(|_| machine.state.task(task).cpu);
            from.into_iter().chain(target).collect()
        };
        let place = |machine: &mut Machine, at: &mut Context<'_>| {
            machine.here(at).finish_dispatch((task, sequence, how));
        };
        self.with_run_queues(cpus, place).await;
        self.unlock(&handover);
    }

    /// Has the locks of the run queues that `which` names, and meanwhile does something in one
    /// piece, of which the program is notified. Its own is given up where it must wait for others,
    /// as in the kernel.
    pub(super) async fn with_run_queues<R>(
        &mut self,
        which: impl Fn(&mut Machine) -> Vec<CpuId>,
        act: impl FnOnce(&mut Machine, &mut Context<'_>) -> R,
    ) -> R {
        let taken = self.take_run_queues(which).await;
        let result = self.with(act);
        self.notify_left().await;
        self.unlock(&taken);
        result
    }

    /// Takes the locks of the run queues that `which` names once it has them; those that it is to
    /// give back.
    async fn take_run_queues(&mut self, which: impl Fn(&mut Machine) -> Vec<CpuId>) -> Vec<Lock> {
        let own = Lock::RunQueue(self.cpu);
        let kept = self.holds(own);
        let named = |on: &mut On| on.with(|machine, _| which(machine)).into_iter();
        loop {
            let mut wanted: BTreeSet<Lock> = named(self).map(Lock::RunQueue).collect();
            if wanted.iter().any(|lock| *lock != own) && self.holds(own) {
                self.unlock(&[own]);
                self.interrupted(Place::Unlocked).await;
            }
            wanted.extend(kept.then_some(own));
            let mut taken: Vec<Lock> = wanted.iter().copied().collect();
            self.lock(&taken).await;
            if named(self).all(|cpu| wanted.contains(&Lock::RunQueue(cpu))) {
                taken.retain(|lock| !(kept && *lock == own));
                return taken;
            }
            self.unlock(&taken);
        }
    }

    fn holds(&self, lock: Lock) -> bool {
        self.world(|world| world.locks.holds(self.path, lock))
    }

    /// Takes the locks that the kernel takes in the call that comes next; those that it is to give
    /// back afterwards.
    async fn before(&mut self, next: Option<Next>, code: &Code) -> Vec<Lock> {
        match next {
            Some(Next::Call(Callee::Helper(SPIN_LOCK), [address, ..])) => {
                self.lock(&[Lock::Spin(address)]).await;
                Vec::new()
            }
            Some(Next::Call(Callee::Kfunc(which), args)) => {
                self.note(What::Calls(which, args));
                let Some((flushes, moves)) = moves(code, which) else {
                    return Vec::new();
                };
                if flushes {
                    Box::pin(self.flush()).await;
                }
                let cpu = self.cpu;
                self.take_run_queues(|machine| moves(machine, cpu, args))
                    .await
            }
            _ => Vec::new(),
        }
    }

    fn after(&mut self, done: Option<Next>, taken: &[Lock]) {
        self.unlock(taken);
        if let Some(Next::Call(Callee::Helper(SPIN_UNLOCK), [address, ..])) = done {
            self.unlock(&[Lock::Spin(address)]);
        }
    }

    /// Others may come in here.
    async fn interrupted(&self, place: Place) {
        let mut held = false;
        poll_fn(|_| {
            let passes = held || self.world(|world| world.passes(self.path, place));
            held = true;
            if passes {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    pub(super) fn note(&self, what: What) {
        self.world(|world| world.note(self.path, what));
    }

    fn is_ejected(&self) -> bool {
        self.world(|world| world.ejected().is_some())
    }
}

/// The CPUs whose run queues a kfunc moves tasks between.
type Moves = fn(&mut Machine, CpuId, [u64; 5]) -> Vec<CpuId>;

/// The kfunc before which what was inserted takes effect.
const FLUSHES: &str = "scx_bpf_dsq_move_to_local";

/// Kfuncs that move tasks from one run queue to another, by how their names begin.
const MOVES: &[(&str, Moves)] = &[
    ("scx_bpf_dsq_move_set", |_, _, _| Vec::new()),
    (FLUSHES, |machine, cpu, [id, ..]| {
        let tasks = machine
            .state
            .queue(Dsq::User(id))
            .map(|queue| queue.in_order(false));
        let mask = machine.state.layouts.task.cpus_mask;
        let may = |task: &TaskId| {
            let mask = mask.within(machine.state.task(*task).address);
            masks::contains(&machine.guest, mask, cpu)
        };
        let first = tasks.unwrap_or_default().into_iter().find(may);
        let from = first.map(|task| machine.state.task(task).cpu);
        from.into_iter().collect()
    }),
    ("scx_bpf_dsq_move", |machine, _, [_, task, id, ..]| {
        let task = machine.state.by_address.get(&task);
        let from = task.map(|task| machine.state.task(*task).cpu);
        from.into_iter().chain(on_cpu(id)).collect()
    }),
];

/// What a kfunc moves, by its index in `Image::kfuncs`, and whether it flushes before.
fn moves(code: &Code, which: u32) -> Option<(bool, Moves)> {
    let known = code.table.get(which as usize).copied().flatten()?;
    let name = KFUNCS[known].0;
    let found = MOVES.iter().find(|(begins, _)| name.starts_with(begins));
    found.map(|(begins, moves)| (*begins == FLUSHES, *moves))
}

/// The CPU in whose own queue a number says.
pub(super) fn on_cpu(id: u64) -> Option<CpuId> {
    dsq::on_cpu(id).map(|cpu| CpuId(cpu as u16))
}
