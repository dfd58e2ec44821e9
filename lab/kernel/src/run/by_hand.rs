//! A machine whose every event somebody else decides: no run loop, no workload, no costs.
//!
//! A scheduler is attached to it as to any machine, and gets the same [`Context`]; when its
//! callbacks are called, and what happens to tasks and CPUs meanwhile, is up to the caller. Time
//! goes on only where the caller says so.

use warmq_machine::{MachineDescription, OutOfMemory};
use warmq_units::{CpuId, CpuSet, Duration, TaskId};

use crate::core::{Core, Event, NeedResched, Recorder, State, TimerOwner, View};
use crate::face::{Attach, BootError, Context};
use crate::run::boot::hardware;
use crate::words::{Costs, Group, GroupId, Limits, Mm, Mode, Settings, TaskSpec, Times, Waiting};

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It runs, or waits for a CPU.
    Runnable,
    /// It sleeps.
    Sleeping,
    /// It has exited.
    Dead,
}

/// A machine without a run loop.
pub struct ByHand {
    core: Core,
    costs: Costs,
}

impl ByHand {
    /// A machine on which nothing takes time.
    ///
    /// # Errors
    /// If the machine's table lacks a cost.
    pub fn new(machine: &MachineDescription, settings: Settings) -> Result<ByHand, BootError> {
        let costs = Costs::free();
        let times = Times::new(&costs, machine.clock)?;
        let recorder = Recorder::new(false, false);
        let core = Core::new(hardware(machine, &settings), settings, times, recorder);
        Ok(ByHand { core, costs })
    }

    /// Attaches a scheduler.
    pub fn attach(&mut self) -> Attach<'_> {
        Attach::new(&mut self.core, &self.costs)
    }

    /// What a callback on `cpu` gets.
    pub fn context(&mut self, cpu: CpuId) -> Context<'_> {
        Context::new(&mut self.core, cpu)
    }

    /// Time goes on. Timers of the scheduler that expire meanwhile: their CPUs and tokens.
    pub fn pass(&mut self, span: Duration) -> Vec<(CpuId, u64)> {
        let until = self.core.now() + span;
        let mut expired = Vec::new();
        while let Some(event) = self.core.next_event(until) {
            // Other events are those of a run loop.
            let Event::SchedulerTimer(timer) = event else {
                continue;
            };
            if let Some((TimerOwner::Scheduler(token), cpu)) = self.core.disarm(timer) {
                expired.push((cpu, token));
            }
        }
        expired
    }

    /// A task that sleeps.
    ///
    /// # Errors
    /// If memory is used up.
    pub fn task(&mut self, spec: &TaskSpec, on: CpuId) -> Result<TaskId, OutOfMemory> {
        let task = self.core.create_task(spec, Some(on))?;
        self.set_doing(task, Doing::Sleeping);
        Ok(task)
    }

    /// A new address space.
    pub fn mm(&mut self) -> Mm {
        self.core.new_mm()
    }

    /// A group in another one.
    pub fn group(&mut self, name: &str, parent: GroupId) -> GroupId {
        self.core.groups.create(Group::new(name, Some(parent), 100))
    }

    /// The weight of a group from now on.
    pub fn set_group_weight(&mut self, group: GroupId, weight: u32) {
        self.core.groups.set_weight(group, weight);
    }

    /// Whether a group is idle from now on.
    pub fn set_group_idle(&mut self, group: GroupId, idle: bool) {
        self.core.groups.set_idle(group, idle);
    }

    /// The limits of a group from now on.
    pub fn set_group_limits(&mut self, group: GroupId, limits: Option<Limits>) {
        self.core.groups.set_limits(group, limits);
    }

    /// What is known of a task.
    pub fn view(&self, task: TaskId) -> View<'_> {
        self.core.view(task)
    }

    /// What a task does from now on.
    pub fn set_doing(&mut self, task: TaskId, doing: Doing) {
        self.core.task_mut(task).state = match doing {
            Doing::Runnable => State::Runnable,
            Doing::Sleeping => State::Sleeping(Waiting::Timer),
            Doing::Dead => State::Dead,
        };
    }

    /// The CPU that a task is on from now on.
    pub fn set_on_cpu(&mut self, task: TaskId, cpu: Option<CpuId>) {
        let state = self.core.task_mut(task);
        state.on_cpu = cpu;
        state.last_cpu = cpu.unwrap_or(state.last_cpu);
    }

    /// The nice value of a task from now on.
    pub fn set_nice(&mut self, task: TaskId, nice: i8) {
        self.core.task_mut(task).nice = nice;
    }

    /// The group of a task from now on.
    pub fn set_group(&mut self, task: TaskId, group: GroupId) {
        self.core.task_mut(task).group = group;
    }

    /// The CPUs that a task may use from now on.
    pub fn set_affinity(&mut self, task: TaskId, cpus: CpuSet) {
        self.core.task_mut(task).asked = Some(cpus);
        self.core.confine(task);
    }

    /// A CPU is in an interrupt from now on, which came in this mode, or in none any more.
    pub fn set_interrupt(&mut self, cpu: CpuId, came_in: Option<Mode>) {
        let here = self.core.cpu(cpu);
        here.irq_depth = u32::from(came_in.is_some());
        here.interrupted_user = came_in == Some(Mode::User);
    }

    /// A CPU has picked a task, or none.
    pub fn set_running(&mut self, cpu: CpuId, task: Option<TaskId>) {
        self.core.cpu(cpu).chosen = task;
    }

    /// Whether a CPU has been asked to pick again.
    pub fn is_to_pick(&self, cpu: CpuId) -> bool {
        self.core.cpus[cpu.index()].need_resched != NeedResched::No
    }

    /// A CPU picks, so that it need no longer be asked to.
    pub fn picks(&mut self, cpu: CpuId) {
        self.core.cpu(cpu).need_resched = NeedResched::No;
    }
}
