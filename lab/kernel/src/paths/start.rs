//! How time starts: first tasks are queued, ticks begin, and every CPU picks a task.

use warmq_trace::Record;
use warmq_units::{CpuId, Instant, TaskId};

use crate::core::{Event, NeedResched, State};
use crate::paths::System;
use crate::words::{Remote, Why};

impl System {
    /// The first tasks join the run queue, the ticks start, and every CPU picks a task. What the
    /// scheduler does before that costs nothing. The caches are cold, as on a machine that has been
    /// up for long and whose tasks slept until now. With `skewed_ticks` the ticks are spread over
    /// the period.
    pub(crate) fn start_time(&mut self, skewed_ticks: bool) {
        for index in 0..self.core.tasks.len() {
            self.start_task(TaskId(index as u32));
        }
        self.core.memory.switch_caches_on();
        for index in 0..self.core.net.remotes.len() {
            let event = Event::Remote(Remote(index as u32));
            self.core.schedule(Instant::START, event);
        }
        self.start_operators();
        let first_watch = Instant::START + self.core.settings.patience;
        self.core.schedule(first_watch, Event::Watch);
        let cpus = self.core.cpus.len() as u64;
        let tick = self.core.settings.tick.0;
        let phase = self.tick_phase();
        for index in 0..cpus {
            let skew = match skewed_ticks {
                true => tick * (index + 1) / cpus,
                false => tick,
            };
            let first = Instant(1 + (phase + skew - 1) % tick);
            let cpu = CpuId(index as u16);
            let here = self.core.cpu(cpu);
            (here.first_tick, here.next_tick) = (first, first);
            here.tick_pending = true;
            self.core.schedule(first, Event::Tick(cpu));
        }
        for cpu in self.core.cpu_ids() {
            self.core.cpu(cpu).need_resched = NeedResched::Now;
            self.advance(cpu);
        }
    }

    /// How far, within a period, the ticks are from the start of the first tasks, in ns.
    fn tick_phase(&self) -> u64 {
        let settings = &self.core.settings;
        match settings.drawn_ticks {
            true => settings.seed.stream("ticks").below(settings.tick.0),
            false => 0,
        }
    }

    fn start_task(&mut self, id: TaskId) {
        let task = self.core.task_mut(id);
        let (cpu, comm) = (task.last_cpu, task.comm);
        self.core.record(Record::Fork {
            parent: None,
            child: id,
            comm,
        });
        if self.core.is_outside(id) {
            return;
        }
        self.core.record_birth(id);
        let task = self.core.task_mut(id);
        if task.is_asleep() {
            self.call(cpu, |scheduler, context| scheduler.fork(context, None, id));
            return;
        }
        let target = self.place_first(id);
        let task = self.core.task_mut(id);
        (task.state, task.queued) = (State::Runnable, true);
        (task.last_cpu, task.queue) = (target, target);
        self.core.join_queues(id);
        self.core.record(Record::Wakeup {
            waker: target,
            task: id,
            target,
        });
        self.call(target, |scheduler, context| {
            scheduler.enqueue(context, id, target, Why::Fork);
        });
    }

    /// Where a first task begins: as the programs of a shell do that runs on the first CPU, and
    /// waits whenever it has started one. So those before it are counted, and the shell is not.
    fn place_first(&mut self, id: TaskId) -> CpuId {
        let shell = self.core.online_or_first(CpuId(0));
        let mut target = shell;
        self.call(shell, |scheduler, context| {
            scheduler.fork(context, None, id);
            target = scheduler.exec_cpu(context, id);
        });
        match self.bad_target(id, target) {
            Some(rule) => {
                self.core.broke(shell, rule);
                shell
            }
            None => target,
        }
    }
}
