//! A task answers only what it has received.

use std::collections::BTreeSet;

use super::Findings;
use crate::object::ObjectId;
use crate::scenario::Scenario;
use crate::step::{Action, Step};

pub(super) fn check(scenario: &Scenario, findings: &mut Findings<'_>) {
    for task in scenario.tasks() {
        let mut received = BTreeSet::new();
        for step in task.steps() {
            match &step.action {
                Action::Receive { from, .. } => _ = received.insert(from.object),
                Action::Reply { socket, .. } if !received.contains(&socket.object) => {
                    unanswerable(scenario, socket.object, step, findings);
                }
                _ => {}
            }
        }
    }
}

fn unanswerable(scenario: &Scenario, socket: ObjectId, step: &Step, findings: &mut Findings<'_>) {
    let name = &scenario.object(socket).name;
    let what = format!("nothing was received on `{name}` that could be answered");
    let help = format!("write {{ receive = \"{name}\" }} before it");
    findings.report(&step.spot, what, help);
}
