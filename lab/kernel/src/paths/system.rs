//! The simulated system with its scheduler: handles one event after another. It knows nothing of
//! observers: the run loop in `run/kernel.rs` passes records on.

use warmq_trace::Record;
use warmq_units::{CpuId, Duration, TaskId};

use crate::core::{Core, Cpu, Event, NeedResched, State, TaskStruct, Vector};
use crate::face::{Context, Scheduler};
use crate::words::{Ending, Mode, Stall};

/// The state of the system, and the scheduler that it calls.
pub(crate) struct System {
    pub(crate) core: Core,
    pub(crate) scheduler: Box<dyn Scheduler>,
}

impl System {
    pub(crate) fn handle(&mut self, event: Event) {
        match event {
            Event::StepDone { cpu, generation } => {
                if self.core.cpu(cpu).generation == generation {
                    self.advance(cpu);
                }
            }
            Event::Tick(cpu) => self.tick(cpu),
            Event::Reschedule { from, to } => {
                self.core.record(Record::RescheduleSent { from, to });
                self.interrupt(to, Vector::Reschedule);
            }
            Event::IdlePoll(cpu) => self.idle_poll(cpu),
            Event::OutOfHalt(cpu) => self.out_of_halt(cpu),
            Event::Unlock { lock, cpu } => {
                self.release(lock, cpu);
            }
            Event::Timer(timer) | Event::SchedulerTimer(timer) => self.timer_expired(timer),
            Event::Card(nic) => self.card_looks(nic),
            Event::Packet(nic, packet) => self.packet_arrived(nic, packet),
            Event::Answered(datagram) => self.core.answered(datagram),
            Event::Delivered {
                remote,
                socket,
                bytes,
            } => self.delivered(remote, socket, bytes),
            Event::DelayedAcknowledgement(socket) => self.core.acknowledge_late(socket),
            Event::Remote(remote) => self.resume_remote(remote, 0),
            Event::Operator(operator) => self.resume_operator(operator),
            Event::Changes => self.begin_changes(),
            Event::Steal(which) => self.steal(which),
            Event::Watch => self.watch(),
        }
    }

    fn tick(&mut self, cpu: CpuId) {
        let next = self.core.now() + self.core.settings.tick;
        let here = self.core.cpu(cpu);
        here.tick_pending = !here.tick_stopped;
        if here.tick_stopped {
            return;
        }
        here.next_tick = next;
        self.core.schedule(next, Event::Tick(cpu));
        self.end_if_stalled();
        if !self.core.has_ended() {
            self.interrupt(cpu, Vector::Tick);
        }
    }

    /// A CPU that polls in idle notices `need_resched` and what was left to it, if it is still
    /// idle.
    fn idle_poll(&mut self, cpu: CpuId) {
        let here = self.core.cpu(cpu);
        let called = here.need_resched != NeedResched::No || !here.wake_list.is_empty();
        if here.activity.mode == Mode::Idle && called {
            self.core.put_down(cpu);
            self.advance(cpu);
        }
    }

    /// Ends the run if nothing can happen any more.
    pub(crate) fn end_if_stalled(&mut self) {
        if !self.core.has_ended() && !self.core.work_is_done() && self.nothing_can_happen() {
            self.core.end(Ending::Stalled(self.who_waits()));
        }
    }

    fn nothing_can_happen(&self) -> bool {
        let at_rest = |cpu: &Cpu| cpu.activity.mode == Mode::Idle && cpu.interrupts.is_empty();
        !self.core.operators.is_acting()
            && self.core.only_periodic_events()
            && self.core.cpus.iter().all(at_rest)
            && !self.core.tasks.iter().any(TaskStruct::is_runnable)
    }

    fn who_waits(&self) -> Stall {
        const SHOWN: usize = 5;
        let tasks = self.core.tasks.iter().enumerate();
        let mut waiting = tasks.filter_map(|(index, task)| {
            let State::Sleeping(waiting) = task.state else {
                return None;
            };
            if task.kernel_thread {
                return None;
            }
            Some((TaskId(index as u32), task.comm.to_string(), waiting))
        });
        let who: Vec<_> = waiting.by_ref().take(SHOWN).collect();
        let tasks = who.len() + waiting.count();
        Stall::WaitsForEver {
            who,
            tasks,
            at: self.core.now(),
        }
    }

    /// Looks for a task that has been runnable without running for longer than the settings'
    /// patience.
    fn watch(&mut self) {
        let now = self.core.now();
        let patience = self.core.settings.patience;
        self.core.schedule(now + patience / 4, Event::Watch);
        let starved = |task: &TaskStruct| {
            task.is_runnable() && task.on_cpu.is_none() && now.since(task.runnable_since) > patience
        };
        let found = self.core.tasks.iter().position(starved);
        if let Some(index) = found {
            let task = &self.core.tasks[index];
            let never_ran = Stall::NeverRan {
                task: TaskId(index as u32),
                comm: task.comm.to_string(),
                since: task.runnable_since,
                waited: now - task.runnable_since,
            };
            self.core.end(Ending::Stalled(never_ran));
        }
    }

    /// Calls the scheduler on `cpu`; returns how long the callback took.
    pub(crate) fn call(
        &mut self,
        cpu: CpuId,
        call: impl FnOnce(&mut dyn Scheduler, &mut Context<'_>),
    ) -> Duration {
        let mut context = Context::new(&mut self.core, cpu);
        call(&mut *self.scheduler, &mut context);
        let (took, broke) = context.end();
        if let Some(rule) = broke {
            self.core.broke(cpu, rule);
        }
        if self.core.memory_full().is_some() {
            self.core.run_out_of_memory();
        }
        took
    }
}
