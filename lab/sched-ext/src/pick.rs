//! How a CPU picks its next task (`pick_task_scx()`, `put_prev_task_scx()`, `set_next_task_scx()`),
//! under its run queue's lock.

use warmq_kernel::{Context, Pick};
use warmq_units::{CpuId, TaskId};

use crate::execution::{Lock, at_once};
use crate::masks;
use crate::queue::Dsq;
use crate::run_queue::{Machine, RunQueue};
use crate::state::{During, Held};
use crate::words::{MOST_DISPATCHES, ops};

/// The result of looking for a task (`enum scx_dsp_verdict`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Who runs goes on.
    Previous,
    /// The first of the own queue, if it has one.
    Local,
}

/// The result of a pick.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Picked {
    /// Who ran goes on.
    GoesOn(TaskId),
    /// A task takes its place, or none.
    Next(Option<TaskId>),
}

impl From<Picked> for Pick {
    fn from(picked: Picked) -> Pick {
        match picked {
            Picked::GoesOn(task) | Picked::Next(Some(task)) => Pick::Task(task),
            Picked::Next(None) => Pick::Idle,
        }
    }
}

impl Machine {
    /// The next task of sched_ext of this CPU; `urgent` runs if there is none.
    pub(crate) fn pick(
        &mut self,
        context: &mut Context<'_>,
        previous: Option<TaskId>,
        urgent: Option<TaskId>,
    ) -> Picked {
        context.compute(self.state.costs.pick);
        self.note_online(context);
        at_once(self.on(context).pick(previous, urgent))
    }

    /// A CPU that picks is online, also if it was not.
    fn note_online(&mut self, context: &mut Context<'_>) {
        let cpu = context.cpu();
        if masks::contains(&self.guest, self.state.online, cpu) {
            return;
        }
        masks::put(&mut self.guest, self.state.online, cpu, true);
        let variables = self.state.variables;
        variables.write_online(&mut self.guest, cpu, true);
        self.hotplug(context, self.code.callbacks.cpu_online, cpu);
    }

    /// What there is to run without asking the program.
    fn found(
        &mut self,
        context: &mut Context<'_>,
        cpu: CpuId,
        previous: Option<TaskId>,
    ) -> Option<Verdict> {
        let here = self.here(context);
        if previous.is_some_and(|task| here.slice(task) > 0) {
            return Some(Verdict::Previous);
        }
        let node = here.node_of(cpu);
        let local = self.first_local(context, cpu).is_some();
        (local || self.here(context).consume(Dsq::Global(node), cpu, 0)).then_some(Verdict::Local)
    }

    /// The program has nothing: who ran goes on, unless it is to be asked about that.
    fn found_nothing(&mut self, previous: Option<TaskId>) -> Verdict {
        match previous {
            Some(_) if self.state.flags & ops::ENQ_LAST == 0 => {
                self.state.counts.keep_last += 1;
                Verdict::Previous
            }
            _ => Verdict::Local,
        }
    }

    /// The first task of the own queue of a CPU that can run there now.
    fn first_local(&mut self, context: &mut Context<'_>, cpu: CpuId) -> Option<TaskId> {
        let tasks: Vec<TaskId> = self.state.cpu(cpu).local.tasks.values().copied().collect();
        let mut here = self.here(context);
        tasks.into_iter().find(|task| here.may_take(*task, cpu))
    }

    /// CPUs that would have taken a task while it left its own look again.
    pub(crate) fn has_left(&mut self, context: &mut Context<'_>, task: TaskId) {
        let wanted = std::mem::take(&mut self.state.leaving);
        for (leaving, cpu) in wanted {
            if leaving != task {
                self.state.leaving.push((leaving, cpu));
            } else if context.running_on(cpu).is_none() {
                context.reschedule(cpu);
            }
        }
    }
}

