//! A task's way onto a run queue and off it, as in run_queue.rs, where others come in.

use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use crate::interleaved::locks::Lock;
use crate::interleaved::on::{On, on_cpu};
use crate::interleaved::world::What;
use crate::kfuncs;
use crate::queue::Dsq;
use crate::run_queue::Machine;
use crate::state::{During, Held, Insert};
use crate::words::ops;

impl On {
    /// `select_task_rq_scx()`, under the task's lock.
    pub(super) async fn select(&self, task: TaskId, wakes: u64) -> CpuId {
        let previous = self.world(|world| world.hand.view(task).last_cpu());
        let near = |cpu| self.with(|machine, at| machine.allowed_near(at, task, cpu));
        if self.cpus_of(task) == 1 {
            return near(previous);
        }
        self.with(|machine, _| machine.state.task_mut(task).cpu_selected = true);
        let Some(function) = self.callbacks().select_cpu else {
            let found = self.with(|machine, at| {
                kfuncs::select_without_program(&mut machine.here(at), task, previous, wakes)
            });
            return near(found);
        };
        let args = [self.address(task), u64::from(previous.0), wakes];
        let during = During::Placing(task);
        self.with(|machine, at| machine.here(at).write_state(task));
        let chosen = self.call(Some(function), during, &args).await;
        let cpus = self.with(|_, at| i32::from(at.cpus()));
        match chosen.map(|cpu| cpu as i32) {
            Some(cpu) if (0..cpus).contains(&cpu) => near(CpuId(cpu as u16)),
            Some(cpu) => {
                self.eject(format!("invalid CPU {cpu} from ops.select_cpu()"));
                near(previous)
            }
            None => near(previous),
        }
    }

    fn cpus_of(&self, task: TaskId) -> usize {
        self.with(|_, at| {
            let all = usize::from(at.cpus());
            let allowed = at.task(task).allowed();
            allowed.map_or(all, warmq_units::CpuSet::len)
        })
    }

    pub(super) fn address(&self, task: TaskId) -> u64 {
        self.with(|machine, _| machine.state.task(task).address)
    }

    /// A task joins the run queue of `cpu` (`enqueue_task_scx()`), under that one's lock.
    pub(super) async fn enqueue(&self, task: TaskId, cpu: CpuId, flags: u64) {
        self.with(|machine, at| machine.here(at).join_run_queue(task, cpu));
        let runnable = self.callbacks().runnable;
        self.call_task(runnable, task, &[flags]).await;
        self.give(task, flags).await;
    }

    /// Gives a runnable task to the program, unless it goes elsewhere (`scx_do_enqueue_task()`).
    pub(super) async fn give(&self, task: TaskId, flags: u64) {
        let cpu = self.with(|machine, _| machine.state.task(task).cpu);
        self.with(|machine, at| machine.here(at).set_immediate(task, false));
        let again = self.with(|machine, at| {
            let again = flags & machine.state.enq.reenqueued != 0;
            again && machine.here(at).repeats_too_often(task)
        });
        if again {
            return;
        }
        let Some(to) = self.default_of(task, cpu) else {
            self.ask_where(task, flags).await;
            return self.place(task, flags);
        };
        self.with(|machine, at| machine.insert_default(at, task, to, flags));
    }

    /// The queue that the kernel takes for a task without asking the program; `None` if it is to be
    /// asked, or has said already.
    fn default_of(&self, task: TaskId, cpu: CpuId) -> Option<Dsq> {
        let defined = self.callbacks().enqueue.is_some();
        self.with(|machine, at| {
            let state = &machine.state;
            if state.ejected.is_some() {
                return Some(Dsq::Local(cpu));
            }
            let exits = at.task(task).has_exited() && state.flags & ops::ENQ_EXITING == 0;
            match state.task(task).direct {
                Some(_) => None,
                None if exits => Some(Dsq::Local(cpu)),
                None if !defined => Some(Dsq::Global(state.cpu(cpu).node)),
                None => None,
            }
        })
    }

    async fn ask_where(&self, task: TaskId, flags: u64) {
        let function = self.callbacks().enqueue;
        let args = self.with(|machine, at| {
            let state = machine.state.task_mut(task);
            if state.direct.is_some() {
                return None;
            }
            state.sequence += 1;
            state.held = Held::Program;
            let args = [state.address, flags];
            machine.here(at).write_state(task);
            Some(args)
        });
        if let Some(args) = args {
            self.call(function, During::Placing(task), &args).await;
        }
    }

    /// A task goes where the program said. What goes to another CPU's own queue does so once this
    /// run queue's lock is free (`direct_dispatch()`, `run_deferred()`).
    fn place(&self, task: TaskId, flags: u64) {
        let elsewhere = self.with(|machine, _| {
            let state = machine.state.task(task);
            let target = state.direct.and_then(|how| on_cpu(how.dsq));
            target.is_some_and(|target| target != state.cpu)
        });
        match elsewhere {
            true => self.world(|world| world.defer(self.path, task, flags)),
            false => self.place_now(task, flags),
        }
    }

