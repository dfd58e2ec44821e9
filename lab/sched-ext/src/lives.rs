//! How tasks and groups come, change and go.

use warmq_kernel::{Context, GroupId};
use warmq_units::TaskId;

use crate::run_queue::Machine;

/// Period, quota and burst of a group in us, as `cgroup_set_bandwidth` gets them.
pub(crate) fn limits(context: &Context<'_>, group: GroupId) -> [u64; 3] {
    /// `RUNTIME_INF`
    const NONE: u64 = u64::MAX;
    let limits = context.group(group).limits;
    limits.map_or([100_000, NONE, 0], |limits| {
        let quota = limits.quota.as_us();
        [limits.period.as_us(), quota, limits.burst.as_us()]
    })
}

impl Machine {
    /// Makes a group known to the program, and those that it is in.
    pub(crate) fn know(&mut self, context: &mut Context<'_>, group: GroupId) -> GroupId {
        let group = self.here(context).visible(group);
        let new = match self.here(context).know_group(group) {
            Ok(new) => new,
            Err(ending) => {
                self.here(context).eject(ending.to_string());
                return group;
            }
        };
        for group in new {
            self.init_group(context, group);
        }
        group
    }

    pub(crate) fn init_group(&mut self, context: &mut Context<'_>, group: GroupId) {
        let (Some(init), Some(known)) = (
            self.code.callbacks.cgroup_init,
            self.state.groups.get(&group).copied(),
        ) else {
            return;
        };
        let fields = self.state.layouts.cgroup_init;
        let Ok(args) = self.guest.allocate(fields.size) else {
            return;
        };
        fields
            .weight
            .set(&mut self.guest, args, known.weight.into());
        let limits = limits(context, group);
        let [period, quota, burst] = limits;
        if let Some(known) = self.state.groups.get_mut(&group) {
            known.limits = limits;
        }
        fields.period.set(&mut self.guest, args, period);
        fields.quota.set(&mut self.guest, args, quota);
        fields.burst.set(&mut self.guest, args, burst);
        fields.idle.set(&mut self.guest, args, known.idle.into());
        let mut here = self.here(context);
        here.call_for_free(Some(init), &[known.address, args]);
        self.guest.free(args, fields.size);
    }

    /// A task is in a group from now on.
    pub(crate) fn join(&mut self, context: &mut Context<'_>, task: TaskId) -> Option<GroupId> {
        let group = context.task(task).group();
        let group = self.know(context, group);
        let before = self.state.task_mut(task).group.replace(group);
        let known = self.state.groups.get(&group).copied().unwrap_or_default();
        let (fields, address) = (self.state.layouts.task, self.state.task(task).address);
        fields.cgroups.set(&mut self.guest, address, known.css_set);
        fields
            .task_group
            .set(&mut self.guest, address, known.task_group);
        before.filter(|before| *before != group)
    }

    pub(crate) fn init_task(
        &mut self,
        context: &mut Context<'_>,
        parent: Option<TaskId>,
        task: TaskId,
    ) {
        if let Err(ending) = self.here(context).make_task(task, parent) {
            return self.here(context).eject(ending.to_string());
        }
        self.know_task(context, task, true);
    }

    /// The program gets to know a task, which is forked now or was there before
    /// (`scx_init_task()`).
    pub(crate) fn know_task(&mut self, context: &mut Context<'_>, task: TaskId, forks: bool) {
        self.join(context, task);
        let address = self.state.task(task).address;
        let fields = self.state.layouts.init_task;
        let Ok(args) = self.guest.allocate(fields.size) else {
            return;
        };
        let group = self.state.task(task).group.unwrap_or(GroupId::ROOT);
        let cgroup = self
            .state
            .groups
            .get(&group)
            .map_or(0, |known| known.address);
        fields.fork.set(&mut self.guest, args, forks.into());
        fields.cgroup.set(&mut self.guest, args, cgroup);
        let callbacks = self.code.callbacks;
        self.here(context)
            .call(callbacks.init_task, &[address, args]);
        self.guest.free(args, fields.size);
        if !self.is_urgent(task) {
            self.enable(context, task);
        }
    }

    /// A task is the program's from now on (`scx_enable_task()`).
    pub(crate) fn enable(&mut self, context: &mut Context<'_>, task: TaskId) {
        let (enable, set) = (self.code.callbacks.enable, self.code.callbacks.set_weight);
        let state = self.state.task(task);
        let (address, weight) = (state.address, state.weight);
        self.here(context).call(enable, &[address]);
        self.here(context).call(set, &[address, weight]);
    }

    pub(crate) fn exit_task(&mut self, context: &mut Context<'_>, task: TaskId) {
        let address = self.state.task(task).address;
        if address == 0 {
            return;
        }
        let callbacks = self.code.callbacks;
        if !self.is_urgent(task) {
            self.here(context).call(callbacks.disable, &[address]);
        }
        let fields = self.state.layouts.exit_task;
        if let Ok(args) = self.guest.allocate(fields.size) {
            self.here(context)
                .call(callbacks.exit_task, &[address, args]);
            self.guest.free(args, fields.size);
        }
        self.here(context).leave_process(task);
        self.guest.drop_owner(address);
        self.guest.free(address, self.state.layouts.task.size);
        self.state.by_address.remove(&address);
        self.state.task_mut(task).address = 0;
        self.state.leaving.retain(|(leaving, _)| *leaving != task);
    }
}
