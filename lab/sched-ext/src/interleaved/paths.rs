//! What happens on a CPU, from its beginning to its end.

use warmq_kernel::{ByHand, Doing, GroupId, Limits, Mode};
use warmq_units::{CpuId, CpuSet, Duration, TaskId};

use crate::interleaved::locks::Lock;
use crate::interleaved::on::On;
use crate::state::During;
use crate::words::{deq, wake};

/// What happens on a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Code there wakes a task.
    Wake(TaskId),
    /// Code there starts a new task.
    Start(TaskId),
    /// Who runs there sleeps.
    Sleep,
    /// The same, so that no signal wakes it.
    Block,
    /// Who runs there exits.
    Exit,
    /// Who runs there becomes a real-time task, and goes on as one, which is not seen here.
    Leave,
    /// It idles, and a real-time task takes it.
    Taken,
    /// It looks for its next task.
    Pick,
    /// Its tick comes, and interrupts who runs in this mode.
    Tick(Mode),
    /// Who runs there yields.
    Yield,
    /// Code there changes the nice value of a task.
    Nice(TaskId, i8),
    /// Code there changes the affinity of a task.
    Affinity(TaskId, CpuSet),
    /// Code there moves a task into a group.
    Move(TaskId, GroupId),
    /// Code there changes the weight of a group.
    Weigh(GroupId, u32),
    /// Code there makes a group idle, or an ordinary one (`cpu.idle`).
    Idle(GroupId, bool),
    /// Code there sets the period, the quota and the burst of a group, in us.
    Limit(GroupId, [u64; 3]),
    /// Who runs there names its data.
    Hint(u64),
    /// A timer of the program's expires there.
    Timer(u64),
}

impl On {
    /// Whatever happens, to its end.
    pub(super) async fn happens(self, event: Event) {
        match event {
            Event::Wake(task) => self.wake(task).await,
            Event::Start(task) => self.start(task).await,
            Event::Sleep => self.sleep(false).await,
            Event::Block => self.sleep(true).await,
            Event::Exit => self.exit().await,
            Event::Leave => self.leave().await,
            Event::Taken => self.taken().await,
            Event::Pick => self.pick_again().await,
            Event::Tick(mode) => self.tick(mode).await,
            Event::Yield => self.yields().await,
            Event::Nice(task, nice) => self.renice(task, nice).await,
            Event::Affinity(task, cpus) => self.set_affinity(task, cpus).await,
            Event::Move(task, group) => self.move_to(task, group).await,
            Event::Weigh(group, weight) => {
                self.change_group(group, |hand| hand.set_group_weight(group, weight))
                    .await;
            }
            Event::Idle(group, idle) => {
                self.change_group(group, |hand| hand.set_group_idle(group, idle))
                    .await;
            }
            Event::Limit(group, limits) => {
                let limits = of_us(limits);
                self.change_group(group, |hand| hand.set_group_limits(group, limits))
                    .await;
            }
            Event::Hint(value) => self.hint(value).await,
            Event::Timer(token) => self.timer(token).await,
        }
        self.finish().await;
        self.wait_for_kicked().await;
    }

    /// `try_to_wake_up()`.
    async fn wake(&self, task: TaskId) {
        let pi = [Lock::Task(task)];
        self.lock(&pi).await;
        if self.world(|world| world.hand.view(task).is_runnable()) {
            return self.unlock(&pi);
        }
        while let Some(there) = self.world(|world| world.hand.view(task).on_cpu()) {
            let lock = [Lock::RunQueue(there)];
            self.lock(&lock).await;
            self.unlock(&lock);
        }
        let wakeup = self.with(|machine, _| machine.state.enq.wakeup);
        self.comes(task, wake::WAKEUP, wakeup).await;
        self.unlock(&pi);
    }

    /// `wake_up_new_task()`.
    async fn start(&self, task: TaskId) {
        let pi = [Lock::Task(task)];
        self.lock(&pi).await;
        self.comes(task, wake::FORK, 0).await;
        self.unlock(&pi);
    }

