//! Which CPUs are online, their ticks, and how one makes another look at what is left to it.

use warmq_trace::Record;
use warmq_units::{CpuId, CpuSet, Duration, Instant, TaskId};

use crate::core::interrupt::{PendingSoftirqs, Softirq};
use crate::core::task::State;
use crate::core::{Core, Event};
use crate::words::{IdleLoop, Mode};

impl Core {
    /// Restarts the tick of `cpu` if it is stopped and the CPU leaves idle; returns what that
    /// costs.
    pub(crate) fn restart_tick(&mut self, cpu: CpuId, next: Option<TaskId>) -> Duration {
        if next.is_none() || !self.cpu(cpu).tick_stopped {
            return Duration::ZERO;
        }
        self.start_tick(cpu);
        if self.settings.nohz {
            self.times.nohz_exit
        } else {
            Duration::ZERO
        }
    }

    /// Restarts the tick of `cpu`, at the next whole period after its first tick.
    pub(crate) fn start_tick(&mut self, cpu: CpuId) {
        let (now, period) = (self.now(), self.settings.tick.0);
        let here = self.cpu(cpu);
        let periods = now.since(here.first_tick).0 / period + 1;
        let next = match now < here.first_tick {
            true => here.first_tick,
            false => Instant(here.first_tick.0 + periods * period),
        };
        here.tick_stopped = false;
        here.next_tick = next;
        // A tick that is still in the timeline serves as this one.
        if !std::mem::replace(&mut here.tick_pending, true) {
            self.schedule(next, Event::Tick(cpu));
        }
    }

    pub(crate) fn online_cpus(&self) -> CpuSet {
        let cpus = self.cpu_ids();
        cpus.filter(|cpu| self.cpus[cpu.index()].online).collect()
    }

    /// Whether `target` exists and can be taken offline, or online: the last CPU stays online
    /// (EBUSY).
    pub(crate) fn may_set_online(&self, target: CpuId, online: bool) -> bool {
        let known = self.cpus.get(target.index());
        let changes = known.is_some_and(|there| there.online != online);
        changes && (online || self.online_cpus().len() > 1)
    }

    /// Marks `cpu` as online or offline.
    pub(crate) fn mark(&mut self, cpu: CpuId, online: bool) {
        self.cpu(cpu).online = online;
        let all = self.cpu_ids();
        let offline: CpuSet = all.filter(|cpu| !self.cpus[cpu.index()].online).collect();
        self.offline = Some(offline).filter(|offline| !offline.is_empty());
        self.record(Record::Hotplug { cpu, online });
    }

    /// The tasks to be moved when `cpu` goes offline: those that wait there, and those that may run
    /// nowhere else, whose affinity is lifted (`select_fallback_rq()`). The running task is
    /// preempted; `ksoftirqd` stays, parked.
    pub(crate) fn left_behind_by(&mut self, cpu: CpuId) -> Vec<TaskId> {
        let online = self.online_cpus();
        let (mut found, mut freed) = (Vec::new(), Vec::new());
        for (index, task) in self.tasks.iter_mut().enumerate() {
            if task.state == State::Dead || task.kernel_thread {
                continue;
            }
            let nowhere = |set: &CpuSet| set.intersection(&online).is_empty();
            let lifted = task.allowed.take_if(|set| nowhere(set)).is_some();
            if lifted {
                freed.push(TaskId(index as u32));
            }
            if lifted || task.last_cpu == cpu && task.is_runnable() {
                found.push(TaskId(index as u32));
            }
        }
        for task in freed {
            self.record_affinity(task);
        }
        found
    }

    /// Whether `task` is a thread of a CPU that is offline.
    pub(crate) fn is_parked(&self, task: TaskId) -> bool {
        self.task(task).kernel_thread && self.first_allowed(task).is_none()
    }

    /// Moves the poll list of `cpu`, which is offline, to another CPU (`dev_cpu_dead()`).
    pub(crate) fn move_softirqs(&mut self, cpu: CpuId) {
        let other = self.online_or_first(cpu);
        let here = self.cpu(cpu);
        here.softirqs = PendingSoftirqs::default();
        let polled = std::mem::take(&mut here.poll_list);
        let backlog = std::mem::take(&mut here.backlog);
        if polled.is_empty() {
            return;
        }
        let there = self.cpu(other);
        there.backlog.extend(backlog);
        for polled in polled {
            there.will_poll(polled);
        }
        there.softirqs.raise(Softirq::NetRx);
    }

    /// What idle CPUs do.
    pub(crate) fn idle_loop(&self) -> IdleLoop {
        match self.times.halt_exit {
            Some(_) => IdleLoop::Halt,
            None => self.settings.idle_loop,
        }
    }

    /// Whether `cpu` idles, and will notice what is asked of it without an interrupt.
    pub(crate) fn polls_in_idle(&self, cpu: CpuId) -> bool {
        let idles = self.cpus[cpu.index()].activity.mode == Mode::Idle;
        idles && self.idle_loop() == IdleLoop::Poll
    }

    /// Makes `to` look at its list of calls; returns how long that takes `from`
    /// (`send_call_function_single_ipi()`).
    pub(crate) fn call_for(&mut self, from: CpuId, to: CpuId) -> Duration {
        let now = self.now();
        if self.polls_in_idle(to) {
            self.schedule(now + self.times.idle_poll, Event::IdlePoll(to));
            return Duration::ZERO;
        }
        let takes = self.times.reschedule_interrupt;
        self.schedule(now + takes, Event::Reschedule { from, to });
        takes
    }
}
