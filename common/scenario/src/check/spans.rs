//! What ends a latency span needs what begins it.

use std::collections::BTreeSet;

use super::Findings;
use crate::object::{Object, ObjectKind, Source};
use crate::scenario::Scenario;
use crate::step::{Action, SpanId};
use crate::task::TaskKind;

pub(super) fn check(scenario: &Scenario, findings: &mut Findings<'_>) {
    echoes(scenario, findings);
    let echoed: BTreeSet<SpanId> = measured(scenario).map(|(.., echo)| echo).collect();
    let all_begun = begun(scenario.tasks());
    for task in scenario.tasks() {
        let own = begun(std::slice::from_ref(task));
        for step in task.steps() {
            if let Action::Begin { span, due: true } = &step.action
                && !is_due(task)
            {
                let name = &scenario.span(span.span).name;
                let what =
                    format!("nothing of this task is due, when the span `{name}` could begin");
                let help = "give the task `every`, let it sleep by `timer`, or leave `due` out";
                findings.report(&step.spot, what, help);
            }
            let Action::End(span) = &step.action else {
                continue;
            };
            let name = &scenario.span(span.span).name;
            if echoed.contains(&span.span) {
                continue;
            }
            if !all_begun.contains(&span.span) {
                let help = format!("write {{ begin = \"{name}\" }} where it begins");
                findings.report(
                    &step.spot,
                    format!("nothing begins the span `{name}`"),
                    help,
                );
            } else if span.indexes.is_empty() && !own.contains(&span.span) {
                let what = format!("this task never begins the span `{name}`");
                let help =
                    format!("tasks share only spans with indexes: write \"{name}[0]\" in both");
                findings.report(&step.spot, what, help);
            }
        }
    }
}

/// Whether rounds or a timer of `task` are due at some time.
fn is_due(task: &TaskKind) -> bool {
    let is_timer = |action: &Action| matches!(action, Action::Timer { .. });
    task.every.is_some() || task.steps().any(|step| is_timer(&step.action))
}

/// A span that a source measures is begun and ended by no task, and some task answers.
fn echoes(scenario: &Scenario, findings: &mut Findings<'_>) {
    let sources: Vec<_> = measured(scenario).collect();
    let mut answered = BTreeSet::new();
    for step in scenario.tasks().iter().flat_map(TaskKind::steps) {
        match &step.action {
            Action::Reply { socket, .. } => _ = answered.insert(socket.object),
            Action::Begin { span, .. } | Action::End(span) => {
                let measured = sources.iter().find(|(.., echo)| *echo == span.span);
                if let Some((object, ..)) = measured {
                    let (span, source) = (&scenario.span(span.span).name, &object.name);
                    let what = format!("the source `{source}` measures the span `{span}`");
                    findings.report(&step.spot, what, "give this span another name");
                }
            }
            _ => {}
        }
    }
    for (object, source, echo) in sources {
        if !answered.contains(&source.to.object) {
            let (span, socket) = (
                &scenario.span(echo).name,
                &scenario.object(source.to.object).name,
            );
            let what = format!("no span `{span}` ends: no task answers on `{socket}`");
            let help = format!("write {{ reply = \"{socket}\", bytes = \"64B\" }} after a receive");
            findings.report(&object.spot, what, help);
        }
    }
}

/// The sources that measure spans.
fn measured(scenario: &Scenario) -> impl Iterator<Item = (&Object, &Source, SpanId)> {
    let objects = scenario.objects().iter();
    objects.filter_map(|object| match &object.kind {
        ObjectKind::Source(source) => Some((object, source, source.echo?)),
        _ => None,
    })
}

/// The spans that `tasks` begin.
fn begun(tasks: &[TaskKind]) -> BTreeSet<SpanId> {
    let steps = tasks.iter().flat_map(TaskKind::steps);
    let begun = steps.filter_map(|step| match &step.action {
        Action::Begin { span, .. } => Some(span.span),
        _ => None,
    });
    begun.collect()
}
