//! Cores of several CPUs: a task that runs beside busy siblings goes to a core where fewer are
//! busy. Nothing else moves a task that runs and does not sleep.

use warmq_decide::{self as decide, Reach};
use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use super::state::{Kind, State, ns};

/// A CPU on a better core.
#[derive(Clone, Copy)]
struct Room {
    cpu: CpuId,
    gain: u32,
    reach: Reach,
}

impl State {
    /// At the tick of a task: whether it gives up this CPU for one on a better core, which is
    /// noted, or becomes the home of its group.
    pub(super) fn leaves_core(&mut self, context: &mut Context<'_>, task: TaskId) -> bool {
        let (here, now) = (context.cpu(), ns(context));
        let Some(room) = self.best_room(context, task, here) else {
            self.cpus[here.index()].crowded_since = None;
            return false;
        };
        let first = self.topology.first_of_core(here);
        let left_at = self.cpus[first.index()].left_at;
        let since = *self.cpus[here.index()].crowded_since.get_or_insert(now);
        let since_left = left_at.map_or(u64::MAX, |left| now.saturating_sub(left));
        let lasted = now.saturating_sub(since);
        let leaves = decide::leaves_core(&self.policy, room.reach, lasted, since_left);
        if leaves {
            self.cpus[first.index()].left_at = Some(now);
            self.cpus[here.index()].crowded_since = None;
            match self.group_at_cpu(task) {
                Some(group) => self.rehome(context, group, room.cpu.index()),
                None => self.tasks[task.index()].goes_to = Some(room.cpu),
            }
        }
        leaves
    }

    /// Where a task that runs on `here` gains most; the first of equals.
    fn best_room(&self, context: &mut Context<'_>, task: TaskId, here: CpuId) -> Option<Room> {
        if self.topology.siblings(here).is_empty() || !context.task(task).may_run_on(here) {
            return None;
        }
        context.touch(self.idle_line, Access::Read);
        let busy = self.busy_siblings(context, here);
        if busy == 0 {
            return None;
        }
        let cpus = self.topology.cpus().map(|cpu| CpuId(cpu as u16));
        let group = self.group_at_cpu(task);
        let fits = |cpu: &CpuId| match group {
            Some(group) => self.may_take_group(context, task, group, *cpu),
            None => self.is_room_for(context, task, *cpu),
        };
        cpus.filter(fits)
            .map(|cpu| {
                let (there, own) = (self.topology.domain_of(cpu), self.topology.domain_of(here));
                let reach = self.topology.reach(there, own);
                let gain = decide::core_gain(busy, self.busy_siblings(context, cpu), reach);
                Room { cpu, gain, reach }
            })
            .filter(|room| room.gain > 0)
            .reduce(|best, room| if room.gain > best.gain { room } else { best })
    }

    /// Whether `task` could go to `cpu`, which idles: a member of a group only at its home.
    fn is_room_for(&self, context: &Context<'_>, task: TaskId, cpu: CpuId) -> bool {
        let Some(entity) = self.tasks[task.index()].entity else {
            return false;
        };
        let goes_there = match self.entities[entity].kind {
            Kind::Unmanaged { .. } => true,
            Kind::Pinned { .. } => false,
            Kind::Group { .. } => self.serves(cpu, entity),
        };
        goes_there && self.is_idle(context, cpu) && context.task(task).may_run_on(cpu)
    }

    /// The group of `task`, if homes are CPUs.
    fn group_at_cpu(&self, task: TaskId) -> Option<usize> {
        let entity = self.tasks[task.index()].entity?;
        let group = self.group_of_entity(entity);
        group.filter(|_| self.topology.place_is_cpu())
    }

    /// Whether `group`, of which `task` runs here, at home, could live on `cpu` instead.
    fn may_take_group(
        &self,
        context: &Context<'_>,
        task: TaskId,
        group: usize,
        cpu: CpuId,
    ) -> bool {
        let (here, view) = (context.cpu().index(), context.task(task));
        let state = &self.groups[group];
        let weight = self.entities[state.entity].time.weight;
        let (load, there) = (self.load_of_place(here), self.load_of_place(cpu.index()));
        state.home == here
            && !state.narrow
            && self.is_idle(context, cpu)
            && self.topology.fits(view, cpu.index())
            && self.tasks[task.index()].group == Some(group)
            && decide::group_comes_along(weight, load, there)
    }

    /// How many of the other CPUs of a core are busy.
    fn busy_siblings(&self, context: &Context<'_>, cpu: CpuId) -> u32 {
        let siblings = self.topology.siblings(cpu).iter();
        siblings.filter(|it| !self.is_idle(context, **it)).count() as u32
    }

    /// The CPU to which a task that gives up its own goes; none if it is no longer idle.
    pub(super) fn take_room(&mut self, context: &mut Context<'_>, task: TaskId) -> Option<CpuId> {
        let cpu = self.tasks[task.index()].goes_to.take()?;
        let free = self.is_room_for(context, task, cpu);
        if free {
            self.claim(context, cpu);
        }
        free.then_some(cpu)
    }
}