    /// A task becomes runnable, under its lock.
    async fn comes(&self, task: TaskId, wakes: u64, flags: u64) {
        self.world(|world| world.hand.set_doing(task, Doing::Runnable));
        let cpu = self.select(task, wakes).await;
        let lock = [Lock::RunQueue(cpu)];
        self.lock(&lock).await;
        let selected = self.with(|machine, _| {
            let selected = std::mem::take(&mut machine.state.task_mut(task).cpu_selected);
            u64::from(selected) * machine.state.enq.cpu_selected
        });
        self.enqueue(task, cpu, flags | selected).await;
        self.reschedule_if_idle(cpu);
        self.unlock(&lock);
    }

    /// A CPU that idles picks again whenever a task comes onto its run queue.
    pub(super) fn reschedule_if_idle(&self, cpu: CpuId) {
        self.with(|_, at| {
            if at.running_on(cpu).is_none() {
                at.reschedule(cpu);
            }
        });
    }

    fn current(&self) -> Option<TaskId> {
        self.with(|machine, _| machine.state.cpu(self.cpu).current)
    }

    async fn sleep(&self, blocked: bool) {
        let lock = [Lock::RunQueue(self.cpu)];
        self.lock(&lock).await;
        if let Some(task) = self.current() {
            self.world(|world| world.hand.set_doing(task, Doing::Sleeping));
            self.with(|machine, _| machine.state.task_mut(task).blocked = blocked);
            self.dequeue(task, deq::SLEEP).await;
            self.pick(None).await;
        }
        self.unlock(&lock);
    }

    /// `do_exit()`: a task leaves its autogroup, by which it is dequeued and enqueued once more,
    /// leaves its CPU, and is gone.
    async fn exit(&self) {
        let lock = [Lock::RunQueue(self.cpu)];
        self.lock(&lock).await;
        let Some(task) = self.current() else {
            return self.unlock(&lock);
        };
        self.world(|world| world.hand.set_doing(task, Doing::Dead));
        self.with(|machine, _| machine.state.task_mut(task).still_runs = true);
        let changed = self.off_queue(task).await;
        self.on_queue(task, changed).await;
        self.with(|machine, _| machine.state.task_mut(task).still_runs = false);
        self.dequeue(task, deq::SLEEP).await;
        self.pick(None).await;
        self.unlock(&lock);
        self.with(|machine, at| machine.exit_task(at, task));
    }

    /// `__sched_setscheduler()`, with `switching_from_scx()`.
    async fn leave(&self) {
        let lock = [Lock::RunQueue(self.cpu)];
        self.lock(&lock).await;
        if let Some(task) = self.current() {
            self.dequeue(task, deq::CHANGE).await;
            self.call_task(self.callbacks().disable, task, &[]).await;
            self.with(|machine, _| machine.state.cpu_mut(self.cpu).current = None);
            self.world(|world| world.hand.set_on_cpu(task, None));
        }
        self.unlock(&lock);
    }

    /// `put_prev_task_idle()`, under which no task of sched_ext is set.
    async fn taken(&self) {
        let lock = [Lock::RunQueue(self.cpu)];
        self.lock(&lock).await;
        if self.current().is_none() {
            self.with(|machine, at| machine.here(at).note_idle(self.cpu, false));
            let update = self.callbacks().update_idle;
            let args = [self.cpu.0.into(), 0];
            self.call(update, During::Other, &args).await;
            self.with(|machine, _| machine.state.cpu_mut(self.cpu).known_idle = false);
        }
        self.unlock(&lock);
    }

    async fn pick_again(&self) {
        let lock = [Lock::RunQueue(self.cpu)];
        self.lock(&lock).await;
        let current = self.current();
        self.pick(current).await;
        self.unlock(&lock);
    }

