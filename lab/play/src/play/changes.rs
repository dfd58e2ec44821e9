//! `[[change]]`: what is set while a scenario runs.

use std::rc::Rc;

use warmq_kernel::{Boot, Change, Fragment, GroupId, Operator, Policy, group_weight_of_nice};
use warmq_scenario::{EvalError, Expr, Occurs, Place, Reference, Set, Target, TaskKindId};
use warmq_units::{CpuSet, Duration, Instant, TaskId};

use super::Trouble;
use super::specs::{APP, NO_CPU, nice_of, policy};
use super::stage::Stage;

/// A change with its numbers.
struct Planned {
    stage: Rc<Stage>,
    first: Instant,
    /// How long after one another it takes place, and when it ends; `None`: once.
    again: Option<(Duration, Instant)>,
    target: Whom,
    set: Vec<To>,
}

/// What is changed.
enum Whom {
    /// Tasks of a table: one of them, or all.
    Tasks(TaskKindId, Option<u64>),
    Groups(Vec<GroupId>),
    Cpus(CpuSet),
}

/// What is set.
enum To {
    Cpus(CpuSet),
    Nice(i8),
    Policy(Policy),
    Slice(Duration),
    Group(GroupId),
    Fragment(Option<Fragment>),
    Stopped(bool),
    Weight(u32),
    Quota(Duration),
    Burst(Duration),
    Idle(bool),
    Frozen(bool),
    Online(bool),
}

/// Sees to it that every change takes place at its time.
pub(super) fn start(stage: &Rc<Stage>, boot: &mut Boot<'_>) -> Result<(), Trouble> {
    for change in stage.scenario().changes() {
        let Some(target) = whom(stage, &change.target)? else {
            continue;
        };
        let (first, again) = times(stage, &change.occurs)?;
        let set = change
            .set
            .iter()
            .filter_map(|set| to(stage, set).transpose());
        let planned = Planned {
            stage: stage.clone(),
            first,
            again,
            target,
            set: set.collect::<Result<_, _>>()?,
        };
        boot.operator(first, move |operator| planned.play(operator));
    }
    Ok(())
}

fn eval(stage: &Stage, expr: &Expr) -> Result<u64, EvalError> {
    // Nothing has indexes here.
    stage.bound.eval(expr, &[])
}

pub(super) fn times(
    stage: &Stage,
    occurs: &Occurs,
) -> Result<(Instant, Option<(Duration, Instant)>), EvalError> {
    let (first, again) = stage.bound.times(occurs)?;
    let again = again.map(|(period, end)| (Duration(period), Instant(end)));
    Ok((Instant(first), again))
}

/// What is changed; none if that is a source, which knows its changes itself, or the scheduler: a
/// scenario that changes it is not played.
fn whom(stage: &Stage, target: &Target) -> Result<Option<Whom>, Trouble> {
    Ok(Some(match target {
        Target::Task(task) => {
            let number = stage.bound.task_number(task, &[])?;
            Whom::Tasks(task.task, Some(number))
        }
        Target::Tasks(kind) => Whom::Tasks(*kind, None),
        Target::Group(group) => Whom::Groups(vec![group_of(stage, group)?]),
        Target::Groups(id) => {
            let first = stage.bound.object_of_class(*id, 0) as usize;
            let groups = stage.objects.groups.iter().skip(first);
            let all = stage.bound.objects(*id) as usize;
            Whom::Groups(groups.take(all).copied().collect())
        }
        Target::Cpus(place) => {
            let what = "a change of CPUs that the machine lacks";
            Whom::Cpus(cpus(stage, place, what)?)
        }
        Target::Source(_) | Target::Sources(_) | Target::Scheduler => return Ok(None),
    }))
}

