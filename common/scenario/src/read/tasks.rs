//! The tables of tasks.

use warmq_config::{Fields, Item};

use super::names::{Headings, Names};
use super::references;
use super::scope::{Scope, spot};
use super::steps;
use super::values::{amount, dimensions, optional, place, policy, time};
use crate::object::Class;
use crate::quantity::Quantity::{Count, Time};
use crate::task::{Policy, TaskKind};

/// The longest name of a task: TASK_COMM_LEN of the kernel without the final zero.
const LONGEST_NAME: usize = 15;
/// Keys whose truth depends on the world.
const OF_WORLDS: [&str; 6] = ["nice", "policy", "slice", "cpus", "process", "every"];

pub(super) fn read(fields: &Fields<'_>, headings: &Headings<'_>, names: &Names) -> Vec<TaskKind> {
    if headings.tasks.is_empty() {
        fields.report("there is no task", "write [task.NAME] and its body");
    }
    let tasks = headings.tasks.iter();
    tasks
        .filter_map(|(key, item)| task(key, item, names))
        .collect()
}

fn task(key: &str, item: &Item<'_>, names: &Names) -> Option<TaskKind> {
    let fields = item.table()?;
    let mut scope = Scope::new(names);
    let dimensions = dimensions(&fields, &mut scope);
    for used in OF_WORLDS
        .into_iter()
        .filter(|used| fields.find(used).is_some())
    {
        names.uses(used);
    }
    let reference = |key: &'static str, class| {
        fields
            .item(key)
            .and_then(|item| references::object(&item, &scope, &[class]))
    };
    let (process, group) = (
        reference("process", Class::Process),
        reference("group", Class::Group),
    );
    let timed = |key: &'static str| {
        fields
            .item(key)
            .and_then(|item| amount(&item, &scope, &[Time]))
    };
    let (start, every) = (timed("start"), timed("every"));
    let kind = TaskKind {
        key: key.to_owned(),
        name: name(&fields, key, item),
        spawned: fields.flag("spawned"),
        background: fields.flag("background"),
        process,
        nice: optional(&fields, "nice", &scope, &[Count]),
        policy: fields
            .item("policy")
            .and_then(|item| policy(&item))
            .unwrap_or(Policy::Normal),
        slice: time(&fields, "slice", &scope),
        cpus: fields.item("cpus").and_then(|item| place(&item, &scope)),
        group,
        fragment: fragment(&fields, &scope),
        start,
        end: time(&fields, "end", &scope),
        every,
        times: optional(&fields, "times", &scope, &[Count]),
        setup: steps::list(fields.item("setup"), &mut scope),
        body: body(&fields, &mut scope),
        dimensions,
        spot: spot(item),
    };
    fields.finish();
    Some(kind)
}

fn fragment(fields: &Fields<'_>, scope: &Scope<'_>) -> Option<crate::expr::Expr> {
    let fragment = optional(fields, "fragment", scope, &[Count]);
    if fragment.is_some() {
        scope.names.uses("fragment");
    }
    fragment
}

fn name(fields: &Fields<'_>, key: &str, table: &Item<'_>) -> String {
    let (item, help) = match fields.item("name") {
        Some(item) => (item, "write a shorter name"),
        None => (table.clone(), "write name = \"...\" with a shorter one"),
    };
    let name = fields
        .find("name")
        .map_or(Some(key.to_owned()), |item| item.text());
    let name = name.unwrap_or_default();
    if name.len() > LONGEST_NAME {
        let what = format!("`{name}` has more than {LONGEST_NAME} bytes, which a kernel cuts off");
        item.report(what, help);
    }
    name
}

fn body(fields: &Fields<'_>, scope: &mut Scope<'_>) -> Vec<crate::step::Step> {
    let item = fields.required(
        "body",
        "write what the task does: body = [{ run = \"10ms\" }]",
    );
    let Some(item) = item else {
        return Vec::new();
    };
    if matches!(&item.node.kind, warmq_config::NodeKind::List(nodes) if nodes.is_empty()) {
        item.report(
            "the body is empty",
            "write at least one step, as in { run = \"10ms\" }",
        );
    }
    steps::list(Some(item), scope)
}
