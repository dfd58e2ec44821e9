//! `try_to_wake_up()` and fork: how tasks become runnable.

use warmq_trace::Record;
use warmq_units::{CpuId, Duration, TaskId};

use crate::core::{Link, State};
use crate::face::Callback;
use crate::paths::{Flow, System};
use crate::words::{Rule, Socket, Step, Throttling, Waiting, WakeContext, Wakeup, Why};

impl System {
    /// Wakes `task`, or starts a new one. Does nothing if it is awake already, or parked.
    pub(crate) fn begin_wake(&mut self, cpu: CpuId, task: TaskId, sync: bool) -> Flow {
        if self.core.is_parked(task) {
            return Flow::Next;
        }
        let why = match self.core.task(task).state {
            State::Sleeping(_) if self.core.task(task).on_wake_list => return Flow::Next,
            State::Sleeping(slept) => Why::Wakeup(self.wakeup(cpu, slept, sync)),
            State::New => Why::Fork,
            State::Runnable | State::Dead => return Flow::Next,
        };
        if let Some(hold) = self.core.held_asleep(task) {
            let target = self.core.task(task).last_cpu;
            self.hold_woken(cpu, task, (hold, target), why);
            return Flow::Next;
        }
        let throttled = self.core.task(task).held_back.is_some();
        if throttled && self.core.held_by(task).is_some() {
            // It is on its queue already, and waits there.
            return Flow::Next;
        }
        let (target, took) = self.select_cpu(cpu, task, why);
        if self.throttled_on_arrival(task, target) {
            self.hold_woken(cpu, task, (Waiting::Quota, target), why);
            let sent = self.leaves_idle_for_nobody(cpu, target);
            return Flow::Takes(took + sent, self.mode(cpu, false));
        }
        if let Why::Wakeup(wakeup) = &why {
            self.core.record_waking(cpu, task, wakeup);
        }
        if let Some(rule) = self.bad_target(task, target) {
            self.core.broke(cpu, rule);
        } else if let Some(sent) = self.leave_to(cpu, task, target, why) {
            return Flow::Takes(took + sent, self.mode(cpu, false));
        } else {
            self.push_activation(cpu, task, target, why);
        }
        Flow::Takes(took, self.mode(cpu, false))
    }

    /// Where `task` is to run, and how long it takes to find out. One that was out of quota stays
    /// in its queue (`tg_unthrottle_up()`), but under schedulers that have no queues of groups.
    fn select_cpu(&mut self, cpu: CpuId, task: TaskId, why: Why) -> (CpuId, Duration) {
        let own = self.core.task(task).queue;
        let stays = matches!(why, Why::Wakeup(wakeup) if wakeup.slept == Waiting::Quota)
            && self.core.settings.throttling != Throttling::Pool
            && self.core.view(task).may_run_on(own);
        if stays {
            return (own, Duration::ZERO);
        }
        let mut target = cpu;
        let took = self.call(cpu, |scheduler, context| {
            target = scheduler.select_cpu(context, task, why);
        });
        (target, took)
    }

    /// Whether `task`, which is about to join the queue of `target`, has to wait there until its
    /// group has time.
    fn throttled_on_arrival(&mut self, task: TaskId, target: CpuId) -> bool {
        let groups = self.core.settings.throttling == Throttling::Groups;
        if !groups || !self.core.has_bandwidth() || target.index() >= self.core.cpus.len() {
            return false;
        }
        self.core.task_mut(task).queue = target;
        self.core.check_queues(task);
        self.core.is_throttled(task, target)
    }

    /// `target` was chosen for a task that waits in a throttled queue there. If it idles it calls
    /// `schedule()` all the same (`wakeup_preempt()`: every class comes before that of the idle
    /// task), by which schedulers learn that it idles on: they may have taken it for a CPU to which
    /// the task comes. Returns how long it takes to let it know.
    fn leaves_idle_for_nobody(&mut self, cpu: CpuId, target: CpuId) -> Duration {
        let there = self.core.cpu(target);
        match there.online && there.chosen.is_none() {
            true => self.call(cpu, |_, context| context.reschedule(target)),
            false => Duration::ZERO,
        }
    }

    /// `task` is woken while something holds it, and is made runnable when nothing does any more.
    fn hold_woken(&mut self, cpu: CpuId, task: TaskId, (hold, on): (Waiting, CpuId), why: Why) {
        if let (Waiting::Quota, Why::Wakeup(wakeup)) = (hold, &why) {
            self.record_held_wakeup(cpu, task, on, wakeup);
        }
        self.core.hold_back(task, hold);
    }

    /// The rule that a scheduler breaks that sends `task` to `target`, if any.
    pub(crate) fn bad_target(&self, task: TaskId, target: CpuId) -> Option<Rule> {
        if target.index() >= self.core.cpus.len() {
            Some(Rule::NoSuchCpu(target))
        } else if !self.core.view(task).may_run_on(target) {
            Some(Rule::CpuNotAllowed(task))
        } else {
            None
        }
    }