/// What is set; none of sources and the scheduler.
fn to(stage: &Stage, set: &Set) -> Result<Option<To>, Trouble> {
    let number = |expr: &Expr| eval(stage, expr);
    Ok(Some(match set {
        Set::Cpus(place) => To::Cpus(cpus(stage, place, NO_CPU)?),
        Set::Nice(nice) => To::Nice(nice_of(stage.bound.eval_signed(nice, &[])?)),
        Set::Policy(wanted) => To::Policy(policy(wanted)),
        Set::Slice(slice) => To::Slice(Duration(number(slice)?)),
        Set::Group(group) => To::Group(group_of(stage, group)?),
        Set::Fragment(warmq_scenario::Fragment::None) => To::Fragment(None),
        Set::Fragment(warmq_scenario::Fragment::Number(expr)) => {
            let (app, number) = (APP, number(expr)? as u32);
            To::Fragment(Some(Fragment { app, number }))
        }
        Set::Stop => To::Stopped(true),
        Set::Continue => To::Stopped(false),
        Set::Weight(weight) => To::Weight(number(weight)? as u32),
        Set::Quota(quota) => To::Quota(Duration(number(quota)?)),
        Set::Burst(burst) => To::Burst(Duration(number(burst)?)),
        Set::Idle(idle) => To::Idle(*idle),
        Set::Freeze => To::Frozen(true),
        Set::Thaw => To::Frozen(false),
        Set::Online(online) => To::Online(*online),
        Set::Arrival(_) | Set::Rate(_) | Set::Scheduler(_) => return Ok(None),
    }))
}

fn group_of(stage: &Stage, group: &Reference) -> Result<GroupId, EvalError> {
    Ok(stage.objects.groups[stage.bound.object_place(group, &[])?])
}

/// The CPUs at `place`; it is an error, `what`, if there are none.
pub(super) fn cpus(stage: &Stage, place: &Place, what: &'static str) -> Result<CpuSet, Trouble> {
    let cpus = stage.machine.cpus_of(&stage.bound, place, &[])?;
    match cpus.is_empty() {
        true => Err(Trouble::Lacking(what)),
        false => Ok(cpus),
    }
}

impl Planned {
    async fn play(self, operator: Operator) {
        let Some((period, end)) = self.again else {
            return self.take_place(&operator).await;
        };
        let mut at = self.first;
        while at < end {
            operator.until(at).await;
            self.take_place(&operator).await;
            at += period;
        }
    }

    /// All that is set, for one of whom it is set after the other.
    async fn take_place(&self, operator: &Operator) {
        for set in &self.set {
            let changes: Vec<Change> = match &self.target {
                Whom::Tasks(kind, number) => {
                    let tasks = self.stage.alive(*kind, *number).into_iter();
                    tasks.filter_map(|task| set.of_task(task)).collect()
                }
                Whom::Groups(groups) => {
                    let groups = groups.iter();
                    groups.filter_map(|group| set.of_group(*group)).collect()
                }
                Whom::Cpus(cpus) => match set {
                    To::Online(online) => cpus
                        .iter()
                        .map(|cpu| Change::Online(cpu, *online))
                        .collect(),
                    _ => Vec::new(),
                },
            };
            for change in changes {
                operator.change(change).await;
            }
        }
    }
}

impl To {
    fn of_task(&self, task: TaskId) -> Option<Change> {
        Some(match self {
            To::Cpus(cpus) => Change::Affinity(task, cpus.clone()),
            To::Nice(nice) => Change::Nice(task, *nice),
            To::Policy(policy) => Change::Policy(task, *policy),
            To::Slice(slice) => Change::Slice(task, Some(*slice)),
            To::Group(group) => Change::Group(task, *group),
            To::Fragment(fragment) => Change::Fragment(task, *fragment),
            To::Stopped(true) => Change::Stop(task),
            To::Stopped(false) => Change::Continue(task),
            To::Weight(_) | To::Quota(_) | To::Burst(_) | To::Idle(_) => return None,
            To::Frozen(_) | To::Online(_) => return None,
        })
    }

    fn of_group(&self, group: GroupId) -> Option<Change> {
        Some(match self {
            To::Weight(weight) => Change::Weight(group, *weight),
            // Of groups, only autogroups have a nice value.
            To::Nice(nice) => Change::Weight(group, group_weight_of_nice(*nice)),
            To::Quota(quota) => Change::Quota(group, *quota),
            To::Burst(burst) => Change::Burst(group, *burst),
            To::Idle(idle) => Change::Idle(group, *idle),
            To::Cpus(cpus) => Change::Cpuset(group, cpus.clone()),
            To::Frozen(true) => Change::Freeze(group),
            To::Frozen(false) => Change::Thaw(group),
            _ => return None,
        })
    }
}
