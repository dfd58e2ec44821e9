//! What happens to CPUs and running tasks: wakeups, ticks, timers, hints, hotplug.

use warmq_kernel::{Context, Fragment, GroupId};
use warmq_units::{CpuId, TaskId};

use crate::kfuncs;
use crate::lives::limits;
use crate::masks;
use crate::profile::Hint;
use crate::run_queue::Machine;
use crate::state::During;

impl Machine {
    /// `cpu` if a task may run there, or else one where it may, of the same node if there is one
    /// (`select_fallback_rq()`).
    pub(crate) fn allowed_near(&self, context: &Context<'_>, task: TaskId, cpu: CpuId) -> CpuId {
        let view = context.task(task);
        if view.may_run_on(cpu) {
            return cpu;
        }
        let node = |cpu: CpuId| self.state.cpu(cpu).node;
        let all = (0..context.cpus()).map(CpuId);
        let mut allowed = all.filter(|other| view.may_run_on(*other));
        let first = allowed.clone().next();
        let near = allowed.find(|other| node(*other) == node(cpu));
        near.or(first).unwrap_or(cpu)
    }

    /// `select_task_rq()`, and `select_task_rq_scx()` for tasks that have a choice.
    pub(crate) fn select(&mut self, context: &mut Context<'_>, task: TaskId, wakes: u64) -> CpuId {
        let view = context.task(task);
        let previous = view.last_cpu();
        let all = usize::from(context.cpus());
        if view.allowed().map_or(all, warmq_units::CpuSet::len) == 1 {
            return self.allowed_near(context, task, previous);
        }
        self.state.task_mut(task).cpu_selected = true;
        let Some(function) = self.callbacks.select_cpu else {
            let mut here = self.here(context);
            let found = kfuncs::select_without_program(&mut here, task, previous, wakes);
            return self.allowed_near(context, task, found);
        };
        self.here(context).write_state(task);
        let args = [self.state.task(task).address, u64::from(previous.0), wakes];
        let chosen = self.call(context, Some(function), During::Placing(task), &args);
        let there = chosen.map(|cpu| cpu as i32);
        let Some(cpu) = there.filter(|cpu| (0..i32::from(context.cpus())).contains(cpu)) else {
            if let Some(cpu) = there {
                let text = format!("invalid CPU {cpu} from ops.select_cpu()");
                self.here(context).eject(text);
            }
            return self.allowed_near(context, task, previous);
        };
        let cpu = CpuId(cpu as u16);
        let (selected, address) = (
            self.state.layouts.task.selected_cpu,
            self.state.task(task).address,
        );
        selected.set(&mut self.guest, address, cpu.0.into());
        let goes_to = self.allowed_near(context, task, cpu);
        self.state.counts.fallback += u64::from(goes_to != cpu);
        goes_to
    }

    /// `task_tick_scx()`.
    pub(crate) fn tick(&mut self, context: &mut Context<'_>, cpu: CpuId, task: TaskId) {
        let mut here = self.here(context);
        here.update_current(cpu);
        here.write_interrupt(true);
        let address = self.state.task(task).address;
        let tick = self.callbacks.tick;
        self.call(context, tick, During::Other, &[address]);
        self.here(context).write_interrupt(false);
        if self.here(context).slice(task) == 0 {
            context.reschedule(cpu);
        }
    }

    /// The task that runs here names its data by a prctl; whether it should yield.
    pub(crate) fn hears(
        &mut self,
        context: &mut Context<'_>,
        hint: &Hint,
        fragment: Option<Fragment>,
    ) -> bool {
        let value = fragment.map_or(0, |fragment| {
            (u64::from(fragment.app) << 32 | u64::from(fragment.number)) + 1
        });
        let program = self.code.program.image().program(&hint.program);
        let function = program.map(|program| program.function);
        // The other arguments of prctl, and what it would return.
        let args = [hint.option, value, 0, 0, 0, 0];
        let answer = self.call(context, function, During::Other, &args);
        answer.is_some_and(|answer| answer as i32 as u64 == hint.yields_at)
    }

    /// A timer of the program has expired on this CPU.
    pub(crate) fn timer(&mut self, context: &mut Context<'_>, timer: u64) {
        self.state.timers.remove(&timer);
        let known = self.guest.timer(timer).copied();
        let Some((known, function)) = known.and_then(|known| Some((known, known.function?))) else {
            return;
        };
        let args = [known.map, known.key, known.value];
        let code = self.code.clone();
        let mut here = self.here(context);
        here.write_interrupt(true);
        here.call_timer(&code, function, &args);
        here.write_interrupt(false);
    }

    /// The weight or the limits of a group have changed, or whether it is idle.
    pub(crate) fn group_changed(&mut self, context: &mut Context<'_>, group: GroupId) {
        for (callback, args) in self.changes_of(context, group) {
            self.call(context, callback, During::Other, &args);
        }
    }

    /// What a change of a group comes to: callbacks, and their arguments. A group that becomes idle
    /// has another weight, of which the program hears nothing (`scx_group_set_idle()`).
    pub(crate) fn changes_of(
        &mut self,
        context: &Context<'_>,
        group: GroupId,
    ) -> Vec<(Option<u32>, Vec<u64>)> {
        let (now, limits) = (context.group(group), limits(context, group));
        let Some(known) = self.state.groups.get_mut(&group) else {
            return Vec::new();
        };
        let before = *known;
        (known.weight, known.idle, known.limits) = (now.weight, now.idle, limits);
        let (address, idle) = (known.address, now.idle);
        let field = self.state.layouts.task_group.idle;
        field.set(&mut self.guest, before.task_group, idle.into());
        let callbacks = self.callbacks;
        let mut calls = Vec::new();
        if before.idle != idle {
            calls.push((callbacks.cgroup_set_idle, vec![address, idle.into()]));
        } else if before.weight != now.weight {
            let weight = now.weight.into();
            calls.push((callbacks.cgroup_set_weight, vec![address, weight]));
        }
        if before.limits != limits {
            let [period, quota, burst] = limits;
            let args = vec![address, period, quota, burst];
            calls.push((callbacks.cgroup_set_bandwidth, args));
        }
        calls
    }

    /// A CPU comes or goes: a program without a callback for it is ended, and its loader starts it
    /// anew (`handle_hotplug()`).
    pub(crate) fn hotplug(&mut self, context: &mut Context<'_>, function: Option<u32>, cpu: CpuId) {
        self.state.restarts |= function.is_none();
        self.call(context, function, During::Other, &[cpu.0.into()]);
    }

    /// A CPU has gone offline: what waits in its own queue goes back to the program.
    pub(crate) fn offline(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        masks::put(&mut self.guest, self.state.online, cpu, false);
        let variables = self.state.variables;
        variables.write_online(&mut self.guest, cpu, false);
        self.hotplug(context, self.callbacks.cpu_offline, cpu);
        for task in self.state.cpu(cpu).local.in_order(false) {
            let to = self.allowed_near(context, task, cpu);
            let mut here = self.here(context);
            here.unlink(task);
            here.move_to_cpu(task, to);
            self.give_moved(context, task);
        }
    }
}