/// CPUs pick.
pub(crate) trait Picks: RunQueue {
    /// The next task of this CPU. `previous` is who ran, if that can go on; `urgent` runs if the
    /// program has none.
    async fn pick(&mut self, previous: Option<TaskId>, urgent: Option<TaskId>) -> Picked {
        let cpu = self.cpu();
        let ran = self.here(|here| {
            here.begin_pick(cpu);
            here.state.cpu(cpu).current.is_some()
        });
        let stays = self.keep_or_move(previous).await;
        let verdict = self.find(stays).await;
        self.here(|here| here.settle_immediate(cpu));
        // Its own lock was given up, perhaps.
        let stays = stays.filter(|task| self.with(|machine, _| machine.state.task(*task).queued));
        if let (Verdict::Previous, Some(task)) = (verdict, stays) {
            self.here(|here| {
                here.state.own.picking = None;
                if here.slice(task) == 0 {
                    here.refill(task);
                }
            });
            return Picked::GoesOn(task);
        }
        let next = self.with(|machine, at| machine.first_local(at, cpu));
        if let Some(task) = stays {
            self.put_back(task, next).await;
        }
        self.with(|machine, _| {
            machine.state.own.picking = None;
            machine.state.cpu_mut(cpu).current = None;
        });
        match (next, urgent) {
            (Some(task), _) => self.set_next(task).await,
            (None, Some(task)) => {
                self.with(|machine, _| machine.stop_server(cpu));
                self.run_urgent(task).await;
            }
            (None, None) => self.idle(ran).await,
        }
        Picked::Next(next.or(urgent))
    }

    /// This CPU begins to pick. Returns who ran, if that is on the run queue and may go on here;
    /// one that may not moves away.
    async fn keep_or_move(&mut self, previous: Option<TaskId>) -> Option<TaskId> {
        let cpu = self.cpu();
        let (previous, stays) = self.with(|machine, at| {
            machine.state.own.picking = Some(cpu);
            let previous = previous.filter(|task| machine.state.task(*task).queued);
            let stays = previous.filter(|task| at.task(*task).may_run_on(cpu));
            (previous, stays)
        });
        if let Some(task) = previous.filter(|_| stays.is_none()) {
            self.move_away(task).await;
        }
        stays
    }

    /// Finds something to run (`dispatch_one()`).
    async fn find(&mut self, previous: Option<TaskId>) -> Verdict {
        let cpu = self.cpu();
        let found = self.with(|machine, at| {
            machine.state.own.finding = Some(cpu);
            machine.acquire(at, cpu);
            machine.here(at).update_current(cpu);
            machine.found(at, cpu, previous)
        });
        let found = match found {
            None => self.dispatch(previous).await,
            found => found,
        };
        self.with(|machine, _| {
            machine.state.own.finding = None;
            found.unwrap_or_else(|| machine.found_nothing(previous))
        })
    }

    /// Asks the program again and again (`scx_dispatch_sched()`).
    async fn dispatch(&mut self, previous: Option<TaskId>) -> Option<Verdict> {
        let cpu = self.cpu();
        let dispatch = self.callbacks().dispatch?;
        if !self.with(|_, at| at.is_online(cpu)) {
            return None;
        }
        for _ in 0..MOST_DISPATCHES {
            let args = self.with(|machine, _| {
                machine.state.own.dispatched = 0;
                let address = previous.map_or(0, |task| machine.state.task(task).address);
                [u64::from(cpu.0), address]
            });
            self.call(Some(dispatch), During::Dispatch, &args).await?;
            self.flush().await;
            let found = self.with(|machine, at| machine.found(at, cpu, previous));
            if found.is_some() || self.with(|machine, _| machine.state.own.dispatched) == 0 {
                return found;
            }
        }
        // It goes on after what is to be done meanwhile.
        self.with(|machine, _| machine.state.own.kicks.push((cpu, 0)));
        None
    }

    /// Who ran is put down, and could go on.
    async fn stop(&mut self, task: TaskId) {
        let cpu = self.cpu();
        self.here(|here| here.update_current(cpu));
        let stopping = self.callbacks().stopping;
        self.call_task(stopping, task, &[1]).await;
        self.here(|here| here.begin_wait(task));
    }