    /// `task_tick_scx()`.
    async fn tick(&self, mode: Mode) {
        let lock = [Lock::RunQueue(self.cpu)];
        self.lock(&lock).await;
        if let Some(task) = self.current() {
            self.with(|machine, at| machine.here(at).update_current(self.cpu));
            let (tick, args) = (self.callbacks().tick, [self.address(task)]);
            self.interrupt(Some(mode));
            self.call(tick, During::Other, &args).await;
            self.interrupt(None);
            self.with(|machine, at| {
                if machine.here(at).slice(task) == 0 {
                    at.reschedule(self.cpu);
                }
            });
        }
        self.unlock(&lock);
    }

    /// This CPU enters an interrupt, or leaves it.
    fn interrupt(&self, came_in: Option<Mode>) {
        self.world(|world| world.hand.set_interrupt(self.cpu, came_in));
        self.with(|machine, at| machine.here(at).write_interrupt(came_in.is_some()));
    }

    async fn yields(&self) {
        let lock = [Lock::RunQueue(self.cpu)];
        self.lock(&lock).await;
        if let Some(task) = self.current() {
            let (yields, args) = (self.callbacks().yields, [self.address(task), 0]);
            match yields {
                Some(_) => drop(self.call(yields, During::Other, &args).await),
                None => self.with(|machine, at| machine.here(at).set_slice(task, 0)),
            }
            self.pick(Some(task)).await;
        }
        self.unlock(&lock);
    }

    /// Takes a task off its run queue, and puts it back: between the two come changes
    /// (`sched_change_begin()`, `sched_change_end()`).
    async fn off_queue(&self, task: TaskId) -> Changed {
        let changed = self.with(|machine, _| {
            let state = machine.state.task(task);
            Changed {
                queued: state.queued,
                runs: machine.state.cpu(state.cpu).current == Some(task),
                cpu: state.cpu,
            }
        });
        if changed.queued {
            self.dequeue(task, deq::CHANGE).await;
        }
        changed
    }

    async fn on_queue(&self, task: TaskId, changed: Changed) {
        let restore = self.with(|machine, _| machine.state.enq.restore);
        match (changed.queued, changed.runs) {
            (false, _) => {}
            (true, false) => self.enqueue(task, changed.cpu, restore).await,
            (true, true) => {
                self.with(|machine, at| {
                    machine.state.task_mut(task).queued = true;
                    machine.here(at).write_queued(task, true);
                });
                let callbacks = self.callbacks();
                let (runnable, running) = (callbacks.runnable, callbacks.running);
                self.call_task(runnable, task, &[restore]).await;
                self.call_task(running, task, &[]).await;
            }
        }
    }

    async fn renice(&self, task: TaskId, nice: i8) {
        let locks = self.lock_task(task).await;
        let changed = self.off_queue(task).await;
        self.world(|world| world.hand.set_nice(task, nice));
        let args = self.with(|machine, at| {
            let new = machine.here(at).write_weight(task);
            let state = machine.state.task(task);
            new.then_some([state.address, state.weight])
        });
        if let Some(args) = args {
            let set = self.callbacks().set_weight;
            self.call(set, During::Other, &args).await;
        }
        self.on_queue(task, changed).await;
        self.unlock(&locks);
    }

    /// `__set_cpus_allowed_ptr()`. A task that waits where it may no longer run goes elsewhere; one
    /// that runs there leaves at the next pick.
    async fn set_affinity(&self, task: TaskId, cpus: CpuSet) {
        let locks = self.lock_task(task).await;
        let changed = self.off_queue(task).await;
        self.world(|world| world.hand.set_affinity(task, cpus));
        let args = self.with(|machine, at| {
            machine.here(at).write_affinity(task);
            let address = machine.state.task(task).address;
            [
                address,
                machine.state.layouts.task.cpus_mask.within(address),
            ]
        });
        let set = self.callbacks().set_cpumask;
        self.call(set, During::Other, &args).await;
        let cpu = changed.cpu;
        let stays = self.world(|world| world.may_run(task, cpu));
        self.on_queue(task, changed).await;
        match (stays, changed.runs) {
            (false, true) => self.with(|_, at| at.reschedule(cpu)),
            (false, false) if changed.queued => return self.migrate(task, locks).await,
            _ => {}
        }
        self.unlock(&locks);
    }

