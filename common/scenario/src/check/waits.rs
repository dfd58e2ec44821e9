//! Nobody waits for what nobody does.

use std::collections::{BTreeMap, BTreeSet};

use super::Findings;
use crate::bind::Bound;
use crate::object::{ObjectId, ObjectKind};
use crate::scenario::Scenario;
use crate::step::{Action, End, Reference, Step};
use crate::task::{TaskKind, TaskKindId};

/// A table of objects, and which end of a stream. Indexes are not looked at: what is said of a
/// table is true of each object in it.
type Awaited = (ObjectId, Option<End>);

/// A scenario whatever its settings are, or with values for them.
#[derive(Clone, Copy)]
struct View<'v> {
    scenario: &'v Scenario,
    bound: Option<&'v Bound>,
}

impl<'v> View<'v> {
    /// The tables of which there is a task.
    fn tasks(self) -> impl Iterator<Item = (TaskKindId, &'v TaskKind)> {
        let tasks = (0..).map(TaskKindId).zip(self.scenario.tasks());
        tasks.filter(move |(id, _)| self.bound.is_none_or(|bound| bound.tasks(*id) > 0))
    }

    /// Calls `visit` for each step that `task` may come to, in the order of the text, until it
    /// exits.
    fn walk(self, task: &'v TaskKind, visit: &mut dyn FnMut(&'v Step)) {
        let lists = [&task.setup, &task.body];
        let _ = lists.iter().try_for_each(|steps| self.all(steps, visit));
    }

    fn all(self, steps: &'v [Step], visit: &mut dyn FnMut(&'v Step)) -> Result<(), Exit> {
        steps.iter().try_for_each(|step| self.step(step, visit))
    }

    fn step(self, step: &'v Step, visit: &mut dyn FnMut(&'v Step)) -> Result<(), Exit> {
        if self.bound.is_some_and(|bound| !bound.holds(step.when)) {
            return Ok(());
        }
        visit(step);
        match &step.action {
            // Whether it is done is known only with values for the settings.
            Action::Exit if self.bound.is_some() || step.when.is_none() => Err(Exit),
            Action::Repeat { times, body, .. } => {
                let never = |bound: &Bound| bound.constant(times) == Some(0);
                match self.bound.is_some_and(never) {
                    true => Ok(()),
                    false => self.all(body, visit),
                }
            }
            _ => self.all(step.inner(), visit),
        }
    }
}

/// A task exits.
struct Exit;

/// What holds whatever the settings are.
pub(super) fn check(scenario: &Scenario, findings: &mut Findings<'_>) {
    let bound = None;
    nobody_feeds(View { scenario, bound }, findings);
}

/// What holds with these values of the settings.
pub(super) fn bound(bound: &Bound, findings: &mut Findings<'_>) {
    let view = View {
        scenario: bound.scenario(),
        bound: Some(bound),
    };
    nobody_feeds(view, findings);
    waits_for_itself(view, bound, findings);
    barriers(view, bound, findings);
}

fn nobody_feeds(view: View<'_>, findings: &mut Findings<'_>) {
    let mut fed = from_outside(view);
    for (_, task) in view.tasks() {
        view.walk(task, &mut |step| fed.extend(fed_by(step)));
    }
    for (_, task) in view.tasks() {
        view.walk(task, &mut |step| {
            let Some((awaited, help)) = awaited(step) else {
                return;
            };
            if !fed.contains(&(awaited.object, awaited.end)) {
                report(view.scenario, step, awaited, help, findings);
            }
        });
    }
}

fn report(
    scenario: &Scenario,
    step: &Step,
    awaited: &Reference,
    help: &str,
    findings: &mut Findings<'_>,
) {
    let object = scenario.object(awaited.object);
    let (class, name) = (object.kind.class().name(), &object.name);
    let what = match awaited.end {
        Some(_) => format!("this waits for ever: no task sends to the other end of `{name}`"),
        None => format!("this waits for ever: no task {help} the {class} `{name}`"),
    };
    findings.report(&step.spot, what, format!("add a task that {help} it"));
}

