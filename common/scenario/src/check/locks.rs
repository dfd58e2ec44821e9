//! Mutexes and spin locks are locked before they are unlocked.

use std::collections::BTreeMap;

use super::Findings;
use crate::object::ObjectId;
use crate::scenario::Scenario;
use crate::step::{Action, Step};

/// How many locks of each table are held.
type Held = BTreeMap<ObjectId, u64>;

pub(super) fn check(scenario: &Scenario, findings: &mut Findings<'_>) {
    for task in scenario.tasks() {
        let mut held = Held::new();
        task.setup
            .iter()
            .for_each(|step| follow(step, &mut held, scenario, findings));
        task.body
            .iter()
            .for_each(|step| follow(step, &mut held, scenario, findings));
    }
}

/// Goes through `step` once. Indexes are not looked at: a lock stands for its table.
fn follow(step: &Step, held: &mut Held, scenario: &Scenario, findings: &mut Findings<'_>) {
    let name = |id: ObjectId| &scenario.object(id).name;
    match &step.action {
        Action::Lock(mutex) => *held.entry(mutex.object).or_default() += 1,
        Action::Unlock(mutex) => {
            let locked = held.entry(mutex.object).or_default();
            if *locked == 0 {
                let what = format!("`{}` is not locked here", name(mutex.object));
                let help = format!("write {{ lock = \"{}\" }} before it", name(mutex.object));
                findings.report(&step.spot, what, help);
            } else if step.when.is_none() {
                *locked -= 1;
            }
        }
        Action::Wait {
            mutex: Some(mutex), ..
        } if held.get(&mutex.object).is_none_or(|locked| *locked == 0) => {
            let what = format!("who waits must have locked `{}`", name(mutex.object));
            let help = format!("write {{ lock = \"{}\" }} before it", name(mutex.object));
            findings.report(&step.spot, what, help);
        }
        Action::Repeat { body, .. } => {
            body.iter()
                .for_each(|step| follow(step, held, scenario, findings));
        }
        _ => {}
    }
}