    /// A task that waits goes to a CPU where it may run (`move_queued_task()`).
    pub(super) async fn migrate(&self, task: TaskId, [run_queue, pi]: [Lock; 2]) {
        self.dequeue(task, 0).await;
        let to = self.with(|machine, at| {
            let from = machine.state.task(task).cpu;
            let to = machine.allowed_near(at, task, from);
            machine.here(at).set_cpu(task, to);
            to
        });
        self.unlock(&[run_queue]);
        let lock = [Lock::RunQueue(to)];
        self.lock(&lock).await;
        self.enqueue(task, to, 0).await;
        self.reschedule_if_idle(to);
        self.unlock(&lock);
        self.unlock(&[pi]);
    }

    async fn move_to(&self, task: TaskId, group: GroupId) {
        self.lock(&[Lock::Groups]).await;
        let locks = self.lock_task(task).await;
        let changed = self.off_queue(task).await;
        self.world(|world| world.hand.set_group(task, group));
        let args = self.with(|machine, at| {
            let from = machine.join(at, task)?;
            let of = |group: Option<GroupId>| {
                let known = group.and_then(|group| machine.state.groups.get(&group));
                known.map_or(0, |known| known.address)
            };
            let state = machine.state.task(task);
            Some([state.address, of(Some(from)), of(state.group)])
        });
        if let Some(args) = args {
            let moved = self.callbacks().cgroup_move;
            self.call(moved, During::Other, &args).await;
        }
        self.on_queue(task, changed).await;
        self.unlock(&locks);
        self.unlock(&[Lock::Groups]);
    }

    /// A group changes, as an operator writes to a file of it.
    async fn change_group(&self, group: GroupId, change: impl FnOnce(&mut ByHand)) {
        self.lock(&[Lock::Groups]).await;
        self.world(|world| change(&mut world.hand));
        let calls = self.with(|machine, at| machine.changes_of(at, group));
        for (callback, args) in calls {
            self.call(callback, During::Other, &args).await;
        }
        self.unlock(&[Lock::Groups]);
    }

    /// A prctl of who runs here. It yields if the answer asks for that.
    async fn hint(&self, value: u64) {
        let hint = self.world(|world| world.scheduler.hint.clone());
        let (Some(hint), Some(_)) = (hint, self.current()) else {
            return;
        };
        let function = self.with(|machine, _| {
            let program = machine.code.program.image().program(&hint.program);
            program.map(|program| program.function)
        });
        let args = [hint.option, value, 0, 0, 0, 0];
        let answer = self.call(function, During::Other, &args).await;
        if answer.is_some_and(|answer| answer as i32 as u64 == hint.yields_at) {
            self.yields().await;
        }
    }

    async fn timer(&self, token: u64) {
        let known = self.with(|machine, _| {
            machine.state.timers.remove(&token);
            let known = machine.guest.timer(token).copied()?;
            Some((known.function?, [known.map, known.key, known.value]))
        });
        if let Some((function, args)) = known {
            self.call_timer(function, &args).await;
        }
    }
}

/// A period, a quota and a burst in us; none where the quota is the greatest number.
fn of_us([period, quota, burst]: [u64; 3]) -> Option<Limits> {
    let [period, burst] = [period, burst].map(Duration::from_us);
    let quota = (quota != u64::MAX).then(|| Duration::from_us(quota));
    quota.map(|quota| Limits {
        quota,
        period,
        burst,
    })
}

/// What a task was before it changes.
#[derive(Clone, Copy)]
struct Changed {
    queued: bool,
    runs: bool,
    cpu: CpuId,
}
