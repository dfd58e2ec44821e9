//! `[[change]]` and `[[phase]]`.

use std::sync::Arc;

use warmq_config::{Fields, Item};

use super::names::{Names, is_name};
use super::references::{self, NO_JOINING, OF_TABLE, has_indexes};
use super::scope::{Scope, spot};
use super::steps::fragment;
use super::values::{place, policy, rate, time};
use crate::change::{Change, Occurs, Phase, SchedulerChoice, Set, Target};
use crate::expr::Spot;
use crate::object::{Class, ObjectId};
use crate::quantity::Quantity::{Count, Time};
use crate::step::Reference;

pub(super) fn changes(fields: &Fields<'_>, names: &Names) -> Vec<Change> {
    let scope = Scope::new(names);
    let change = |item: Item<'_>| {
        let table = item.table()?;
        let change = change(&table, spot(&item), &scope);
        table.finish();
        change
    };
    fields.know(&["change"]);
    let items = fields.members("change").into_iter();
    items.filter_map(change).collect()
}

pub(super) fn phases(fields: &Fields<'_>, names: &Names) -> Vec<Phase> {
    let scope = Scope::new(names);
    let phase = |table: &Fields<'_>| {
        let name = table.required("name", "say in a word what the phase is");
        let at = table.required("at", "write when it begins: at = \"1s\"");
        table.finish();
        Some(Phase {
            name: name?.text()?,
            at: scope.expr(&at?, &[Time])?,
        })
    };
    fields.tables("phase").iter().filter_map(phase).collect()
}

fn change(table: &Fields<'_>, spot: Arc<Spot>, scope: &Scope<'_>) -> Option<Change> {
    let occurs = occurs(table, scope);
    let target = target(table, scope);
    if let Some(item) = table.item("scheduler") {
        let choice = scheduler(table, &item, scope);
        return Some(Change {
            occurs: occurs?,
            target: target?,
            set: vec![Set::Scheduler(choice?)],
            spot,
        });
    }
    let set = table.required("set", "say what changes: set = { nice = 5 }");
    let set = set.and_then(|item| item.table());
    let (occurs, target, set) = (occurs, target?, set?);
    let list = sets(&set, &target, scope);
    set.finish();
    if set.entries().next().is_none() {
        set.report("nothing is set", "write what changes: set = { nice = 5 }");
    }
    Some(Change {
        occurs: occurs?,
        target,
        set: list,
        spot,
    })
}

fn occurs(table: &Fields<'_>, scope: &Scope<'_>) -> Option<Occurs> {
    let (start, end) = (time(table, "start", scope), time(table, "end", scope));
    match (table.item("at"), table.item("every")) {
        (Some(at), None) => {
            if start.is_some() || end.is_some() {
                at.report("`start` and `end` are for `every`", "leave them out");
            }
            scope.expr(&at, &[Time]).map(Occurs::At)
        }
        (None, Some(item)) => Some(Occurs::Every {
            period: scope.expr(&item, &[Time])?,
            start,
            end,
        }),
        _ => {
            table.report("a change has either `at` or `every`", "write at = \"2s\"");
            None
        }
    }
}

fn target(table: &Fields<'_>, scope: &Scope<'_>) -> Option<Target> {
    let keys = ["task", "group", "cpu", "source", "scheduler"];
    let named = keys.map(|key| table.item(key).map(|item| (key, item)));
    let mut named = named.into_iter().flatten();
    let (Some((key, item)), None) = (named.next(), named.next()) else {
        let help = "write one of task = \"NAME\", group = \"NAME\", cpu = \"cpu 1\", \
                    source = \"NAME\", scheduler = \"NAME\"";
        table.report("a change is of one thing", help);
        return None;
    };
    match key {
        "task" => task(&item, scope),
        "group" => objects(&item, scope, Class::Group, Target::Groups, Target::Group),
        "source" => objects(&item, scope, Class::Source, Target::Sources, Target::Source),
        "cpu" => place(&item, scope).map(Target::Cpus),
        _ => Some(Target::Scheduler),
    }
}

/// `kernel`, `first`, or the name of a scheduler and its options.
fn scheduler(table: &Fields<'_>, item: &Item<'_>, scope: &Scope<'_>) -> Option<SchedulerChoice> {
    scope.names.uses("scheduler");
    if let Some(set) = table.item("set") {
        set.report(
            "a scheduler has no values that could be set",
            "write its options: options = \"--slice-us 700\"",
        );
    }
    let (name, options) = (item.text()?, table.item("options"));
    let known = match name.as_str() {
        "kernel" => Some((
            SchedulerChoice::Kernel,
            "the kernel's own scheduler has no options",
        )),
        "first" => Some((
            SchedulerChoice::First,
            "the first scheduler has the options that it began with",
        )),
        _ => None,
    };
    if let Some((choice, without_options)) = known {
        if let Some(options) = options {
            options.report(without_options, "leave them out");
        }
        return Some(choice);
    }
    if !is_name(&name) {
        return item.wrong("\"kernel\", or the name of a scheduler: letters, digits, - and _");
    }
    let options = match options {
        Some(options) => options.text()?,
        None => String::new(),
    };
    Some(SchedulerChoice::Loaded { name, options })
}

