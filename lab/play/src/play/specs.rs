//! What the tasks of a scenario are born with, and how they begin.

use std::rc::Rc;

use warmq_kernel::{Boot, GroupId, Mm, Policy, Reserved, Role, Task, TaskSpec, Uclamp};
use warmq_scenario::{EvalError, ObjectKind, TaskKindId};
use warmq_units::CpuSet;

use super::Trouble;
use super::player::{Player, Shared};
use super::stage::Stage;

/// What is wrong with a task that [`has_no_cpu`]; the kernel would let it run anywhere.
pub(super) const NO_CPU: &str = "a task whose `cpus` the machine lacks";

/// Whether the machine has none of the CPUs that a task is bound to.
pub(super) fn has_no_cpu(spec: &TaskSpec) -> bool {
    spec.allowed.as_ref().is_some_and(CpuSet::is_empty)
}

impl Stage {
    /// Starts the tasks that start by themselves, in the order that the scenario asks for.
    pub(super) fn start_tasks(self: &Rc<Stage>, boot: &mut Boot<'_>) -> Result<(), Trouble> {
        for (id, number) in self.bound.first_tasks(self.seed) {
            let spec = self.spec(id, number, Some(self.own_mm(id, number)))?;
            if has_no_cpu(&spec) {
                let name = &self.scenario().task(id).name;
                let what = format!("the task {name}, whose `cpus` the machine lacks");
                return Err(Trouble::Lacking(what));
            }
            let stage = self.clone();
            let shared = Shared {
                mm: spec.mm,
                autogroup: self.autogroup(id, &spec, None),
            };
            boot.task(spec, move |task: Task| {
                Player::new(task, stage, id, number, shared).play()
            })?;
        }
        Ok(())
    }

    /// The `number`th task of `kind`, whose address space is `own` unless it names a process.
    pub(super) fn spec(
        &self,
        kind: TaskKindId,
        number: u64,
        own: Option<Mm>,
    ) -> Result<TaskSpec, EvalError> {
        let role = Role {
            table: kind.0,
            // There are at most 100,000 tasks.
            number: number as u32,
        };
        let given = self.bound.spec(&self.cpus, kind, number)?;
        let process = given.process.map(|place| self.objects.processes[place]);
        let group = given.group.map(|place| self.objects.groups[place]);
        let usual = Uclamp::default();
        let name = &self.scenario().task(kind).name;
        Ok(TaskSpec {
            background: !self.bound.is_awaited(kind),
            nice: given.nice,
            policy: policy(&given.policy),
            slice: given.slice,
            uclamp: Uclamp {
                min: given.uclamp_min.unwrap_or(usual.min),
                max: given.uclamp_max.unwrap_or(usual.max),
            },
            group: group.unwrap_or(GroupId::ROOT),
            allowed: given.cpus,
            ..TaskSpec::new(name, process.or(own)).role(role)
        })
    }

    /// The autogroup of a task of `kind` that is born with `spec`: the one that its table names, or
    /// that of the task that starts it, if there is one.
    pub(super) fn autogroup(
        &self,
        kind: TaskKindId,
        spec: &TaskSpec,
        starter: Option<GroupId>,
    ) -> Option<GroupId> {
        let named = self.scenario().task(kind).group.as_ref();
        let Some(group) = named else {
            return starter;
        };
        let object = self.scenario().object(group.object);
        matches!(object.kind, ObjectKind::Autogroup { .. }).then_some(spec.group)
    }
}

pub(super) fn policy(policy: &warmq_scenario::Policy) -> Policy {
    match *policy {
        warmq_scenario::Policy::Normal => Policy::Other,
        warmq_scenario::Policy::Batch => Policy::Batch,
        warmq_scenario::Policy::Idle => Policy::Idle,
        warmq_scenario::Policy::Fifo(priority) => Policy::Fifo(priority),
        warmq_scenario::Policy::RoundRobin(priority) => Policy::RoundRobin(priority),
        warmq_scenario::Policy::Deadline(times) => Policy::Deadline(Reserved {
            runtime: times.runtime,
            deadline: times.deadline,
            period: times.period,
        }),
    }
}
