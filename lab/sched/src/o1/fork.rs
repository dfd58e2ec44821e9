//! Forks and exits: what a child gets of its parent's slice and `sleep_avg`, and what comes back
//! (`sched_fork()`, `wake_up_new_task()`, `sched_exit()`).

use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use super::O1;
use super::release::Release;
use super::rules::shared_slice;
use super::task::{STRUCTURE, TaskState};

impl O1 {
    /// Makes room for `task`, which was just created. Forks on two CPUs may be reported in another
    /// order than that of the task numbers.
    pub(super) fn admit(&mut self, context: &mut Context<'_>, task: TaskId) {
        while self.tasks.len() <= task.index() {
            let structure = self.freed.pop();
            let structure = structure.unwrap_or_else(|| context.data(STRUCTURE));
            self.tasks.push(TaskState::new(structure));
        }
    }

    /// `child` gets half of the slice of `creator`, who forked it, and a copy of what is known of
    /// it. The first tasks of a run have nobody to share with.
    pub(super) fn share_with_child(
        &mut self,
        context: &mut Context<'_>,
        creator: Option<TaskId>,
        child: TaskId,
    ) {
        let (now, rules) = (self.now(context), self.rules);
        let process = self.is_process(context, creator, child);
        let creator_state = creator.map(|creator| self.task(creator).clone());
        let view = context.task(child);
        let state = &mut self.tasks[child.index()];
        state.follow(view);
        state.cpu = view.last_cpu();
        state.timestamp = now;
        state.slice = rules.slice(state.nice);
        if let Some(from) = creator_state {
            state.sleep_avg = from.sleep_avg;
            state.last_ran = from.last_ran;
            state.first_slice = true;
            state.slice = shared_slice(from.slice).0;
            state.parent = if process { creator } else { from.parent };
        }
        state.priority = state.effective_priority(&rules);
        context.touch(self.task(child).slice_line(), Access::Write);
        if let Some(creator) = creator {
            self.halve_slice(context, creator);
        }
    }

    /// The rest of a slice of which a child got half. One that is used up by that expires at once.
    fn halve_slice(&mut self, context: &mut Context<'_>, creator: TaskId) {
        let state = self.task_mut(creator);
        state.slice = shared_slice(state.slice).1;
        context.touch(self.task(creator).slice_line(), Access::Write);
        if self.task(creator).slice == 0 {
            self.task_mut(creator).slice = 1;
            self.charge_tick(context, creator);
        }
    }

    /// Whether `child` is a process: it has memory of its own, unlike a thread.
    fn is_process(&self, context: &Context<'_>, creator: Option<TaskId>, child: TaskId) -> bool {
        let mm = context.task(child).mm();
        let of_creator = creator.and_then(|creator| context.task(creator).mm());
        mm.is_some() && mm != of_creator
    }

    /// Whether `child` runs before `creator`: a process does, and in 2.6.4 a thread too.
    fn runs_first(&self, context: &Context<'_>, creator: TaskId, child: TaskId) -> bool {
        let any = self.rules.release == Release::V2_6_4;
        any || self.is_process(context, Some(creator), child)
    }

    /// Queues a new task: a process just before its parent, a thread at the end of its own list.
    /// Both it and its parent keep less `sleep_avg`.
    pub(super) fn activate_new(&mut self, context: &mut Context<'_>, task: TaskId) {
        let (here, rules) = (context.cpu(), self.rules);
        let creator = context.running_on(here).filter(|running| *running != task);
        let state = self.task_mut(task);
        if creator.is_some() {
            state.sleep_avg = rules.of_child(state.sleep_avg);
        }
        state.priority = state.effective_priority(&rules);
        match creator
            .and_then(|creator| Some((creator, self.array_before(context, task, creator)?)))
        {
            Some((creator, array)) => self.add_before(context, task, creator, array),
            None => self.add_active(context, task),
        }
        if let Some(creator) = creator {
            let state = self.task_mut(creator);
            state.sleep_avg = rules.of_parent(state.sleep_avg);
        }
    }

    /// The array in which the new process `task` is queued just before `creator`; `None` if it goes
    /// to the end of its own list. So does, unlike in the kernel, a process that is created with
    /// another nice value or policy than its parent's.
    fn array_before(&self, context: &Context<'_>, task: TaskId, creator: TaskId) -> Option<usize> {
        let (child, parent) = (self.task(task), self.task(creator));
        let alike = child.nice == parent.nice && child.policy == parent.policy;
        let together = child.cpu == parent.cpu;
        parent
            .array
            .filter(|_| alike && together && self.runs_first(context, creator, task))
    }

    /// Who runs before its parent preempts it. Any other does not.
    pub(super) fn preempt_for_new(&self, context: &mut Context<'_>, task: TaskId, cpu: CpuId) {
        let here = context.cpu();
        let creator = context.running_on(here).filter(|running| *running != task);
        match creator.filter(|_| cpu == here) {
            Some(creator) if self.runs_first(context, creator, task) => {
                context.reschedule(here);
            }
            Some(_) => {}
            None => self.preempt(context, task),
        }
    }

    /// `task` has exited. What is left of its first slice goes back to the parent, who also pays if
    /// the task has slept less than it.
    pub(super) fn return_to_parent(&mut self, context: &mut Context<'_>, task: TaskId) {
        let rules = self.rules;
        let child = self.task_mut(task);
        child.exited = true;
        let (structure, child) = (child.structure, child.clone());
        if let Some(parent) = child.parent
            && !self.task(parent).exited
        {
            let state = self.task_mut(parent);
            if child.first_slice && child.cpu == state.cpu {
                let full = rules.slice(child.nice);
                state.slice = (state.slice + child.slice).min(full);
            }
            state.sleep_avg = rules.after_exit(state.sleep_avg, child.sleep_avg);
            context.touch(self.task(parent).slice_line(), Access::Write);
        }
        self.freed.push(structure);
    }
}