    /// Who ran may not go on here: the migration thread takes the CPU from it, and it to another,
    /// before this one asks the program for a task (`migration_cpu_stop()`).
    async fn move_away(&mut self, task: TaskId) {
        self.stop(task).await;
        let cpu = self.cpu();
        self.here(|here| {
            here.state.cpu_mut(cpu).current = None;
            here.count_switch(cpu);
        });
        self.left(task);
        let own = [Lock::RunQueue(cpu)];
        self.unlock(&own);
        let [run_queue, pi] = self.lock_task(task).await;
        let there = self.with(|machine, _| {
            let (now, state) = (machine.state.before(task), machine.state.task(task));
            now.queued && !now.runs && state.on.is_none() && state.held == Held::Kernel
        });
        // Somebody may have changed it meanwhile, and queued it again.
        if !there {
            self.migrate_if_lost(task, [run_queue, pi]).await;
            return self.lock(&own).await;
        }
        let to = self.with(|machine, at| {
            let mut cpus = (0..at.cpus()).map(CpuId);
            let to = cpus.find(|cpu| at.task(task).may_run_on(*cpu));
            let to = to.unwrap_or(cpu);
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

    /// Who ran and still could goes back to the program (`put_prev_task_scx()`).
    async fn put_back(&mut self, task: TaskId, next: Option<TaskId>) {
        self.stop(task).await;
        let cpu = self.cpu();
        let (enq, has_slice, immediate) = self.here(|here| {
            let immediate = here.state.task(task).immediate;
            (here.state.enq, here.slice(task) > 0, immediate)
        });
        let last = if next.is_none() { enq.last } else { 0 };
        match (has_slice, immediate) {
            (true, true) => self.give(task, enq.reenqueued).await,
            (true, false) => self.here(|here| here.keep_first(task, cpu)),
            (false, _) => self.give(task, last).await,
        }
        self.with(|machine, _| {
            let on = machine.state.task(task).on;
            if next.is_none() && on.is_some_and(|(on, _)| on == Dsq::Local(cpu)) {
                machine.state.own.kicks.push((cpu, 0));
            }
        });
    }

    /// The CPU runs a task (`set_next_task_scx()`).
    async fn set_next(&mut self, task: TaskId) {
        let (cpu, handover) = (self.cpu(), [Lock::Handover(task)]);
        self.lock(&handover).await;
        self.unlock(&handover);
        let now = self.here(|here| {
            let now = here.now();
            here.take(task, cpu);
            now
        });
        self.leave_idle().await;
        self.here(|here| {
            let state = here.state.cpu_mut(cpu);
            state.current = Some(task);
            state.exec_start = now;
            here.count_wait(task);
        });
        self.picked(Some(task));
        let running = self.callbacks().running;
        self.call_task(running, task, &[]).await;
    }

    /// The CPU runs a task of a class above.
    async fn run_urgent(&mut self, task: TaskId) {
        self.leave_idle().await;
        self.with(|machine, at| machine.set_urgent(at, task));
    }

    /// The CPU idles no longer (`put_prev_task_idle()`).
    async fn leave_idle(&mut self) {
        let cpu = self.cpu();
        if self.here(|here| here.end_idle(cpu)) {
            let update = self.callbacks().update_idle;
            let args = [cpu.0.into(), 0];
            self.call(update, During::Other, &args).await;
        }
    }

    /// The CPU has nothing to run (`scx_update_idle()`): the masks say so again each time, and the
    /// program hears when that begins.
    async fn idle(&mut self, begins: bool) {
        let cpu = self.cpu();
        self.picked(None);
        let known = self.here(|here| {
            here.note_idle(cpu, true);
            std::mem::replace(&mut here.state.cpu_mut(cpu).known_idle, true)
        });
        if begins || !known {
            let update = self.callbacks().update_idle;
            let args = [cpu.0.into(), 1];
            self.call(update, During::Other, &args).await;
        }
    }
}

impl<E: RunQueue> Picks for E {}
