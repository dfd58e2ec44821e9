//! How a CPU picks its next task, as in run_queue.rs, where others come in.

use warmq_units::{CpuId, TaskId};

use crate::interleaved::locks::Lock;
use crate::interleaved::on::{On, of_batch};
use crate::interleaved::world::What;
use crate::queue::Dsq;
use crate::state::{During, Held};
use crate::words::{MOST_DISPATCHES, ops};

/// What was found: that who runs goes on, or who is first in the own queue, if anybody is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Previous,
    Local,
}

impl On {
    /// This CPU picks, under its run queue's lock. `previous` is who ran, if that can go on.
    pub(super) async fn pick(&self, previous: Option<TaskId>) {
        let cpu = self.cpu;
        let left = self.with(|machine, _| machine.state.cpu(cpu).current);
        let ran = left.is_some();
        self.with(|machine, at| machine.here(at).begin_pick(cpu));
        let stays = previous.filter(|task| self.world(|world| world.may_run(*task, cpu)));
        self.with(|machine, _| machine.state.picking = Some(cpu));
        if let Some(task) = previous.filter(|_| stays.is_none()) {
            self.move_away(task).await;
        }
        self.with(|machine, _| machine.state.finding = Some(cpu));
        let found = self.find(stays).await;
        self.with(|machine, at| {
            machine.here(at).settle_immediate(cpu);
            machine.state.finding = None;
        });
        // Its own lock was given up, perhaps.
        let stays = stays.filter(|task| self.is_queued(*task));
        if let (Found::Previous, Some(task)) = (found, stays) {
            return self.go_on(task);
        }
        let next = self.first_local();
        if let Some(task) = stays {
            self.put_back(task, next).await;
        }
        self.with(|machine, _| {
            machine.state.picking = None;
            machine.state.cpu_mut(cpu).current = None;
        });
        match next {
            Some(task) => self.set_next(task).await,
            None => self.idle(ran).await,
        }
        self.world(|world| world.switched(cpu, left, next));
        self.note(What::Runs(next));
        if let Some(task) = left.filter(|task| Some(*task) != next) {
            self.move_left(task).await;
        }
    }

    fn go_on(&self, task: TaskId) {
        self.with(|machine, at| {
            machine.state.picking = None;
            let mut here = machine.here(at);
            if here.slice(task) == 0 {
                here.refill(task);
            }
        });
        self.world(|world| world.switched(self.cpu, Some(task), Some(task)));
    }

    fn is_queued(&self, task: TaskId) -> bool {
        self.with(|machine, _| machine.state.task(task).queued)
    }

    fn first_local(&self) -> Option<TaskId> {
        self.with(|machine, at| machine.first_local(at, self.cpu))
    }

    /// Whether there is something in the own queue, or in the global one.
    fn has_local(&self) -> bool {
        self.first_local().is_some() || self.consumes_global()
    }

    fn consumes_global(&self) -> bool {
        self.with(|machine, at| {
            let node = machine.state.cpu(self.cpu).node;
            machine.here(at).consume(Dsq::Global(node), self.cpu, 0)
        })
    }

    /// Finds something to run (`dispatch_one()`).
    async fn find(&self, previous: Option<TaskId>) -> Found {
        self.with(|machine, at| machine.here(at).update_current(self.cpu));
        if self.has_slice(previous) {
            return Found::Previous;
        }
        if self.has_local() {
            return Found::Local;
        }
        if let Some(found) = self.dispatch(previous).await {
            return found;
        }
        let last = self.with(|machine, _| machine.state.flags & ops::ENQ_LAST == 0);
        match previous {
            Some(_) if last => Found::Previous,
            _ => Found::Local,
        }
    }

    fn has_slice(&self, task: Option<TaskId>) -> bool {
        let slice = |task| self.with(|machine, at| machine.here(at).slice(task));
        task.is_some_and(|task| slice(task) > 0)
    }

