//! A group is made after its parent.

use super::Findings;
use crate::object::{ObjectId, ObjectKind};
use crate::scenario::Scenario;

pub(super) fn check(scenario: &Scenario, findings: &mut Findings<'_>) {
    for (number, object) in (0..).zip(scenario.objects()) {
        let ObjectKind::Group {
            parent: Some(parent),
            ..
        } = &object.kind
        else {
            continue;
        };
        let name = &scenario.object(parent.object).name;
        if parent.object == ObjectId(number) {
            let what = format!("the parent of `{name}` is in its own table");
            findings.report(&parent.spot, what, "give the parent a table of its own");
        } else if parent.object > ObjectId(number) {
            let what = format!("`{name}` stands after `{}`, which is in it", object.name);
            findings.report(&parent.spot, what, format!("write [group.{name}] first"));
        }
    }
}
