//! What ends a latency span needs what begins it.

use std::collections::BTreeSet;

use super::Findings;
use crate::scenario::Scenario;
use crate::step::{Action, SpanId, Step};
use crate::task::TaskKind;

pub(super) fn check(scenario: &Scenario, findings: &mut Findings<'_>) {
    let all_begun = begun(scenario.tasks());
    for task in scenario.tasks() {
        let own = begun(std::slice::from_ref(task));
        let mut visit = |step: &Step| {
            let Action::End(span) = &step.action else {
                return;
            };
            let name = &scenario.span(span.span).name;
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
        };
        task.steps().for_each(|step| step.walk(&mut visit));
    }
}

/// The spans that `tasks` begin.
fn begun(tasks: &[TaskKind]) -> BTreeSet<SpanId> {
    let mut begun = BTreeSet::new();
    let mut visit = |step: &Step| {
        if let Action::Begin(span) = &step.action {
            begun.insert(span.span);
        }
    };
    let steps = tasks.iter().flat_map(TaskKind::steps);
    steps.for_each(|step| step.walk(&mut visit));
    begun
}
