//! What happens on a CPU, from its beginning to its end.

use warmq_kernel::{ByHand, Doing, GroupId, Limits, Mode};
use warmq_units::{CpuSet, Duration, TaskId};

use crate::events::Events;
use crate::execution::{Execution, Lock};
use crate::interleaved::on::On;
use crate::pick::Picks;
use crate::run_queue::RunQueue;
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
    pub(super) async fn happens(mut self, event: Event) {
        match event {
            Event::Wake(task) => self.wake(task).await,
            Event::Start(task) => self.start(task).await,
            Event::Sleep => {
                self.with_current(async |on, task| on.sleeps(task, false).await)
                    .await;
            }
            Event::Block => {
                self.with_current(async |on, task| on.sleeps(task, true).await)
                    .await;
            }
            Event::Exit => self.with_current(On::exit).await,
            Event::Leave => self.with_current(On::leave).await,
            // `put_prev_task_idle()`, under which no task of sched_ext is set.
            Event::Taken => {
                self.under_lock(async |on, current| {
                    if current.is_none() {
                        on.leave_idle().await;
                    }
                })
                .await;
            }
            Event::Pick => self.under_lock(On::pick_next).await,
            Event::Tick(mode) => {
                self.with_current(async |on, task| on.ticks(task, mode).await)
                    .await;
            }
            Event::Yield => self.with_current(On::yields_cpu).await,
            Event::Nice(task, nice) => self.renice(task, nice).await,
            Event::Affinity(task, cpus) => {
                let set = |on: &mut On| on.world(|world| world.hand.set_affinity(task, cpus));
                self.set_affinity(task, set).await;
            }
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
    async fn wake(&mut self, task: TaskId) {
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
    async fn start(&mut self, task: TaskId) {
        let pi = [Lock::Task(task)];
        self.lock(&pi).await;
        self.comes(task, wake::FORK, 0).await;
        self.unlock(&pi);
    }

    /// A task becomes runnable, under its lock.
    async fn comes(&mut self, task: TaskId, wakes: u64, flags: u64) {
        self.world(|world| world.hand.set_doing(task, Doing::Runnable));
        let cpu = self.select(task, wakes).await;
        let lock = [Lock::RunQueue(cpu)];
        self.lock(&lock).await;
        self.activate(task, cpu, flags).await;
        self.reschedule_if_idle(cpu);
        self.unlock(&lock);
    }

    pub(super) fn current(&mut self) -> Option<TaskId> {
        let cpu = self.cpu;
        self.with(|machine, _| machine.state.cpu(cpu).current)
    }

    /// Does something under the lock of this CPU's run queue, with who runs here.
    async fn under_lock(&mut self, act: impl AsyncFnOnce(&mut On, Option<TaskId>)) {
        let lock = [Lock::RunQueue(self.cpu)];
        self.lock(&lock).await;
        let current = self.current();
        act(self, current).await;
        self.unlock(&lock);
    }

    /// The same, if somebody does.
    async fn with_current(&mut self, act: impl AsyncFnOnce(&mut On, TaskId)) {
        self.under_lock(async |on, current| {
            if let Some(task) = current {
                act(on, task).await;
            }
        })
        .await;
    }

    async fn sleeps(&mut self, task: TaskId, blocked: bool) {
        self.world(|world| world.hand.set_doing(task, Doing::Sleeping));
        self.with(|machine, _| machine.state.task_mut(task).blocked = blocked);
        self.dequeue(task, deq::SLEEP).await;
        self.pick_next(None).await;
    }

    /// `do_exit()`: a task leaves its autogroup, then its CPU, and is gone.
    async fn exit(&mut self, task: TaskId) {
        self.leave_autogroup(task).await;
        self.world(|world| world.hand.set_doing(task, Doing::Dead));
        self.dequeue(task, deq::SLEEP).await;
        self.pick_next(None).await;
        self.unlock(&[Lock::RunQueue(self.cpu)]);
        self.with(|machine, at| machine.exit_task(at, task));
    }

    /// `__sched_setscheduler()`, with `switching_from_scx()`.
    async fn leave(&mut self, task: TaskId) {
        self.dequeue(task, deq::SAVE).await;
        let (cpu, disable) = (self.cpu, self.callbacks().disable);
        self.call_task(disable, task, &[]).await;
        self.with(|machine, _| machine.state.cpu_mut(cpu).current = None);
        self.world(|world| world.hand.set_on_cpu(task, None));
    }

    async fn ticks(&mut self, task: TaskId, mode: Mode) {
        self.world(|world| world.hand.set_interrupt(self.cpu, Some(mode)));
        self.tick(task).await;
        self.world(|world| world.hand.set_interrupt(self.cpu, None));
    }

    async fn yields_cpu(&mut self, task: TaskId) {
        self.yields(task).await;
        self.pick_next(Some(task)).await;
    }

    async fn renice(&mut self, task: TaskId, nice: i8) {
        let locks = self.lock_task(task).await;
        self.world(|world| world.hand.set_nice(task, nice));
        self.weight_changed(task).await;
        self.unlock(&locks);
    }

    async fn move_to(&mut self, task: TaskId, group: GroupId) {
        self.lock(&[Lock::Groups]).await;
        let locks = self.lock_task(task).await;
        self.world(|world| world.hand.set_group(task, group));
        self.weight_changed(task).await;
        self.unlock(&locks);
        self.unlock(&[Lock::Groups]);
    }

    /// A group changes, as an operator writes to a file of it.
    async fn change_group(&mut self, group: GroupId, change: impl FnOnce(&mut ByHand)) {
        self.world(|world| change(&mut world.hand));
        self.group_changed(group).await;
    }

    /// A prctl of who runs here. It yields if the answer asks for that.
    async fn hint(&mut self, value: u64) {
        let hint = self.world(|world| world.scheduler.hint.clone());
        let (Some(hint), Some(_)) = (hint, self.current()) else {
            return;
        };
        if self.hears(&hint, value).await {
            self.with_current(On::yields_cpu).await;
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