    fn place_now(&self, task: TaskId, flags: u64) {
        let placed = self.with(|machine, at| place_in(machine, at, task, flags));
        self.note_placed(task, placed);
    }

    fn note_placed(&self, task: TaskId, placed: Option<u64>) {
        if let Some(dsq) = placed {
            self.note(What::Queued(task, dsq));
        }
    }

    /// A task leaves its run queue (`dequeue_task_scx()`), under that one's lock.
    pub(super) async fn dequeue(&self, task: TaskId, flags: u64) {
        if !self.with(|machine, _| machine.state.task(task).queued) {
            return;
        }
        let callbacks = self.callbacks();
        let (in_custody, runs) = self.with(|machine, _| {
            let held = std::mem::take(&mut machine.state.task_mut(task).held);
            let state = machine.state.task(task);
            let custody = held == Held::Program || matches!(state.on, Some((Dsq::User(_), _)));
            (custody, machine.state.cpu(state.cpu).current == Some(task))
        });
        if in_custody {
            self.call_task(callbacks.dequeue, task, &[flags]).await;
        }
        if runs {
            self.with(|machine, at| {
                let cpu = machine.state.task(task).cpu;
                let mut here = machine.here(at);
                here.update_current(cpu);
                here.count_switch(cpu);
            });
            self.call_task(callbacks.stopping, task, &[0]).await;
        }
        self.call_task(callbacks.quiescent, task, &[flags]).await;
        self.with(|machine, at| machine.here(at).leave_run_queue(task, flags));
    }

    /// Takes the lock of a task, and that of its run queue (`task_rq_lock()`).
    pub(super) async fn lock_task(&self, task: TaskId) -> [Lock; 2] {
        self.lock(&[Lock::Task(task)]).await;
        loop {
            let cpu = self.with(|machine, _| machine.state.task(task).cpu);
            let lock = Lock::RunQueue(cpu);
            self.lock(&[lock]).await;
            if self.with(|machine, _| machine.state.task(task).cpu) == cpu {
                return [lock, Lock::Task(task)];
            }
            self.unlock(&[lock]);
        }
    }

    /// What is to be done once locks are free: tasks for other CPUs' own queues, queues to enqueue
    /// again, kicks (`run_deferred()`, `kick_cpus_irq_workfn()`).
    pub(super) async fn finish(&self) {
        self.place_deferred().await;
        while let Some(again) = self.with(|machine, _| {
            let known = &mut machine.state.again;
            (!known.is_empty()).then(|| known.remove(0))
        }) {
            let lock: Vec<Lock> = match again.queue {
                Dsq::Local(cpu) => vec![Lock::RunQueue(cpu)],
                _ => Vec::new(),
            };
            self.lock(&lock).await;
            let tasks = self.with(|machine, at| machine.here(at).take_back(again));
            let flags = self.with(|machine, _| machine.state.enq.reenqueued);
            for task in tasks {
                self.give(task, flags).await;
            }
            self.unlock(&lock);
            self.place_deferred().await;
        }
        self.send_kicks().await;
    }

    async fn place_deferred(&self) {
        while let Some((task, flags)) = self.world(|world| world.next_deferred(self.path)) {
            let which = |machine: &mut Machine| {
                let state = machine.state.task(task);
                let target = state.direct.and_then(|how| on_cpu(how.dsq));
                [Some(state.cpu), target].into_iter().flatten().collect()
            };
            let place =
                |machine: &mut Machine, at: &mut Context<'_>| place_in(machine, at, task, flags);
            let placed = self.with_run_queues(which, place).await;
            self.note_placed(task, placed);
        }
    }

    /// Each kick waits until the lock of that CPU's run queue is free (`kick_one_cpu()`).
    async fn send_kicks(&self) {
        while let Some(kick) = self.with(|machine, _| machine.state.kicks.pop()) {
            let lock = [Lock::RunQueue(kick.0)];
            self.lock(&lock).await;
            self.with(|machine, at| {
                machine.state.kicks.push(kick);
                let rest = machine.state.kicks.len() - 1;
                let others: Vec<_> = machine.state.kicks.drain(..rest).collect();
                machine.here(at).send_kicks();
                machine.state.kicks = others;
            });
            self.note(What::Kicks(kick.0));
            self.unlock(&lock);
        }
    }
}

/// Puts a task where the program said; the queue's number.
fn place_in(
    machine: &mut Machine,
    context: &mut Context<'_>,
    task: TaskId,
    flags: u64,
) -> Option<u64> {
    let how = machine.here(context).set_direct(task, None)?;
    let flags = how.flags | flags;
    machine.here(context).place(task, Insert { flags, ..how });
    Some(how.dsq)
}
