//! Nobody waits for what nobody does.

use std::collections::BTreeSet;

use super::Findings;
use crate::bind::Bound;
use crate::object::{ObjectId, ObjectKind};
use crate::scenario::Scenario;
use crate::step::{Action, End, Reference, Step};
use crate::task::TaskKindId;

/// A table of objects, and which end of a stream.
type Fed = BTreeSet<(ObjectId, Option<End>)>;

pub(super) fn check(scenario: &Scenario, findings: &mut Findings<'_>) {
    let fed = fed(scenario);
    let mut visit = |step: &Step| {
        let Some((awaited, help)) = awaited(step) else {
            return;
        };
        if !fed.contains(&(awaited.object, awaited.end)) {
            let object = scenario.object(awaited.object);
            let (class, name) = (object.kind.class().name(), &object.name);
            let what = match awaited.end {
                Some(_) => {
                    format!("this waits for ever: no task sends to the other end of `{name}`")
                }
                None => format!("this waits for ever: no task {help} the {class} `{name}`"),
            };
            findings.report(&step.spot, what, format!("add a task that {help} it"));
        }
    };
    let steps = scenario.tasks().iter().flat_map(|task| task.steps());
    steps.for_each(|step| step.walk(&mut visit));
}

/// What a step waits for, and what another one must do with it.
fn awaited(step: &Step) -> Option<(&Reference, &'static str)> {
    match &step.action {
        Action::Receive { from, .. } => Some((from, "sends to")),
        Action::Take(queue) => Some((queue, "puts into")),
        Action::Lower(semaphore) => Some((semaphore, "raises")),
        Action::Wait { condition, .. } => Some((condition, "signals")),
        _ => None,
    }
}

/// What somebody sends to, puts into, raises or signals; the end at which that arrives.
fn fed(scenario: &Scenario) -> Fed {
    let mut fed = Fed::new();
    for (number, object) in (0..).zip(scenario.objects()) {
        match &object.kind {
            ObjectKind::Source(source) => {
                fed.insert((source.to.object, None));
            }
            ObjectKind::Semaphore { initial } if initial.literal() != Some(0) => {
                fed.insert((ObjectId(number), None));
            }
            _ => {}
        }
    }
    let mut visit = |step: &Step| match &step.action {
        Action::Send { to, .. } => {
            fed.insert((to.object, to.end.map(other)));
        }
        Action::Put(object) | Action::Raise(object) => {
            fed.insert((object.object, None));
        }
        Action::Signal { condition, .. } => {
            fed.insert((condition.object, None));
        }
        _ => {}
    };
    let steps = scenario.tasks().iter().flat_map(|task| task.steps());
    steps.for_each(|step| step.walk(&mut visit));
    fed
}

fn other(end: End) -> End {
    match end {
        End::Near => End::Far,
        End::Far => End::Near,
    }
}

/// A barrier opens only if as many tasks as it waits for have a step at it.
pub(super) fn barriers(bound: &Bound, findings: &mut Findings<'_>) {
    let scenario = bound.scenario();
    let mut waiting = vec![0_u64; scenario.objects().len()];
    for (number, task) in (0..).zip(scenario.tasks()) {
        let mut at = BTreeSet::new();
        let mut visit = |step: &Step| {
            if let Action::Barrier(barrier) = &step.action {
                at.insert(barrier.object);
            }
        };
        task.steps().for_each(|step| step.walk(&mut visit));
        for barrier in at {
            waiting[barrier.0 as usize] += bound.tasks(TaskKindId(number));
        }
    }
    for (object, waiting) in scenario.objects().iter().zip(waiting) {
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
