//! Joining and leaving lists (`enqueue_task()`, `dequeue_task()`, `requeue_task()`), and the memory
//! that this writes.

use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_units::TaskId;

use super::O1;
use super::arrays::Node;

impl O1 {
    /// Puts `task`, which is in no list, at the end of that of its priority in `array` of the queue
    /// of its CPU.
    pub(super) fn add_last(&mut self, context: &mut Context<'_>, task: TaskId, array: usize) {
        let state = self.task(task);
        let (cpu, priority) = (state.cpu, state.priority);
        let nodes = self.queue_mut(cpu).arrays[array].add_last(priority, task);
        self.linked(context, task, array, nodes);
    }

    /// Puts `task` at the end of its list in the active array (`__activate_task()`).
    pub(super) fn add_active(&mut self, context: &mut Context<'_>, task: TaskId) {
        let active = self.queue(self.task(task).cpu).active;
        self.add_last(context, task, active);
    }

    /// Puts `task` just before `other`, which is in `array` of the same queue, at its priority.
    pub(super) fn add_before(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        other: TaskId,
        array: usize,
    ) {
        let (cpu, priority) = (self.task(task).cpu, self.task(other).priority);
        self.task_mut(task).priority = priority;
        let nodes = self.queue_mut(cpu).arrays[array].add_before(priority, task, other);
        self.linked(context, task, array, nodes);
    }

    fn linked(&mut self, context: &mut Context<'_>, task: TaskId, array: usize, nodes: [Node; 2]) {
        self.task_mut(task).array = Some(array);
        self.write(context, task, array, nodes);
    }

    /// Takes `task` out of its list. Returns the array in which it was, if it was in any.
    pub(super) fn remove(&mut self, context: &mut Context<'_>, task: TaskId) -> Option<usize> {
        let state = self.task_mut(task);
        let array = state.array.take()?;
        let (cpu, priority) = (state.cpu, state.priority);
        let nodes = self.queue_mut(cpu).arrays[array].remove(priority, task)?;
        self.write(context, task, array, nodes);
        Some(array)
    }

    /// Puts `task` at the end of its list.
    pub(super) fn requeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        if let Some(array) = self.remove(context, task) {
            self.add_last(context, task, array);
        }
    }

    /// Linking and unlinking write the links of the task and of its neighbours, the bitmap and
    /// `nr_active` of the array, and `nr_running`.
    fn write(&self, context: &mut Context<'_>, task: TaskId, array: usize, nodes: [Node; 2]) {
        let state = self.task(task);
        let queue = self.queue(state.cpu);
        context.touch(state.list_line(), Access::Write);
        for node in nodes {
            let address = match node {
                Node::Head(address) => address,
                Node::Task(neighbour) => self.task(neighbour).list_line(),
            };
            context.touch(address, Access::Write);
        }
        context.touch(queue.arrays[array].base(), Access::Write);
        context.touch(queue.line, Access::Write);
    }
}
