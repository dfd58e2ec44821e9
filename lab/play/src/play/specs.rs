//! What the tasks of a scenario are born with, and how they begin.

use std::rc::Rc;

use warmq_kernel::{Boot, GroupId, Mm, Policy, Role, Task, TaskSpec};
use warmq_scenario::{Bound, EvalError, ObjectKind, Order, Place, TaskKindId};
use warmq_units::{CpuId, CpuSet, Duration};

use super::Trouble;
use super::player::{Player, Shared};
use super::stage::Stage;

/// The number by which a scenario's tasks name their application to the scheduler.
pub(super) const APP: u32 = 1;

/// What is wrong with a task that [`has_no_cpu`]; the kernel would let it run anywhere.
pub(super) const NO_CPU: &str = "a task whose `cpus` the machine lacks";

/// Whether the machine has none of the CPUs that a task is bound to.
pub(super) fn has_no_cpu(spec: &TaskSpec) -> bool {
    spec.allowed.as_ref().is_some_and(CpuSet::is_empty)
}

impl Stage {
    /// Starts the tasks that start by themselves, in the order that the scenario asks for.
    pub(super) fn start_tasks(self: &Rc<Stage>, boot: &mut Boot<'_>) -> Result<(), Trouble> {
        let kinds = (0..).map(TaskKindId).zip(self.scenario().tasks());
        let mut first: Vec<(TaskKindId, u64)> = kinds
            .filter(|(_, kind)| !kind.spawned)
            .flat_map(|(id, _)| (0..self.bound.tasks(id)).map(move |number| (id, number)))
            .collect();
        if self.scenario().order() == Order::Random {
            self.seed.stream("order of tasks").shuffle(&mut first);
        }
        for (id, number) in first {
            let spec = self.spec(id, number, Some(self.own_mm(id, number)))?;
            if has_no_cpu(&spec) {
                return Err(Trouble::Lacking(NO_CPU));
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
        let at = &self.bound.indexes_of_task(kind, number);
        let role = Role {
            table: kind.0,
            // There are at most 100,000 tasks.
            number: number as u32,
        };
        let background = !self.bound.is_awaited(kind);
        let kind = self.scenario().task(kind);
        let mm = match &kind.process {
            Some(process) => Some(self.objects.processes[self.bound.object_place(process, at)?]),
            None => own,
        };
        let spec = TaskSpec::new(&kind.name, mm).role(role);
        let spec = spec.background(background);
        let mut spec = spec.policy(policy(&kind.policy));
        if let Some(nice) = &kind.nice {
            spec = spec.nice(nice_of(self.bound.eval_signed(nice, at)?));
        }
        if let Some(slice) = &kind.slice {
            spec = spec.slice(Duration(self.bound.eval(slice, at)?));
        }
        if let Some(group) = &kind.group {
            spec = spec.group(self.objects.groups[self.bound.object_place(group, at)?]);
        }
        if let Some(place) = &kind.cpus {
            spec = spec.bound(self.machine.cpus_of(&self.bound, place, at)?.iter());
        }
        Ok(spec)
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
        // The lab has no class of deadlines, and says so.
        warmq_scenario::Policy::Normal | warmq_scenario::Policy::Deadline(_) => Policy::Other,
        warmq_scenario::Policy::Batch => Policy::Batch,
        warmq_scenario::Policy::Idle => Policy::Idle,
        warmq_scenario::Policy::Fifo(priority) => Policy::Fifo(priority),
        warmq_scenario::Policy::RoundRobin(priority) => Policy::RoundRobin(priority),
    }
}

/// The kernel clamps nice values.
pub(super) fn nice_of(nice: i64) -> i8 {
    nice.clamp(-20, 19) as i8
}

/// Where the CPUs of the machine are.
pub(super) struct Machine {
    places: Vec<warmq_machine::CpuPlace>,
}

impl Machine {
    pub(super) fn new(boot: &Boot<'_>) -> Machine {
        let cpus = (0..boot.cpus()).map(CpuId);
        Machine {
            places: cpus.map(|cpu| boot.place(cpu)).collect(),
        }
    }

    /// The CPUs at `place`.
    pub(super) fn cpus_of(
        &self,
        bound: &Bound,
        place: &Place,
        at: &[u64],
    ) -> Result<CpuSet, EvalError> {
        let (all, number) = (self.places.len() as u64, |expr| bound.eval(expr, at));
        Ok(match place {
            Place::All => CpuSet::first_cpus(all as u16),
            Place::Cpu(cpu) => self.those(number(cpu)?, |cpu, _| cpu),
            Place::Cpus(ranges) => {
                let within =
                    |cpu: u16| ranges.iter().any(|(from, to)| (*from..=*to).contains(&cpu));
                (0..all as u16)
                    .filter(|cpu| within(*cpu))
                    .map(CpuId)
                    .collect()
            }
            Place::Llc(llc) => self.those(number(llc)?, |_, place| place.llc.into()),
            // A memory node of these machines is a socket.
            Place::Node(socket) | Place::Socket(socket) => {
                self.those(number(socket)?, |_, place| place.socket.into())
            }
            Place::Core(core) => self.those(number(core)?, |_, place| place.core.into()),
            Place::Part { part, of } => {
                let (part, of) = (number(part)?, number(of)?.max(1));
                self.those(part, |cpu, _| cpu * of / all)
            }
        })
    }

    /// The CPUs of which `what` is `wanted`.
    fn those(&self, wanted: u64, what: impl Fn(u64, &warmq_machine::CpuPlace) -> u64) -> CpuSet {
        let cpus = (0..).zip(&self.places);
        cpus.filter(|(cpu, place)| what(*cpu, place) == wanted)
            .map(|(cpu, _)| CpuId(cpu as u16))
            .collect()
    }
}
