//! `try_to_wake_up()` and fork: how tasks become runnable.

use warmq_trace::Record;
use warmq_units::{CpuId, TaskId};

use crate::cpu_loop::Flow;
use crate::ending::{Rule, Waiting};
use crate::engine::Engine;
use crate::scheduler::{Callback, WakeContext, Wakeup, Why};
use crate::step::Step;
use crate::task::State;

impl Engine {
    /// Wakes `task`, or starts a new one. Does nothing if it is awake already, or parked.
    pub(crate) fn begin_wake(&mut self, cpu: CpuId, task: TaskId, sync: bool) -> Flow {
        if self.core.is_parked(task) {
            return Flow::Next;
        }
        let why = match self.core.task(task).state {
            State::Sleeping(slept) => Why::Wakeup(self.wakeup(cpu, slept, sync)),
            State::New => Why::Fork,
            State::Runnable | State::Dead => return Flow::Next,
        };
        if let Some(hold) = self.core.held_by(task) {
            self.core.hold_back(task, hold);
            return Flow::Next;
        }
        if let Why::Wakeup(wakeup) = &why {
            self.core.record_waking(cpu, task, wakeup);
        }
        let mut target = cpu;
        let took = self.call(cpu, |scheduler, context| {
            target = scheduler.select_cpu(context, task, why);
        });
        if target.index() >= self.core.cpus.len() {
            self.core.broke(cpu, Rule::NoSuchCpu(target));
        } else if !self.core.view(task).may_run_on(target) {
            self.core.broke(cpu, Rule::CpuNotAllowed(task));
        } else {
            let locks = self.scheduler.locks(Callback::Enqueue, target);
            self.push_locked(cpu, locks, Step::Activate { task, target, why });
        }
        Flow::Takes(took, self.mode(cpu, false))
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
                Waiting::Data(end) | Waiting::Room(end) => self.core.endpoints[end as usize].pipe,
                _ => false,
            },
        }
    }

    /// With the locks held, makes `task` runnable, unless another CPU has done so already.
    pub(crate) fn activate(&mut self, cpu: CpuId, id: TaskId, target: CpuId, why: Why) -> Flow {
        let now = self.core.now();
        let task = self.core.task_mut(id);
        if !matches!(task.state, State::Sleeping(_) | State::New) {
            return Flow::Next;
        }
        if task.state == State::New {
            task.first_cpu = Some(target);
        }
        task.state = State::Runnable;
        task.runnable_since = now;
        // A task that is about to sleep is still queued, and simply stays so.
        let queued = std::mem::replace(&mut task.queued, true);
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
        self.callback(cpu, |scheduler, context| {
            scheduler.enqueue(context, id, target, why);
            scheduler.wakeup_preempt(context, id, target, why);
        })
    }

    /// `target` went offline after it was chosen: once its locks are released, `set_cpumask` makes
    /// the scheduler queue `task` elsewhere.
    fn leave_offline_queue(&mut self, cpu: CpuId, task: TaskId, target: CpuId) {
        let locks = self.scheduler.locks(Callback::Enqueue, target).in_order();
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
