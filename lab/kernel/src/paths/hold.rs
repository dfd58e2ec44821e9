//! Tasks that may not run: stopped ones, and those whose group is frozen or has used up its quota.
//!
//! As in Linux, whatever holds a task takes effect on its way to user mode: there it leaves its CPU
//! as if it slept, and what it does in the kernel, perhaps with locks, it does to the end.
//! (Throttled tasks: since Linux 6.18.) So no scheduler needs to know of it. A task that sleeps
//! goes on sleeping; when it is woken, the wakeup waits until nothing holds the task any more, but
//! for tasks whose group is out of quota where `Throttling::Tasks` is set. Where
//! `Throttling::Groups` is set, a task that is out of quota leaves at the next call of
//! `schedule()`, wherever it is in the kernel.

use warmq_units::{CpuId, Duration, TaskId};

use crate::core::Event;
use crate::paths::{Flow, System};
use crate::words::{GroupId, Preemptible, Step, wake};

impl System {
    /// What the current task of `cpu` has to do on its way to user mode, if it is on it.
    pub(crate) fn work_of_current(&mut self, cpu: CpuId) -> Option<Step> {
        let here = self.core.cpu(cpu);
        let current = here.current?;
        let next = here.stack.last();
        let class = next.map_or(Preemptible::User, Step::preemptible);
        if class != Preemptible::User || !self.core.task(current).is_runnable() {
            return None;
        }
        if let Some(fragment) = self.core.task_mut(current).new_fragment.take() {
            return Some(Step::SetFragment(fragment));
        }
        let Some(hold) = self.core.held_by(current) else {
            self.core.cpu(cpu).has_work = false;
            return None;
        };
        self.core.hold_back(current, hold);
        self.core.record_block(cpu, current, hold);
        Some(Step::Schedule)
    }

    /// Sees to it that `task`, if it runs, looks for work on its way to user mode. Returns how long
    /// that takes `cpu`, which interrupts the task's CPU if that is another one.
    pub(crate) fn notify(&mut self, cpu: CpuId, task: TaskId) -> Duration {
        let Some(there) = self.core.task(task).on_cpu else {
            return Duration::ZERO;
        };
        // One that was picked and is not yet there will look when it is.
        if self.core.cpu(there).current != Some(task) {
            return Duration::ZERO;
        }
        self.core.cpu(there).has_work = true;
        if there == cpu {
            return Duration::ZERO;
        }
        let takes = self.core.times.reschedule_interrupt;
        let (from, to) = (cpu, there);
        let at = self.core.now() + takes;
        self.core.schedule(at, Event::Reschedule { from, to });
        takes
    }

    /// What holds `tasks` has changed: those that run and may not are stopped, those that were held
    /// back and may run are woken, in their order.
    pub(crate) fn reconsider(
        &mut self,
        cpu: CpuId,
        tasks: impl IntoIterator<Item = TaskId>,
    ) -> Flow {
        let (mut took, mut woken) = (Duration::ZERO, Vec::new());
        for task in tasks {
            let held = self.core.task(task).held_back.is_some();
            match (self.core.held_by(task), held) {
                (Some(hold), true) => self.core.hold_back(task, hold),
                (Some(_), false) => took += self.notify(cpu, task),
                (None, true) => {
                    self.core.task_mut(task).held_back = None;
                    woken.push(wake(task));
                }
                (None, false) => {}
            }
        }
        self.core.cpu(cpu).stack.extend(woken.into_iter().rev());
        Flow::Takes(took, self.mode(cpu, false))
    }

    /// Stops `task`, or lets it continue.
    pub(crate) fn stop(&mut self, cpu: CpuId, task: TaskId, stops: bool) -> Flow {
        self.core.set_stopped(task, stops);
        self.reconsider(cpu, [task])
    }

    /// Freezes `group` with all that is in it, or thaws it.
    pub(crate) fn freeze(&mut self, cpu: CpuId, group: GroupId, freezes: bool) -> Flow {
        self.core.set_frozen(group, freezes);
        self.reconsider_group(cpu, group)
    }

    /// What holds the tasks in `group` has changed.
    pub(crate) fn reconsider_group(&mut self, cpu: CpuId, group: GroupId) -> Flow {
        let members = self.core.members(group);
        self.reconsider(cpu, members)
    }
}
