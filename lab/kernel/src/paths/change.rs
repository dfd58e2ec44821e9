//! Changes of tasks, groups and CPUs: asked for by a program's system call, or by an operator from
//! outside of the machine.
//!
//! What an operator asks for is done by the first CPU that is online, as soon as it takes
//! interrupts. It costs what the kernel does for it (the locks, the scheduler's callbacks, the
//! reschedule interrupts) and no more: no system call, no entry of an interrupt.

use warmq_machine::Access;
use warmq_units::{CpuId, CpuSet, Duration, TaskId};

use crate::core::{Event, State, Vector, Within};
use crate::face::Callback;
use crate::paths::{Flow, System};
use crate::words::{Change, Fragment, GroupId, Limits, Step};

impl System {
    /// `task` waits, out of quota, in the queue of a CPU that it may not use any more: it goes to
    /// another one, where it may run on (`enqueue_throttled_task()`).
    fn leave_forbidden_queue(&mut self, cpu: CpuId, task: TaskId) -> Flow {
        let state = self.core.task(task);
        let (waits, from) = (state.held_back.is_some(), state.queue);
        match self.core.first_allowed(task) {
            Some(to) if waits && !self.core.view(task).may_run_on(from) => {
                self.core.set_queue(task, to);
                self.reconsider(cpu, [task])
            }
            _ => Flow::Next,
        }
    }

    /// The affinity of `task` has changed: it leaves CPUs that it may not use any more.
    fn follow_affinity(&mut self, cpu: CpuId, task: TaskId) -> Flow {
        let took = self.leave_forbidden_queue(cpu, task);
        self.leave_forbidden_cpu(task);
        self.set_cpumask(cpu, task);
        took
    }

    /// Sets the CPUs of `group`, and the affinity of all tasks in it.
    fn set_cpuset(&mut self, cpu: CpuId, group: GroupId, cpus: &CpuSet) -> Flow {
        let Some(cpus) = self.core.existing(cpus) else {
            return Flow::Next;
        };
        self.core.groups.set_cpus(group, cpus);
        let mut took = Duration::ZERO;
        for task in self.core.members(group) {
            if !self.core.confine(task) {
                continue;
            }
            self.core.record_affinity(task);
            if let Flow::Takes(span, _) = self.follow_affinity(cpu, task) {
                took += span;
            }
        }
        Flow::Takes(took, self.mode(cpu, false))
    }

    /// An operator asks for `change`.
    pub(crate) fn request(&mut self, change: Change) {
        self.core.operators.request(change);
        self.begin_changes();
    }

    /// Interrupts the CPU that performs changes.
    pub(crate) fn begin_changes(&mut self) {
        let cpu = self.core.online_or_first(CpuId(0));
        self.interrupt(cpu, Vector::Change);
    }

    pub(crate) fn enter_changes(&mut self, cpu: CpuId) {
        let here = self.core.cpu(cpu);
        here.irq_depth += 1;
        here.in_user = false;
        here.stack.push(Step::Changes);
    }

    /// Performs the next of the changes that operators asked for.
    pub(crate) fn next_change(&mut self, cpu: CpuId) -> Flow {
        let online = self.core.cpu(cpu).online;
        let next = match online {
            true => self.core.operators.take_change(),
            false => None,
        };
        match next {
            Some(change) => {
                self.core.cpu(cpu).stack.push(Step::Changes);
                self.change(cpu, change)
            }
            None => {
                if self.core.operators.has_changes() {
                    // One of them took this CPU offline: another one goes on.
                    let now = self.core.now();
                    self.core.schedule(now, Event::Changes);
                }
                self.leave_interrupt(cpu);
                Flow::Next
            }
        }
    }

    /// Whether a task has what a change would give it: the kernel does nothing then
    /// (`set_user_nice()`, `__sched_setscheduler()`).
    fn is_so_already(&self, change: &Change) -> bool {
        match *change {
            Change::Nice(task, nice) => self.core.task(task).nice == nice.clamp(-20, 19),
            Change::Policy(task, policy) => self.core.task(task).policy == policy,
            Change::Slice(task, slice) => self.core.task(task).slice == slice,
            Change::UclampMin(task, min) => self.core.task(task).uclamp.min == min,
            Change::UclampMax(task, max) => self.core.task(task).uclamp.max == max,
            Change::Group(task, group) => self.core.task(task).group == group,
            _ => false,
        }
    }

