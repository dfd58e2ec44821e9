//! What an interrupted execution does with tasks beside the rules that stand in run_queue.rs and
//! pick.rs: what waits until locks are free.

use warmq_kernel::Context;
use warmq_units::TaskId;

use crate::execution::{Execution, Lock};
use crate::interleaved::on::{On, on_cpu};
use crate::interleaved::world::What;
use crate::pick::{Picked, Picks};
use crate::run_queue::{Machine, RunQueue};

impl On {
    /// A task goes where the program said. What goes to another CPU's own queue does so once this
    /// run queue's lock is free (`direct_dispatch()`, `run_deferred()`).
    pub(super) fn place_or_defer(&mut self, task: TaskId, flags: u64) -> bool {
        let elsewhere = self.with(|machine, _| {
            let state = machine.state.task(task);
            let target = state.direct.and_then(|how| on_cpu(how.dsq));
            target.is_some_and(|target| target != state.cpu)
        });
        if elsewhere {
            self.world(|world| world.defer(self.path, task, flags));
            return true;
        }
        let placed = self.here(|here| here.place_direct(task, flags));
        self.note_placed(task, placed)
    }

    fn note_placed(&self, task: TaskId, placed: Option<u64>) -> bool {
        if let Some(dsq) = placed {
            self.note(What::Queued(task, dsq));
        }
        placed.is_some()
    }

    /// Tasks that were to go to other CPUs' own queues do.
    pub(super) async fn place_elsewhere(&mut self) {
        while let Some((task, flags)) = self.world(|world| world.next_deferred(self.path)) {
            let which = |machine: &mut Machine| {
                let state = machine.state.task(task);
                let target = state.direct.and_then(|how| on_cpu(how.dsq));
                [Some(state.cpu), target].into_iter().flatten().collect()
            };
            let place = |machine: &mut Machine, at: &mut Context<'_>| {
                machine.here(at).place_direct(task, flags)
            };
            let placed = self.with_run_queues(which, place).await;
            self.note_placed(task, placed);
        }
    }

    /// This CPU picks, under its run queue's lock. `previous` is who ran, if that can go on.
    pub(super) async fn pick_next(&mut self, previous: Option<TaskId>) {
        let left = self.current();
        let next = match self.pick(previous, None).await {
            Picked::GoesOn(task) => {
                return self.world(|world| world.switched(self.cpu, Some(task), Some(task)));
            }
            Picked::Next(next) => next,
        };
        self.world(|world| world.switched(self.cpu, left, next));
        self.note(What::Runs(next));
        if let Some(task) = left.filter(|task| Some(*task) != next) {
            self.move_left(task).await;
        }
    }

    /// The affinity of the task that has left was changed while this CPU picked: the migration
    /// thread, which waited for the CPU, moves it all the same.
    async fn move_left(&mut self, task: TaskId) {
        let cpu = self.cpu;
        let lost = |machine: &mut Machine, at: &mut Context<'_>| {
            machine.state.task(task).cpu == cpu && !at.task(task).may_run_on(cpu)
        };
        if self.with(lost) {
            let own = [Lock::RunQueue(cpu)];
            self.unlock(&own);
            let locks = self.lock_task(task).await;
            self.migrate_if_lost(task, locks).await;
            self.lock(&own).await;
        }
    }

    /// What is to be done once locks are free: tasks for other CPUs' own queues, queues to enqueue
    /// again, kicks (`run_deferred()`, `kick_cpus_irq_workfn()`).
    pub(super) async fn finish(&mut self) {
        self.place_deferred().await;
        self.reenqueue().await;
        self.send_kicks().await;
    }

    /// Each kick waits until the lock of that CPU's run queue is free (`kick_one_cpu()`).
    async fn send_kicks(&mut self) {
        while let Some(kick) = self.with(|machine, _| machine.state.own.kicks.pop()) {
            let lock = [Lock::RunQueue(kick.0)];
            self.lock(&lock).await;
            self.here(|here| {
                let others = std::mem::replace(&mut here.state.own.kicks, vec![kick]);
                here.send_kicks();
                here.state.own.kicks = others;
            });
            self.note(What::Kicks(kick.0));
            self.unlock(&lock);
        }
    }
}
