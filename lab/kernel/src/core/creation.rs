//! Creates tasks.

use warmq_machine::OutOfMemory;
use warmq_trace::Record;
use warmq_units::{CpuId, CpuSet, TaskId};

use crate::core::Core;
use crate::core::groups::within;
use crate::core::task::{State, TaskStruct};
use crate::words::{BoxedProgram, GroupId, Step, Task, TaskSpec, Waiting};

impl Core {
    /// Creates a task without a program, on CPU `on`.
    pub(crate) fn create_task(
        &mut self,
        spec: &TaskSpec,
        on: Option<CpuId>,
    ) -> Result<TaskId, OutOfMemory> {
        let block = self.memory.block(self.settings.block)?;
        let id = TaskId(self.tasks.len() as u32);
        let asked = spec.allowed.as_ref().and_then(|set| self.existing(set));
        let allowed = self.confined(spec.group, asked.as_ref());
        let may = |cpu: &CpuId| {
            allowed
                .as_ref()
                .is_none_or(|allowed| allowed.contains(*cpu))
        };
        let first = allowed.as_ref().and_then(CpuSet::first);
        let next_in_turn = CpuId((id.0 % self.cpus.len() as u32) as u16);
        let placed = on.filter(may).or(first).unwrap_or(next_in_turn);
        let placed = self.online_or_first(placed);
        let mut task = TaskStruct::new(spec, allowed, block, placed, self.now());
        task.asked = asked;
        self.awaited += u64::from(task.awaited);
        self.tasks.push(task);
        Ok(id)
    }

    /// Creates the `ksoftirqd` of every CPU, asleep, if the kernel has them.
    pub(crate) fn create_ksoftirqds(&mut self) -> Result<(), OutOfMemory> {
        let Some(nice) = self.settings.softirqs.ksoftirqd else {
            return Ok(());
        };
        for cpu in self.cpu_ids() {
            let name = format!("ksoftirqd/{}", cpu.0);
            let spec = TaskSpec::kernel_thread(&name).nice(nice).bound([cpu]);
            let thread = self.create_task(&spec, Some(cpu))?;
            let state = self.task_mut(thread);
            state.state = State::Sleeping(Waiting::Softirqs);
            state.stack.push(Step::Ksoftirqd);
            self.ksoftirqds.push(thread);
        }
        Ok(())
    }

    /// The first online CPU that the affinity of `task` allows.
    pub(crate) fn first_allowed(&self, task: TaskId) -> Option<CpuId> {
        let view = self.view(task);
        self.cpu_ids().find(|cpu| view.may_run_on(*cpu))
    }

    /// Those of `cpus` that the machine has; `None` if none of them is online (EINVAL of
    /// `__set_cpus_allowed_ptr()`).
    pub(crate) fn existing(&self, cpus: &CpuSet) -> Option<CpuSet> {
        let all = CpuSet::first_cpus(self.cpus.len() as u16);
        let online = |existing: &CpuSet| !existing.intersection(&self.online_cpus()).is_empty();
        Some(cpus.intersection(&all)).filter(online)
    }

    /// The affinity of a task of `group` that asks for `asked`: those of the group's CPUs that it
    /// asks for, or all of them if none of these is online (`cpuset_cpus_allowed()`,
    /// `__set_cpus_allowed_ptr()`).
    fn confined(&self, group: GroupId, asked: Option<&CpuSet>) -> Option<CpuSet> {
        let online = self.online_cpus();
        let outer = self.groups.cpus_of(group, &online);
        match asked {
            Some(asked) => within(asked, outer, &online),
            None => outer,
        }
    }

    /// Makes the affinity of `task` that which it asks for, within the CPUs of its group. True if
    /// it changed.
    pub(crate) fn confine(&mut self, task: TaskId) -> bool {
        let state = self.task(task);
        if state.kernel_thread {
            return false;
        }
        let allowed = self.confined(state.group, state.asked.as_ref());
        let before = std::mem::replace(&mut self.task_mut(task).allowed, allowed.clone());
        let all = CpuSet::first_cpus(self.cpus.len() as u16);
        allowed.as_ref().unwrap_or(&all) != before.as_ref().unwrap_or(&all)
    }

    /// Records the affinity of `task`, 64 CPUs per record, unless it has exited.
    pub(crate) fn record_affinity(&mut self, task: TaskId) {
        let known = !matches!(self.task(task).state, State::New | State::Dead);
        if self.recorder.listens() && known {
            self.record_allowed(task);
        }
    }

    /// Records what a task that has just been forked is like, where that is not the default.
    pub(crate) fn record_birth(&mut self, task: TaskId) {
        if !self.recorder.listens() {
            return;
        }
        self.record_role(task);
        if self.task(task).allowed.is_some() {
            self.record_allowed(task);
        }
        self.record_attributes(task);
    }

    fn record_allowed(&mut self, task: TaskId) {
        for word in 0..self.cpus.len().div_ceil(64) {
            let allowed = self.task(task).allowed.as_ref();
            self.record(Record::Affinity {
                task,
                from: CpuId(64 * word as u16),
                cpus: allowed.map_or(u64::MAX, |allowed| allowed.word(word)),
            });
        }
    }

    pub(crate) fn give_program(&mut self, task: TaskId, program: BoxedProgram) {
        let state = self.task_mut(task);
        let running = program.start(Task::new(task, state.mailbox.clone()));
        state.program = Some(running);
    }
}
