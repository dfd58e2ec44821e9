//! Who starts, and what tasks and groups are given before they begin.

use warmq_units::{CpuSet, Duration, Seed};

use super::Cpus;
use crate::bind::{Bound, EvalError};
use crate::expr::Expr;
use crate::object::{ObjectId, ObjectKind};
use crate::place::Place;
use crate::scenario::Order;
use crate::step::Reference;
use crate::task::{Policy, TaskKindId};

/// The number by which a scenario's tasks name their application to the scheduler.
pub const APP: u32 = 1;

/// What a task is given. Objects are places among all of their class.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its policy.
    pub policy: Policy,
    /// Its nice value.
    pub nice: i8,
    /// The slice that it asks for.
    pub slice: Option<Duration>,
    /// As what utilization it counts at least, in 1024ths of the fastest CPU.
    pub uclamp_min: Option<u16>,
    /// And at most.
    pub uclamp_max: Option<u16>,
    /// The CPUs that it is bound to: an empty set where the machine lacks them.
    pub cpus: Option<CpuSet>,
    /// The process that its table names.
    pub process: Option<usize>,
    /// The group that its table names.
    pub group: Option<usize>,
    /// The fragment that it names.
    pub fragment: Option<u32>,
}

/// A group of a scenario.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its table.
    pub table: ObjectId,
    /// Its number within the table.
    pub number: u64,
    /// What it is given.
    pub spec: GroupSpec,
}

/// What a group is given.
#[derive(Clone, Debug)]
pub enum GroupSpec {
    /// A cgroup.
    Cgroup(CgroupSpec),
    /// A session.
    Autogroup {
        /// The nice value of the whole group.
        nice: i8,
    },
}

/// What a cgroup is given.
#[derive(Clone, Debug)]
pub struct CgroupSpec {
    /// Its weight; 100 is the usual.
    pub weight: u32,
    /// The place among all groups of the one that it is in.
    pub parent: Option<usize>,
    /// CPU time in each period, and the period.
    pub quota: Option<(Duration, Duration)>,
    /// How much CPU time that periods left unused is kept.
    pub burst: Duration,
    /// Whether all that is in it runs only where nobody else wants to.
    pub idle: bool,
    /// The CPUs that its tasks may use: an empty set where the machine lacks them.
    pub cpus: Option<CpuSet>,
}

impl Bound {
    /// The tasks that start by themselves, in the order that the scenario asks for.
    pub fn first_tasks(&self, seed: Seed) -> Vec<(TaskKindId, u64)> {
        let kinds = (0..).map(TaskKindId).zip(self.scenario().tasks());
        let own = kinds.filter(|(_, kind)| !kind.spawned);
        let all = own.flat_map(|(id, _)| (0..self.tasks(id)).map(move |number| (id, number)));
        let mut all: Vec<(TaskKindId, u64)> = all.collect();
        if self.scenario().order() == Order::Random {
            seed.stream("order of tasks").shuffle(&mut all);
        }
        all
    }

    /// What the `number`th task of table `kind` is given on a machine of these `cpus`.
    ///
    /// # Errors
    /// As [`Bound::eval`].
    pub fn spec(&self, cpus: &Cpus, kind: TaskKindId, number: u64) -> Result<Spec, EvalError> {
        let at = &self.indexes_of_task(kind, number);
        let kind = self.scenario().task(kind);
        let place = |reference: &Option<Reference>| {
            let reference = reference.as_ref();
            reference
                .map(|group| self.object_place(group, at))
                .transpose()
        };
        let number = |expr: &Option<Expr>| {
            let value = expr.as_ref().map(|expr| self.eval(expr, at));
            value.transpose()
        };
        Ok(Spec {
            policy: kind.policy,
            nice: kind
                .nice
                .as_ref()
                .map_or(Ok(0), |nice| self.nice(nice, at))?,
            slice: self.time(&kind.slice, at)?,
            uclamp_min: number(&kind.uclamp_min)?.map(|util| util as u16),
            uclamp_max: number(&kind.uclamp_max)?.map(|util| util as u16),
            cpus: self.cpus(cpus, &kind.cpus, at)?,
            process: place(&kind.process)?,
            group: place(&kind.group)?,
            fragment: number(&kind.fragment)?.map(|number| number as u32),
        })
    }

    /// All groups: their places among all groups are their places in this list.
    ///
    /// # Errors
    /// As [`Bound::eval`].
    pub fn groups(&self, cpus: &Cpus) -> Result<Vec<Group>, EvalError> {
        let mut groups = Vec::new();
        for (table, object) in (0..).map(ObjectId).zip(self.scenario().objects()) {
            for number in 0..self.objects(table) {
                let at = &self.indexes_of_object(table, number);
                let Some(spec) = self.group_spec(&object.kind, cpus, at)? else {
                    break;
                };
                groups.push(Group {
                    table,
                    number,
                    spec,
                });
            }
        }
        Ok(groups)
    }

    fn group_spec(
        &self,
        kind: &ObjectKind,
        cpus: &Cpus,
        at: &[u64],
    ) -> Result<Option<GroupSpec>, EvalError> {
        Ok(Some(match kind {
            ObjectKind::Group {
                weight,
                parent,
                quota,
                burst,
                idle,
                cpus: place,
            } => {
                let span = |expr| self.eval(expr, at).map(Duration);
                let limit = quota
                    .as_ref()
                    .map(|(quota, period)| (span(quota), span(period)));
                let parent = parent.as_ref().map(|parent| self.object_place(parent, at));
                GroupSpec::Cgroup(CgroupSpec {
                    weight: self.eval(weight, at)? as u32,
                    parent: parent.transpose()?,
                    quota: match limit {
                        Some((quota, period)) => Some((quota?, period?)),
                        None => None,
                    },
                    burst: self.time(burst, at)?.unwrap_or_default(),
                    idle: *idle,
                    cpus: self.cpus(cpus, place, at)?,
                })
            }
            ObjectKind::Autogroup { nice } => GroupSpec::Autogroup {
                nice: self.nice(nice, at)?,
            },
            _ => return Ok(None),
        }))
    }

    /// A nice value; the kernel clamps it.
    pub(super) fn nice(&self, expr: &Expr, at: &[u64]) -> Result<i8, EvalError> {
        Ok(self.eval_signed(expr, at)?.clamp(-20, 19) as i8)
    }

    fn time(&self, expr: &Option<Expr>, at: &[u64]) -> Result<Option<Duration>, EvalError> {
        let value = expr.as_ref().map(|expr| self.eval(expr, at));
        Ok(value.transpose()?.map(Duration))
    }

    pub(super) fn cpus(
        &self,
        cpus: &Cpus,
        place: &Option<Place>,
        at: &[u64],
    ) -> Result<Option<CpuSet>, EvalError> {
        let place = place.as_ref();
        place.map(|place| cpus.at(self, place, at)).transpose()
    }
}