/// What a step waits for, and what another one must do with it.
fn awaited(step: &Step) -> Option<(&Reference, &'static str)> {
    match &step.action {
        Action::Receive { from, .. } => Some((from, "sends to")),
        Action::Take(queue) => Some((queue, "puts into")),
        Action::Lower(semaphore) => Some((semaphore, "raises")),
        Action::Wait {
            on, timeout: None, ..
        } => Some((on, "signals")),
        _ => None,
    }
}

/// What a step sends to, puts into, raises or signals; the end at which that arrives.
fn fed_by(step: &Step) -> Option<Awaited> {
    match &step.action {
        Action::Send { to, .. } => Some((to.object, to.end.map(other))),
        Action::Put(object) | Action::Raise(object) => Some((object.object, None)),
        Action::Signal { on, .. } => Some((on.object, None)),
        _ => None,
    }
}

/// What sources send to, and semaphores that are above 0 from the start.
fn from_outside(view: View<'_>) -> BTreeSet<Awaited> {
    let mut fed = BTreeSet::new();
    for (number, object) in (0..).zip(view.scenario.objects()) {
        let id = ObjectId(number);
        match &object.kind {
            ObjectKind::Source(source) if view.bound.is_none_or(|bound| bound.objects(id) > 0) => {
                fed.insert((source.to.object, None));
            }
            ObjectKind::Semaphore { initial } => {
                let zero = match view.bound {
                    Some(bound) => bound.constant(initial) == Some(0),
                    None => initial.literal() == Some(0),
                };
                if !zero {
                    fed.insert((id, None));
                }
            }
            _ => {}
        }
    }
    fed
}

fn other(end: End) -> End {
    match end {
        End::Near => End::Far,
        End::Far => End::Near,
    }
}

/// A task that there is only one of, and that alone feeds what it waits for, must feed it first; a
/// condition is not fed at all while its only task waits.
fn waits_for_itself(view: View<'_>, bound: &Bound, findings: &mut Findings<'_>) {
    let mut feeders: BTreeMap<Awaited, BTreeSet<TaskKindId>> = BTreeMap::new();
    for (id, task) in view.tasks() {
        view.walk(task, &mut |step| {
            if let Some(fed) = fed_by(step) {
                feeders.entry(fed).or_default().insert(id);
            }
        });
    }
    let outside = from_outside(view);
    // Of tasks that steps start there may be several at a time.
    let alone = |(id, task): &(TaskKindId, &TaskKind)| bound.tasks(*id) == 1 && !task.spawned;
    for (id, task) in view.tasks().filter(alone) {
        let mut fed = BTreeSet::new();
        view.walk(task, &mut |step| {
            let is_condition = matches!(step.action, Action::Signal { .. });
            fed.extend(fed_by(step).filter(|_| !is_condition));
            let Some((awaited, _)) = awaited(step) else {
                return;
            };
            let awaited = (awaited.object, awaited.end);
            let alone = feeders.get(&awaited).is_some_and(|by| by.iter().eq([&id]));
            if alone && !fed.contains(&awaited) && !outside.contains(&awaited) {
                let name = &view.scenario.object(awaited.0).name;
                let what =
                    format!("this waits for ever: only the task itself could end it (`{name}`)");
                findings.report(&step.spot, what, "let another task do that");
            }
        });
    }
}

/// A barrier opens only if as many tasks as it waits for have a step at it.
fn barriers(view: View<'_>, bound: &Bound, findings: &mut Findings<'_>) {
    let mut waiting = vec![0_u64; view.scenario.objects().len()];
    for (id, task) in view.tasks() {
        let mut at = BTreeSet::new();
        view.walk(task, &mut |step| {
            if let Action::Barrier(barrier) = &step.action {
                at.insert(barrier.object);
            }
        });
        for barrier in at {
            waiting[barrier.0 as usize] += bound.tasks(id);
        }
    }
    for (object, waiting) in view.scenario.objects().iter().zip(waiting) {
        let ObjectKind::Barrier { tasks } = &object.kind else {
            continue;
        };
        if let Some(wanted) = bound
            .constant(tasks)
            .filter(|wanted| waiting > 0 && *wanted > waiting)
        {
            let what =
                format!("the barrier never opens: it waits for {wanted} tasks, and {waiting} come");
            findings.report(&tasks.spot, what, "let it wait for fewer");
        }
    }
}
