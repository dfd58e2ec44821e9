//! What happens to CPUs and running tasks: wakeups, ticks, timers, hints, hotplug.

use warmq_kernel::{Context, GroupId};
use warmq_units::{CpuId, TaskId};

use crate::call::Call;
use crate::execution::at_once;
use crate::lives::limits;
use crate::masks;
use crate::profile::Hint;
use crate::run_queue::{Machine, RunQueue};
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

    /// What a change of a group comes to: callbacks, and their arguments. A group that becomes idle
    /// has another weight, of which the program hears nothing (`scx_group_set_idle()`).
    fn changes_of(
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
        let callbacks = self.code.callbacks;
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
        self.here(context).call(function, &[cpu.0.into()]);
    }

    /// A CPU has gone offline: what waits in its own queue goes back to the program.
    pub(crate) fn offline(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        masks::put(&mut self.guest, self.state.online, cpu, false);
        let variables = self.state.variables;
        variables.write_online(&mut self.guest, cpu, false);
        self.hotplug(context, self.code.callbacks.cpu_offline, cpu);
        for task in self.state.cpu(cpu).local.in_order(false) {
            let to = self.allowed_near(context, task, cpu);
            let mut here = self.here(context);
            here.unlink(task);
            here.move_to_cpu(task, to);
            at_once(self.on(context).give(task, 0));
            self.on(context).reschedule_if_idle(to);
        }
    }
}

/// Things happen to running tasks, to tasks' attributes, and to groups.
pub(crate) trait Events: RunQueue {
    /// `task_tick_scx()`, of the task that runs here.
    async fn tick(&mut self, task: TaskId) {
        let cpu = self.cpu();
        let address = self.here(|here| {
            here.update_current(cpu);
            here.write_interrupt(true);
            here.state.task(task).address
        });
        let tick = self.callbacks().tick;
        self.call(tick, During::Other, &[address]).await;
        let is_over = self.here(|here| {
            here.write_interrupt(false);
            here.slice(task) == 0
        });
        if is_over {
            self.with(|_, at| at.reschedule(cpu));
        }
    }

    /// The task that runs here yields (`yield_task_scx()`).
    async fn yields(&mut self, task: TaskId) {
        let address = self.with(|machine, _| machine.state.task(task).address);
        match self.callbacks().yields {
            None => self.here(|here| here.set_slice(task, 0)),
            yields => drop(self.call(yields, During::Other, &[address, 0]).await),
        }
    }

    /// The task that runs here names its data by a prctl; whether it should yield.
    async fn hears(&mut self, hint: &Hint, value: u64) -> bool {
        let function = self.with(|machine, _| {
            let program = machine.code.program.image().program(&hint.program);
            program.map(|program| program.function)
        });
        // The other arguments of prctl, and what it would return.
        let args = [hint.option, value, 0, 0, 0, 0];
        let answer = self.call(function, During::Other, &args).await;
        answer.is_some_and(|answer| answer as i32 as u64 == hint.yields_at)
    }

    /// A timer of the program has expired on this CPU.
    async fn timer(&mut self, timer: u64) {
        let known = self.here(|here| {
            here.state.timers.remove(&timer);
            let known = here.guest.timer(timer).copied()?;
            Some((known.function?, [known.map, known.key, known.value]))
        });
        if let Some((function, args)) = known {
            self.here(|here| here.write_interrupt(true));
            self.run(Call::timer(function, &args)).await;
            self.here(|here| here.write_interrupt(false));
        }
    }

    /// The weight or the limits of a group have changed, or whether it is idle.
    async fn group_changed(&mut self, group: GroupId) {
        for (callback, args) in self.with(|machine, at| machine.changes_of(at, group)) {
            self.call(callback, During::Other, &args).await;
        }
    }

    /// The weight of a task has changed, or its group.
    async fn weight_changed(&mut self, task: TaskId) {
        let moves = self.here(|here| {
            let group = here.visible(here.view(task).group());
            here.state.task(task).group != Some(group)
        });
        self.change(task, async |steps| match moves {
            true => steps.move_group(task).await,
            false => steps.set_weight(task).await,
        })
        .await;
    }

    /// `reweight_task_scx()`
    async fn set_weight(&mut self, task: TaskId) {
        let args = self.here(|here| {
            let new = here.write_weight(task);
            let state = here.state.task(task);
            new.then_some([state.address, state.weight])
        });
        if let Some(args) = args {
            let set = self.callbacks().set_weight;
            self.call(set, During::Other, &args).await;
        }
    }

    /// `scx_cgroup_move_task()`
    async fn move_group(&mut self, task: TaskId) {
        let args = self.with(|machine, at| {
            let from = machine.join(at, task)?;
            let of = |group: Option<GroupId>| {
                let known = group.and_then(|group| machine.state.groups.get(&group));
                known.map_or(0, |known| known.address)
            };
            let state = machine.state.task(task);
            Some([state.address, of(Some(from)), of(state.group)])
        });
        if let Some(args) = args {
            let moved = self.callbacks().cgroup_move;
            self.call(moved, During::Other, &args).await;
            self.here(|here| here.write_weight(task));
        }
    }

    /// The affinity of a task changes (`__set_cpus_allowed_ptr()`). One that waits where it may no
    /// longer run goes elsewhere; one that runs there leaves at the next pick.
    async fn set_affinity(&mut self, task: TaskId, set: impl FnOnce(&mut Self)) {
        let locks = self.lock_task(task).await;
        let before = self.with(|machine, _| machine.state.before(task));
        self.change(task, async |steps| {
            set(steps);
            steps.set_cpumask(task).await;
        })
        .await;
        let stays = self.with(|_, at| at.task(task).may_run_on(before.cpu));
        match (stays, before.runs) {
            (false, true) => self.with(|_, at| at.reschedule(before.cpu)),
            (false, false) if before.queued => return self.migrate(task, locks).await,
            _ => {}
        }
        self.unlock(&locks);
    }

    /// `set_cpus_allowed_scx()`
    async fn set_cpumask(&mut self, task: TaskId) {
        let args = self.here(|here| {
            here.write_affinity(task);
            let address = here.state.task(task).address;
            let mask = here.state.layouts.task.cpus_mask.within(address);
            [address, mask]
        });
        let set = self.callbacks().set_cpumask;
        self.call(set, During::Other, &args).await;
    }
}

impl<E: RunQueue> Events for E {}