    /// `task` is woken and joins its group, which is out of quota. That it waits for the next
    /// period there is recorded once.
    fn record_held_wakeup(&mut self, cpu: CpuId, task: TaskId, target: CpuId, wakeup: &Wakeup) {
        if self.core.task(task).held_back.is_some() {
            return;
        }
        self.core.record_waking(cpu, task, wakeup);
        if let Some(from) = self.core.task_mut(task).moves_to(target) {
            let to = target;
            self.core.record(Record::Migrate { task, from, to });
        }
        self.core.record(Record::Wakeup {
            waker: cpu,
            task,
            target,
        });
        self.core.record_block(target, task, Waiting::Quota);
    }

    fn push_activation(&mut self, cpu: CpuId, task: TaskId, target: CpuId, why: Why) {
        let locks = self.scheduler.locks(Callback::Enqueue, target);
        self.push_locked(cpu, locks, Step::Activate(task, target, why));
    }

    /// Puts `task` on the list of those that `target` is to make runnable itself, if the scheduler
    /// leaves it to that CPU (`ttwu_queue_wakelist()`); returns how long that takes. The first on a
    /// list interrupts the CPU, unless that polls in idle.
    fn leave_to(&mut self, cpu: CpuId, task: TaskId, target: CpuId, why: Why) -> Option<Duration> {
        let other = target != cpu && self.core.cpu(target).online;
        let sleeps = matches!(why, Why::Wakeup(_)) && !self.core.task(task).queued;
        if !other || !sleeps {
            return None;
        }
        let mut leaves = false;
        self.call(cpu, |scheduler, context| {
            leaves = scheduler.leaves_wakeup(context, task, target);
        });
        if !leaves {
            return None;
        }
        self.core.task_mut(task).on_wake_list = true;
        let list = &mut self.core.cpu(target).wake_list;
        list.push((task, why));
        let first = list.len() == 1;
        Some(match first {
            true => self.core.call_for(cpu, target),
            false => Duration::ZERO,
        })
    }

    /// Puts what makes those runnable that other CPUs woke for `cpu` on its stack, in their order
    /// (`sched_ttwu_pending()`).
    pub(crate) fn push_wake_list(&mut self, cpu: CpuId) {
        let woken = std::mem::take(&mut self.core.cpu(cpu).wake_list);
        for (task, why) in woken.into_iter().rev() {
            self.push_activation(cpu, task, cpu, why);
        }
    }

    /// The circumstances of a wakeup by the code that `cpu` runs now.
    fn wakeup(&self, cpu: CpuId, slept: Waiting, sync: bool) -> Wakeup {
        let here = &self.core.cpus[cpu.index()];
        let context = match (here.irq_depth, here.softirq_depth) {
            (0, 0) => WakeContext::Task,
            (0, _) => WakeContext::Softirq,
            _ => WakeContext::Interrupt,
        };
        Wakeup {
            current: here.current,
            context,
            sync,
            slept,
            pipe: match slept {
                Waiting::Data(end) | Waiting::Room(end) => {
                    self.core.net.endpoints[Socket(end)].link == Link::Pipe
                }
                _ => false,
            },
        }
    }

    /// With the locks held, makes `task` runnable, unless another CPU has done so already.
    pub(crate) fn activate(&mut self, cpu: CpuId, id: TaskId, target: CpuId, why: Why) -> Flow {
        let now = self.core.now();
        let charged = self.charge_before_enqueue(cpu, id, target);
        let task = self.core.task_mut(id);
        if !matches!(task.state, State::Sleeping(_) | State::New) {
            return Flow::Next;
        }
        if task.state == State::New {
            task.first_cpu = Some(target);
        }
        task.state = State::Runnable;
        task.on_wake_list = false;
        task.runnable_since = now;
        // A task that is about to sleep is still queued, and simply stays so.
        let queued = std::mem::replace(&mut task.queued, true);
        if !queued {
            task.queue = target;
            self.core.join_queues(id);
        }
        self.core.record(Record::Wakeup {
            waker: cpu,
            task: id,
            target,
        });
        if queued {
            return Flow::Next;
        }
        if !self.core.cpu(target).online {
            self.leave_offline_queue(cpu, id, target);
        }
        let took = self.call(cpu, |scheduler, context| {
            scheduler.enqueue(context, id, target, why);
            scheduler.wakeup_preempt(context, id, target, why);
        });
        Flow::Takes(charged + took, self.mode(cpu, false))
    }

    /// `target` went offline after it was chosen: once its locks are released, `set_cpumask` makes
    /// the scheduler queue `task` elsewhere.
    fn leave_offline_queue(&mut self, cpu: CpuId, task: TaskId, target: CpuId) {
        let locks = self.scheduler.locks(Callback::Enqueue, target);
        let releases = locks.into_iter().flatten().count();
        let stack = &mut self.core.cpu(cpu).stack;
        let below = stack.len().saturating_sub(releases);
        stack.insert(below, Step::CpumaskChanged(task));
    }

    pub(crate) fn forked(&mut self, cpu: CpuId, child: TaskId) -> Flow {
        let parent = self.core.cpu(cpu).current;
        let comm = self.core.task(child).comm;
        self.core.record(Record::Fork {
            parent,
            child,
            comm,
        });
        self.core.record_birth(child);
        self.callback(cpu, |scheduler, context| {
            scheduler.fork(context, parent, child)
        })
    }
}
