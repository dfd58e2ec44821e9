//! A path on its CPU: how it reaches the kernel's state, calls the program, and waits.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::mem::swap;
use std::rc::Rc;
use std::task::Poll;

use warmq_bpf_run::{Callee, Next};
use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use crate::again::Again;
use crate::call::Code;
use crate::interleaved::locks::Lock;
use crate::interleaved::world::{Place, What, World};
use crate::kfuncs::KFUNCS;
use crate::masks;
use crate::queue::Dsq;
use crate::run_queue::{Callbacks, Machine};
use crate::state::{During, Insert, State, Walk};
use crate::words::dsq;

/// `bpf_spin_lock` and `bpf_spin_unlock`.
const SPIN_LOCK: u32 = 93;
const SPIN_UNLOCK: u32 = 94;

/// What the kernel knows of a path alone, and [`State`] has only while it goes on.
#[derive(Default)]
pub(super) struct Own {
    during: During,
    batch: Vec<(TaskId, u64, Insert)>,
    dispatched: u64,
    picking: Option<CpuId>,
    finding: Option<CpuId>,
    walks: BTreeMap<u64, Walk>,
    css_walks: BTreeMap<u64, VecDeque<u64>>,
    kicks: Vec<(CpuId, u64)>,
    again: Vec<Again>,
}

impl Own {
    pub(super) fn exchange(&mut self, state: &mut State) {
        swap(&mut self.during, &mut state.during);
        swap(&mut self.batch, &mut state.batch);
        swap(&mut self.dispatched, &mut state.dispatched);
        swap(&mut self.picking, &mut state.picking);
        swap(&mut self.finding, &mut state.finding);
        swap(&mut self.walks, &mut state.walks);
        swap(&mut self.css_walks, &mut state.css_walks);
        swap(&mut self.kicks, &mut state.kicks);
        swap(&mut self.again, &mut state.again);
    }
}

/// A path of the kernel, on its CPU.
#[derive(Clone)]
pub(super) struct On {
    pub(super) world: Rc<RefCell<World>>,
    /// Its number.
    pub(super) path: usize,
    pub(super) cpu: CpuId,
}