    /// Performs `change` on `cpu`.
    pub(crate) fn change(&mut self, cpu: CpuId, change: Change) -> Flow {
        if self.is_so_already(&change) {
            return Flow::Next;
        }
        match change {
            Change::Nice(task, nice) => {
                self.core.task_mut(task).nice = nice.clamp(-20, 19);
                self.core.record_nice(task);
                self.set_weight(cpu, task)
            }
            Change::Policy(task, policy) => {
                self.core
                    .requeue(task, |core| core.task_mut(task).policy = policy);
                self.core.record_policy(task);
                // Quotas concern fair tasks alone.
                let took = self.reconsider(cpu, [task]);
                self.set_weight(cpu, task);
                took
            }
            Change::UclampMin(task, min) => {
                self.core.task_mut(task).uclamp.min = min;
                self.set_weight(cpu, task)
            }
            Change::UclampMax(task, max) => {
                self.core.task_mut(task).uclamp.max = max;
                self.set_weight(cpu, task)
            }
            Change::Slice(task, slice) => {
                self.core.task_mut(task).slice = slice;
                self.core.record_slice(task);
                self.set_weight(cpu, task)
            }
            Change::Group(task, group) => {
                self.core.change_group(task, group);
                if self.core.confine(task) {
                    self.core.record_affinity(task);
                    self.follow_affinity(cpu, task);
                }
                let took = self.reconsider(cpu, [task]);
                self.set_weight(cpu, task);
                took
            }
            Change::Affinity(task, cpus) => {
                let Some(asked) = self.core.existing(&cpus) else {
                    return Flow::Next;
                };
                self.core.task_mut(task).asked = Some(asked);
                let changes = self.core.confine(task);
                self.core.record_affinity(task);
                match changes {
                    true => self.follow_affinity(cpu, task),
                    false => Flow::Next,
                }
            }
            Change::Fragment(task, fragment) => self.name_fragment(cpu, task, fragment),
            Change::Stop(task) => self.stop(cpu, task, true),
            Change::Continue(task) => self.stop(cpu, task, false),
            Change::Weight(group, weight) => {
                self.core.groups.set_weight(group, weight);
                self.core.record_cgroup(group);
                self.core.cpu(cpu).stack.push(Step::SetGroupWeight(group));
                Flow::Next
            }
            Change::Quota(group, quota) => {
                self.set_limits(cpu, group, |limits| Limits { quota, ..limits })
            }
            Change::Burst(group, burst) => {
                self.set_limits(cpu, group, |limits| Limits { burst, ..limits })
            }
            Change::Idle(group, idle) => {
                self.core.groups.set_idle(group, idle);
                self.core.record_cgroup(group);
                self.core.cpu(cpu).stack.push(Step::SetGroupWeight(group));
                Flow::Next
            }
            Change::Cpuset(group, cpus) => self.set_cpuset(cpu, group, &cpus),
            Change::Freeze(group) => self.freeze(cpu, group, true),
            Change::Thaw(group) => self.freeze(cpu, group, false),
            Change::Online(target, online) => {
                if self.core.may_set_online(target, online) {
                    self.set_online(cpu, target, online);
                }
                Flow::Next
            }
        }
    }

    /// Calls the scheduler's `set_weight` for `task`, unless it has exited.
    fn set_weight(&mut self, cpu: CpuId, task: TaskId) -> Flow {
        let view = self.core.view(task);
        if view.task.state != State::Dead {
            let locks = self
                .scheduler
                .locks(Callback::SetWeight(view), view.last_cpu());
            self.push_locked(cpu, locks, Step::SetWeight(task));
        }
        Flow::Next
    }

    /// Calls the scheduler's `set_cpumask` for `task`, unless it has exited. This CPU is not
    /// preempted before the call, since the scheduler still queues the task by its old affinity.
    pub(crate) fn set_cpumask(&mut self, cpu: CpuId, task: TaskId) -> Flow {
        let view = self.core.view(task);
        if view.task.state != State::Dead {
            let locks = self
                .scheduler
                .locks(Callback::SetCpumask(view), view.last_cpu());
            self.push_locked(cpu, locks, Step::SetCpumask(task));
        }
        Flow::Next
    }

    /// `task` is to name `fragment`: itself, on its way to user mode.
    fn name_fragment(&mut self, cpu: CpuId, task: TaskId, fragment: Option<Fragment>) -> Flow {
        self.core.rename_data(task, fragment);
        Flow::Takes(self.notify(cpu, task), self.mode(cpu, false))
    }

    /// The current task of `cpu` names other data than before; the scheduler may want to move it.
    pub(crate) fn set_fragment(&mut self, cpu: CpuId, fragment: Option<Fragment>) -> Flow {
        let current = self.core.current(cpu);
        if self.core.task_mut(current).fragment == fragment {
            return Flow::Next;
        }
        self.core.task_mut(current).fragment = fragment;
        self.core.record_fragment(current);
        self.callback(cpu, |scheduler, context| {
            scheduler.set_fragment(context, current, fragment);
        })
    }
}

impl System {
    /// The current task of `cpu` writes which data it uses to its line of the memory that it shares
    /// with the scheduler: here the first line of its block, where no scheduler after 2.4 keeps
    /// anything else.
    pub(crate) fn write_hint(&mut self, cpu: CpuId, fragment: Option<Fragment>) -> Step {
        let current = self.core.current(cpu);
        let core = &mut self.core;
        let (now, line) = (core.now(), core.task(current).block);
        if core.task(current).fragment != fragment {
            core.task_mut(current).fragment = fragment;
            core.record_fragment(current);
        }
        let (access, within) = (Access::Write, Within::Elsewhere);
        let left = core.memory.access(cpu, line, access, now, within);
        Step::Busy { left, user: true }
    }
}
