//! The tables of tasks.

use warmq_config::{Fields, Item, NodeKind};

use super::names::{Headings, Names};
use super::scope::{Scope, spot};
use super::steps;
use super::table::Table;
use super::values::dimensions;
use crate::keys;
use crate::step::Step;
use crate::task::{Policy, TaskKind};

/// The longest name of a task: TASK_COMM_LEN of the kernel without the final zero.
const LONGEST_NAME: usize = 15;
/// Keys whose truth depends on the world.
const OF_WORLDS: [&str; 7] = [
    "nice", "policy", "slice", "cpus", "process", "every", "fragment",
];

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
    let mut table = Table {
        fields: &fields,
        keys: &[keys::TASK],
        scope: &mut scope,
        spot: spot(item),
    };
    let kind = TaskKind {
        key: key.to_owned(),
        process: table.get("process"),
        group: table.get("group"),
        start: table.get("start"),
        every: table.get("every"),
        name: name(&fields, key, item),
        spawned: table.flag("spawned"),
        background: table.flag("background"),
        nice: table.get("nice"),
        policy: table.get("policy").unwrap_or(Policy::Normal),
        slice: table.get("slice"),
        uclamp_min: table.get("uclamp_min"),
        uclamp_max: table.get("uclamp_max"),
        cpus: table.get("cpus"),
        fragment: table.get("fragment"),
        end: table.get("end"),
        times: table.get("times"),
        setup: steps::list(table.item("setup"), table.scope),
        body: body(&mut table),
        dimensions,
        spot: table.spot,
    };
    fields.finish();
    Some(kind)
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

fn body(table: &mut Table<'_, '_, '_>) -> Vec<Step> {
    let item = table.item("body");
    let node = item.as_ref().map(|item| &item.node.kind);
    if let (Some(NodeKind::List(nodes)), Some(item)) = (node, &item)
        && nodes.is_empty()
    {
        item.report(
            "the body is empty",
            "write at least one step, as in { run = \"10ms\" }",
        );
    }
    steps::list(item, table.scope)
}