impl On {
    /// Does something in one piece.
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut Machine, &mut Context<'_>) -> R) -> R {
        self.world.borrow_mut().with(self.path, self.cpu, act)
    }

    /// Reads or changes what is around sched_ext.
    pub(super) fn world<R>(&self, act: impl FnOnce(&mut World) -> R) -> R {
        act(&mut self.world.borrow_mut())
    }

    pub(super) fn callbacks(&self) -> Callbacks {
        self.world.borrow().callbacks()
    }

    /// Waits until it has all of these locks.
    pub(super) async fn lock(&self, locks: &[Lock]) {
        poll_fn(|_| self.world.borrow_mut().poll_locks(self.path, locks)).await;
    }

    /// Waits for the CPUs that it has kicked with `SCX_KICK_WAIT`, if it is to.
    pub(super) async fn wait_for_kicked(&self) {
        poll_fn(|_| self.world.borrow_mut().poll_kicked(self.path)).await;
    }

    pub(super) fn unlock(&self, locks: &[Lock]) {
        let mut world = self.world.borrow_mut();
        for lock in locks {
            world.locks.release(self.path, *lock);
        }
    }

    /// Has the locks of the run queues that `which` names, and meanwhile does something in one
    /// piece. Its own is given up where it must wait for others, as in the kernel.
    pub(super) async fn with_run_queues<R>(
        &self,
        which: impl Fn(&mut Machine) -> Vec<CpuId>,
        act: impl FnOnce(&mut Machine, &mut Context<'_>) -> R,
    ) -> R {
        let taken = self.take_run_queues(which).await;
        let result = self.with(act);
        self.unlock(&taken);
        result
    }

    /// Takes the locks of the run queues that `which` names once it has them; those that it is to
    /// give back.
    async fn take_run_queues(&self, which: impl Fn(&mut Machine) -> Vec<CpuId>) -> Vec<Lock> {
        let own = Lock::RunQueue(self.cpu);
        let kept = self.holds(own);
        let named = || self.with(|machine, _| which(machine)).into_iter();
        loop {
            let mut wanted: BTreeSet<Lock> = named().map(Lock::RunQueue).collect();
            if wanted.iter().any(|lock| *lock != own) && self.holds(own) {
                self.unlock(&[own]);
                self.interrupted(Place::Unlocked).await;
            }
            wanted.extend(kept.then_some(own));
            let mut taken: Vec<Lock> = wanted.iter().copied().collect();
            self.lock(&taken).await;
            if named().all(|cpu| wanted.contains(&Lock::RunQueue(cpu))) {
                taken.retain(|lock| !(kept && *lock == own));
                return taken;
            }
            self.unlock(&taken);
        }
    }

    pub(super) fn holds(&self, lock: Lock) -> bool {
        self.world(|world| world.locks.holds(self.path, lock))
    }

    /// Calls a callback of the program, which may be interrupted; `None` if it is not defined, or
    /// the program has been ejected.
    pub(super) async fn call(
        &self,
        function: Option<u32>,
        during: During,
        args: &[u64],
    ) -> Option<u64> {
        self.run(function?, during, args, true).await
    }

    /// Calls a timer's function, which takes its arguments as they are.
    pub(super) async fn call_timer(&self, function: u32, args: &[u64]) -> Option<u64> {
        self.run(function, During::Other, args, false).await
    }

    /// Calls a callback with a task as its first argument.
    pub(super) async fn call_task(
        &self,
        function: Option<u32>,
        task: TaskId,
        more: &[u64],
    ) -> Option<u64> {
        function?;
        let mut args = vec![self.with(|machine, context| {
            machine.here(context).write_state(task);
            machine.state.task(task).address
        })];
        args.extend(more);
        self.call(function, During::Other, &args).await
    }

    async fn run(&self, function: u32, during: During, args: &[u64], context: bool) -> Option<u64> {
        if self.is_ejected() {
            return None;
        }
        self.note(What::Begins(function));
        let code = self.with(|machine, _| machine.code.clone());
        let mut callback = self.with(|machine, at| {
            machine.state.during = during;
            machine.here(at).begin(&code, function, args, context)
        });
        let returned = loop {
            let next = callback.next(&code.program);
            let taken = self.before(next, &code).await;
            let result = self.with(|machine, at| machine.here(at).go_on(&code, &mut callback));
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
        self.with(|machine, _| machine.state.during = During::Other);
        self.note(What::Returns(function));
        returned.filter(|_| !self.is_ejected())
    }

    /// Takes the locks that the kernel takes in the call that comes next; those that it is to give
    /// back afterwards.
    async fn before(&self, next: Option<Next>, code: &Code) -> Vec<Lock> {
        match next {
            Some(Next::Call(Callee::Helper(SPIN_LOCK), [address, ..])) => {
                self.lock(&[Lock::Spin(address)]).await;
                Vec::new()
            }
            Some(Next::Call(Callee::Kfunc(which), args)) => {
                self.note(What::Calls(which, args));
                let Some(moves) = moves(code, which) else {
                    return Vec::new();
                };
                self.take_run_queues(|machine| moves(machine, self.cpu, args))
                    .await
            }
            _ => Vec::new(),
        }
    }

    fn after(&self, done: Option<Next>, taken: &[Lock]) {
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

    pub(super) fn eject(&self, why: String) {
        self.with(|machine, at| machine.here(at).eject(why));
    }

    pub(super) fn is_ejected(&self) -> bool {
        self.world(|world| world.ejected().is_some())
    }
}

/// The CPUs whose run queues a kfunc moves tasks between.
type Moves = fn(&mut Machine, CpuId, [u64; 5]) -> Vec<CpuId>;

/// Kfuncs that move tasks from one run queue to another, by how their names begin.
const MOVES: &[(&str, Moves)] = &[
    ("scx_bpf_dsq_move_set", |_, _, _| Vec::new()),
    ("scx_bpf_dsq_move_to_local", |machine, cpu, [id, ..]| {
        let mut cpus = of_batch(machine, cpu);
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
        cpus.extend(first.map(|task| machine.state.task(task).cpu));
        cpus
    }),
    ("scx_bpf_dsq_move", |machine, _, [_, task, id, ..]| {
        let task = machine.state.by_address.get(&task).copied();
        let mut cpus: Vec<CpuId> = task
            .map(|task| machine.state.task(task).cpu)
            .into_iter()
            .collect();
        cpus.extend(on_cpu(id));
        cpus
    }),
];

/// What a kfunc moves, by its index in `Image::kfuncs`.
fn moves(code: &Code, which: u32) -> Option<Moves> {
    let known = code.table.get(which as usize).copied().flatten()?;
    let name = KFUNCS[known].0;
    let found = MOVES.iter().find(|(begins, _)| name.starts_with(begins));
    found.map(|(_, moves)| *moves)
}

/// The CPU in whose own queue a number says.
pub(super) fn on_cpu(id: u64) -> Option<CpuId> {
    let there = id & dsq::LOCAL_ON == dsq::LOCAL_ON;
    there.then_some(CpuId((id & dsq::CPU_MASK) as u16))
}

/// The run queues between which tasks move that `ops.dispatch` has inserted so far.
pub(super) fn of_batch(machine: &mut Machine, picking: CpuId) -> Vec<CpuId> {
    let state = &machine.state;
    let mut cpus = Vec::new();
    for (task, _, how) in &state.batch {
        let target = on_cpu(how.dsq).or((how.dsq == dsq::LOCAL).then_some(picking));
        if let Some(target) = target {
            cpus.extend([state.task(*task).cpu, target]);
        }
    }
    cpus
}