    /// Asks the program again and again (`scx_dispatch_sched()`).
    async fn dispatch(&self, previous: Option<TaskId>) -> Option<Found> {
        let function = self.callbacks().dispatch?;
        for _ in 0..MOST_DISPATCHES {
            let address = previous.map_or(0, |task| self.address(task));
            self.with(|machine, _| machine.state.dispatched = 0);
            let args = [u64::from(self.cpu.0), address];
            self.call(Some(function), During::Dispatch, &args).await?;
            let cpu = self.cpu;
            let flush = |machine: &mut crate::run_queue::Machine,
                         at: &mut warmq_kernel::Context<'_>| {
                machine.here(at).flush(cpu);
            };
            self.with_run_queues(|machine| of_batch(machine, cpu), flush)
                .await;
            if self.has_slice(previous) {
                return Some(Found::Previous);
            }
            if self.has_local() {
                return Some(Found::Local);
            }
            if self.with(|machine, _| machine.state.dispatched) == 0 {
                return None;
            }
        }
        // It goes on after what is to be done meanwhile.
        self.with(|machine, _| machine.state.kicks.push((self.cpu, 0)));
        None
    }

    async fn stop(&self, task: TaskId) {
        self.with(|machine, at| machine.here(at).update_current(self.cpu));
        let stopping = self.callbacks().stopping;
        self.call_task(stopping, task, &[1]).await;
        self.with(|machine, at| machine.here(at).begin_wait(task));
    }

    /// Who ran may not go on here: the migration thread takes the CPU from it, and it to another,
    /// before this one asks the program for a task (`migration_cpu_stop()`).
    async fn move_away(&self, task: TaskId) {
        self.stop(task).await;
        self.with(|machine, at| {
            machine.state.cpu_mut(self.cpu).current = None;
            machine.here(at).count_switch(self.cpu);
        });
        self.world(|world| world.hand.set_on_cpu(task, None));
        let own = [Lock::RunQueue(self.cpu)];
        self.unlock(&own);
        let [run_queue, pi] = self.lock_task(task).await;
        // Somebody may have changed it meanwhile, and queued it again.
        if !self.is_nowhere(task) {
            self.migrate_if_lost(task, [run_queue, pi]).await;
            return self.lock(&own).await;
        }
        let to = self.with(|machine, at| {
            let mut cpus = (0..at.cpus()).map(CpuId);
            let to = cpus.find(|cpu| at.task(task).may_run_on(*cpu));
            let to = to.unwrap_or(self.cpu);
            machine.here(at).set_cpu(task, to);
            to
        });
        let other = [Lock::RunQueue(to)];
        self.unlock(&[run_queue]);
        self.lock(&other).await;
        self.give(task, 0).await;
        self.reschedule_if_idle(to);
        self.unlock(&other);
        self.unlock(&[pi]);
        self.lock(&own).await;
    }

    /// The affinity of the task that has left was changed while this CPU picked: the migration
    /// thread, which waited for the CPU, moves it all the same.
    async fn move_left(&self, task: TaskId) {
        let here = self.with(|machine, _| machine.state.task(task).cpu == self.cpu);
        if !here || self.world(|world| world.may_run(task, self.cpu)) {
            return;
        }
        let own = [Lock::RunQueue(self.cpu)];
        self.unlock(&own);
        let locks = self.lock_task(task).await;
        self.migrate_if_lost(task, locks).await;
        self.lock(&own).await;
    }

    /// A task that waits where it may not run goes elsewhere. Its locks are given back.
    async fn migrate_if_lost(&self, task: TaskId, locks: [Lock; 2]) {
        let (waits, cpu) = self.with(|machine, _| {
            let state = machine.state.task(task);
            let runs = machine.state.cpu(state.cpu).current == Some(task);
            (state.queued && !runs, state.cpu)
        });
        match waits && !self.world(|world| world.may_run(task, cpu)) {
            true => self.migrate(task, locks).await,
            false => self.unlock(&locks),
        }
    }

    /// Whether a task is runnable, and neither runs nor is in any queue.
    fn is_nowhere(&self, task: TaskId) -> bool {
        self.with(|machine, _| {
            let state = machine.state.task(task);
            let runs = machine.state.cpu(state.cpu).current == Some(task);
            state.queued && !runs && state.on.is_none() && state.held == Held::Kernel
        })
    }

    /// Who ran and still could goes back to the program (`put_prev_task_scx()`).
    async fn put_back(&self, task: TaskId, next: Option<TaskId>) {
        self.stop(task).await;
        let (enq, immediate) = self.with(|machine, _| {
            let state = &machine.state;
            (state.enq, state.task(task).immediate)
        });
        let last = if next.is_none() { enq.last } else { 0 };
        match (self.has_slice(Some(task)), immediate) {
            (true, true) => self.give(task, enq.reenqueued).await,
            (true, false) => self.with(|machine, at| machine.here(at).keep_first(task, self.cpu)),
            (false, _) => self.give(task, last).await,
        }
        self.with(|machine, _| {
            let on = machine.state.task(task).on;
            let local = on.is_some_and(|(on, _)| on == Dsq::Local(self.cpu));
            if next.is_none() && local {
                machine.state.kicks.push((self.cpu, 0));
            }
        });
    }

    async fn set_next(&self, task: TaskId) {
        let cpu = self.cpu;
        let was_idle = self.with(|machine, at| {
            let mut here = machine.here(at);
            here.take(task, cpu);
            here.end_idle(cpu)
        });
        if was_idle {
            let update = self.callbacks().update_idle;
            let args = [cpu.0.into(), 0];
            self.call(update, During::Other, &args).await;
        }
        self.with(|machine, at| {
            let now = at.now();
            let state = machine.state.cpu_mut(cpu);
            state.current = Some(task);
            state.exec_start = now;
            machine.here(at).count_wait(task);
        });
        self.world(|world| world.hand.set_running(cpu, Some(task)));
        let running = self.callbacks().running;
        self.call_task(running, task, &[]).await;
    }

    /// The CPU has nothing to run (`scx_update_idle()`).
    async fn idle(&self, begins: bool) {
        let cpu = self.cpu;
        self.world(|world| world.hand.set_running(cpu, None));
        let known = self.with(|machine, at| machine.here(at).idles_already(cpu));
        if begins || !known {
            let update = self.callbacks().update_idle;
            let args = [cpu.0.into(), 1];
            self.call(update, During::Other, &args).await;
        }
    }
}
