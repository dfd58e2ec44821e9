//! `[[change]]` and `[[phase]]`.

use std::collections::BTreeSet;
use std::sync::Arc;

use warmq_config::{Fields, Item};

use super::names::{Names, is_name};
use super::references::{self, has_indexes};
use super::scope::{Scope, spot};
use super::table::Table;
use super::values::{place, time};
use crate::change::{Change, Occurs, Phase, SchedulerChoice, Set, Target};
use crate::expr::Spot;
use crate::keys::{self, Key};
use crate::object::{Class, ObjectId};
use crate::quantity::Quantity::Time;
use crate::step::Reference;

pub(super) fn changes(fields: &Fields<'_>, names: &Names) -> Vec<Change> {
    let mut scope = Scope::new(names);
    let change = |item: Item<'_>| {
        let table = item.table()?;
        let change = change(&table, spot(&item), &mut scope);
        table.finish();
        change
    };
    fields.know(&["change"]);
    let items = fields.members("change").into_iter();
    items.filter_map(change).collect()
}

pub(super) fn phases(fields: &Fields<'_>, names: &Names) -> Vec<Phase> {
    let (mut scope, mut names) = (Scope::new(names), BTreeSet::new());
    let mut phase = |item: &Item<'_>| {
        let fields = item.table()?;
        let table = Table {
            fields: &fields,
            keys: &[keys::PHASE],
            scope: &mut scope,
            spot: spot(item),
        };
        let (name, at) = (table.get::<String>("name"), table.get("at"));
        fields.finish();
        if let Some(name) = name.as_ref().filter(|name| !names.insert((*name).clone())) {
            let what = format!("two phases are called {name}");
            fields.report(what, "give each a name of its own");
        }
        Some(Phase {
            name: name?,
            at: at?,
        })
    };
    fields.know(&["phase"]);
    let items = fields.members("phase");
    items.iter().filter_map(&mut phase).collect()
}

fn change(table: &Fields<'_>, spot: Arc<Spot>, scope: &mut Scope<'_>) -> Option<Change> {
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
    let list = sets(&set, &target, &spot, scope);
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
    let keys = keys::TARGETS.iter().map(|(key, _)| key.name);
    let keys = keys.chain(["scheduler"]);
    // All are asked for: none of them is unknown.
    let named: Vec<_> = keys.map(|key| Some((key, table.item(key)?))).collect();
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
fn sets(fields: &Fields<'_>, target: &Target, spot: &Arc<Spot>, scope: &mut Scope<'_>) -> Vec<Set> {
    let of = match target {
        Target::Task(_) | Target::Tasks(_) => "task",
        Target::Group(_) | Target::Groups(_) => "group",
        Target::Cpus(_) => "cpu",
        Target::Source(_) | Target::Sources(_) => "source",
        Target::Scheduler => "scheduler",
    };
    let keys = keys::TARGETS.iter().find(|(key, _)| key.name == of);
    let keys = keys.map_or(&[][..], |(_, keys)| *keys);
    let table = Table {
        fields,
        keys: &[keys],
        scope,
        spot: spot.clone(),
    };
    let set = |key: &Key| {
        let item = table.item(key.name)?;
        check_key_of_group(key.name, &item, target, table.scope);
        table.scope.names.uses(match (key.name, of) {
            ("cpus", "group") => "cpuset",
            ("stop" | "continue", _) => "stop",
            ("weight" | "quota" | "burst" | "idle" | "freeze" | "thaw", _) => "group",
            (other, _) => other,
        });
        set(&table, key.name)
    };
    keys.iter().filter_map(set).collect()
}

/// What the key `name` sets, in a step or in a change.
pub(super) fn set(table: &Table<'_, '_, '_>, name: &str) -> Option<Set> {
    Some(match name {
        "cpus" => Set::Cpus(table.get(name)?),
        "nice" => Set::Nice(table.get(name)?),
        "policy" => Set::Policy(table.get(name)?),
        "slice" => Set::Slice(table.get(name)?),
        "uclamp_min" => Set::UclampMin(table.get(name)?),
        "uclamp_max" => Set::UclampMax(table.get(name)?),
        "group" => Set::Group(table.get(name)?),
        "fragment" => Set::Fragment(table.get(name)?),
        "stop" => table.get(name).map(|()| Set::Stop)?,
        "continue" => table.get(name).map(|()| Set::Continue)?,
        "weight" => Set::Weight(table.get(name)?),
        "quota" => Set::Quota(table.get(name)?),
        "burst" => Set::Burst(table.get(name)?),
        "idle" => Set::Idle(table.get(name)?),
        "freeze" => table.get(name).map(|()| Set::Freeze)?,
        "thaw" => table.get(name).map(|()| Set::Thaw)?,
        "online" => Set::Online(table.get(name)?),
        "cpu" => Set::Arrival(table.get(name)?),
        "rate" => Set::Rate(table.get(name)?),
        _ => return None,
    })
}
