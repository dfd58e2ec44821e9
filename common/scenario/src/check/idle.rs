//! A body without end takes time.

use super::Findings;
use crate::amount::{Amount, Draw};
use crate::bind::Bound;
use crate::object::Class;
use crate::recorded::Moment;
use crate::step::{Action, Step};
use crate::task::{TaskKind, TaskKindId};

pub(super) fn check(bound: &Bound, findings: &mut Findings<'_>) {
    for (number, task) in (0..).zip(bound.scenario().tasks()) {
        let spins = task.times.is_none() && !is_paced(bound, task);
        if spins && bound.tasks(TaskKindId(number)) > 0 && !takes_time(bound, &task.body) {
            let what = format!(
                "the body of `{}` takes no time and is repeated without end",
                task.key
            );
            let help =
                "add a step that runs, sleeps or waits, or say how often with `times` or `every`";
            findings.report(&task.spot, what, help);
        }
    }
}

fn is_paced(bound: &Bound, task: &TaskKind) -> bool {
    task.every
        .as_ref()
        .is_some_and(|every| is_longer_than_zero(bound, every))
}

/// Whether a round of `steps` may take time. What depends on indexes may.
fn takes_time(bound: &Bound, steps: &[Step]) -> bool {
    let mut steps = steps.iter().filter(|step| bound.holds(step.when));
    steps.any(|step| match &step.action {
        Action::Run(amount) | Action::Spin(amount) | Action::Sleep(amount) => {
            is_longer_than_zero(bound, amount)
        }
        Action::Timer { period, .. } => is_longer_than_zero(bound, period),
        Action::Repeat { times, body, .. } => {
            bound.constant(times) != Some(0) && takes_time(bound, body)
        }
        Action::Recorded(row) => {
            row.moments.iter().any(|moment| match moment {
                Moment::Run(span) | Moment::Sleep(span) | Moment::Until(span) => span.0 > 0,
                Moment::Step(_) | Moment::Part { .. } => false,
            }) || takes_time(bound, &row.steps)
        }
        Action::Touch(_) | Action::Wait { .. } | Action::Lower(_) | Action::Barrier(_) => true,
        Action::Put(_) | Action::Take(_) | Action::Send { .. } | Action::Receive { .. } => true,
        // A system call, also where nobody waits.
        Action::Signal { on, .. } => {
            bound.scenario().object(on.object).kind.class() == Class::Futex
        }
        Action::Exit | Action::Write { .. } | Action::Reply { .. } => true,
        _ => false,
    })
}

fn is_longer_than_zero(bound: &Bound, amount: &Amount) -> bool {
    match &amount.draw {
        Draw::Uniform(_, most) => bound.constant(most) != Some(0),
        _ => amount
            .expressions()
            .into_iter()
            .any(|times| bound.constant(times) != Some(0)),
    }
}