fn task(item: &Item<'_>, scope: &Scope<'_>) -> Option<Target> {
    let name = item.text()?;
    match scope.names.tasks.get(&name) {
        Some((id, _)) if !has_indexes(&name) => Some(Target::Tasks(*id)),
        _ => references::task(item, scope).map(Target::Task),
    }
}

/// All objects of `class` with a name, or one of them.
fn objects(
    item: &Item<'_>,
    scope: &Scope<'_>,
    class: Class,
    all: fn(ObjectId) -> Target,
    one: fn(Reference) -> Target,
) -> Option<Target> {
    let name = item.text()?;
    match scope.names.objects.get(&name) {
        Some((id, known, _)) if *known == class && !has_indexes(&name) => Some(all(*id)),
        _ => references::object(item, scope, &[class]).map(one),
    }
}

/// Reports a key that groups have, but not this kind of them.
fn check_key_of_group(key: &str, item: &Item<'_>, target: &Target, scope: &Scope<'_>) {
    let (Target::Group(Reference { object: group, .. }) | Target::Groups(group)) = target else {
        return;
    };
    match (scope.names.is_autogroup(*group), key) {
        (true, "nice") => {}
        (false, "nice") => item.report(
            "a cgroup has no nice value",
            "change its weight: set = { weight = 50 }",
        ),
        (true, "weight") => item.report(
            "the weight of an autogroup follows from its nice value",
            "change that: set = { nice = 5 }",
        ),
        (false, _) => {}
        (true, _) => item.report(
            format!("`{key}` needs a cgroup, and this is an autogroup"),
            "leave it out, or leave `autogroup` out of the group's table",
        ),
    }
}

/// What the table sets, in the order of the documentation.
fn sets(table: &Fields<'_>, target: &Target, scope: &Scope<'_>) -> Vec<Set> {
    let set = |key: &'static str| {
        let item = table.item(key)?;
        check_key_of_group(key, &item, target, scope);
        scope.names.uses(match (key, target) {
            ("cpus", Target::Group(_) | Target::Groups(_)) => "cpuset",
            _ => feature(key),
        });
        one(key, &item, scope)
    };
    let keys: &[&'static str] = match target {
        Target::Task(_) | Target::Tasks(_) => &[
            "cpus", "nice", "policy", "slice", "group", "fragment", "stop", "continue",
        ],
        Target::Group(_) | Target::Groups(_) => &[
            "weight", "nice", "quota", "burst", "idle", "cpus", "freeze", "thaw",
        ],
        Target::Cpus(_) => &["online"],
        Target::Source(_) | Target::Sources(_) => &["cpu", "rate", "stop", "continue"],
        Target::Scheduler => &[],
    };
    keys.iter().filter_map(|key| set(key)).collect()
}

/// The name under which the truth of a change is listed.
fn feature(key: &'static str) -> &'static str {
    match key {
        "stop" | "continue" => "stop",
        "weight" | "quota" | "burst" | "idle" | "freeze" | "thaw" => "group",
        other => other,
    }
}

/// What `key` sets, for steps and for changes.
pub(super) fn one(key: &str, item: &Item<'_>, scope: &Scope<'_>) -> Option<Set> {
    let only_true = |set: Set| match item.node.kind {
        warmq_config::NodeKind::Bool(true) => Some(set),
        _ => item.wrong("true"),
    };
    match key {
        "cpus" => place(item, scope).map(Set::Cpus),
        "nice" => scope.expr(item, &[Count]).map(Set::Nice),
        "policy" => policy(item).map(Set::Policy),
        "slice" => scope.expr(item, &[Time]).map(Set::Slice),
        "group" => references::cgroup(item, scope, NO_JOINING, OF_TABLE).map(Set::Group),
        "fragment" => fragment(item, scope).map(Set::Fragment),
        "stop" => only_true(Set::Stop),
        "continue" => only_true(Set::Continue),
        "weight" => scope.expr(item, &[Count]).map(Set::Weight),
        "quota" => scope.expr(item, &[Time]).map(Set::Quota),
        "burst" => scope.expr(item, &[Time]).map(Set::Burst),
        "idle" => item.flag().map(Set::Idle),
        "freeze" => only_true(Set::Freeze),
        "thaw" => only_true(Set::Thaw),
        "online" => item.flag().map(Set::Online),
        "cpu" => place(item, scope).map(Set::Arrival),
        "rate" => rate(item, scope).map(Set::Rate),
        _ => None,
    }
}
