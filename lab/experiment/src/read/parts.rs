//! The world, machine, scheduler and workload of an experiment, and their settings.

use std::collections::BTreeMap;

use itertools::join;

use warmq_config::{Entry, Fields, Item, NodeKind, Setting, Value, did_you_mean};

use crate::experiment::{Axis, Parts, Target};
use crate::plan::{KERNEL, LAB, Part, with_settings};
use crate::point::NO_VALUE;
use crate::point::{Filter, Point};
use crate::simulator::{PartError, Simulator};

/// The meaning of names in one file: the parts in use and their settings.
pub(super) struct Scope<'a> {
    simulator: &'a dyn Simulator,
    settings: BTreeMap<(Part, String), Vec<Setting>>,
    /// Whether the runs are only planned, so that there may be very many.
    pub(super) is_planned: bool,
    pub(super) parts: Parts,
}

/// Reads the names of the parts and `[settings]`. Returns whether the sweep can be read.
pub(super) fn read(fields: &Fields, scope: &mut Scope) -> bool {
    for part in Part::ALL {
        let swept = swept_names(fields, part);
        let named = fields.item(part.key());
        match (&named, swept.is_empty()) {
            (None, true) if part == Part::World => scope.is_simulated(),
            (None, true) => {
                let help = format!("name one of {}", scope.simulator.names(part).join(", "));
                fields.report(format!("`{}` is missing", part.key()), help);
            }
            (Some(item), false) => {
                item.report("is both named and swept", "name it in one place only")
            }
            _ => {}
        }
        for item in named.iter().chain(&swept) {
            if let Some(name) = item.text().filter(|name| scope.load(part, name, item)) {
                scope.parts.names.insert(part, name);
            }
        }
        if !swept.is_empty() {
            scope.parts.names.remove(&part);
        }
    }
    let ready = Part::ALL.iter().all(|part| scope.has(*part));
    let settings = fields.table("settings");
    if let Some(table) = settings.filter(|_| ready) {
        read_settings(&table, scope);
    }
    ready
}

/// The names under which a part is swept, in all blocks of the sweep.
fn swept_names<'a>(fields: &Fields<'a>, part: Part) -> Vec<Item<'a>> {
    let Some(item) = fields.item("sweep") else {
        return Vec::new();
    };
    let blocks = item.one_or_more();
    let blocks = blocks.iter();
    let tables = blocks.filter(|block| matches!(block.node.kind, NodeKind::Table(_)));
    let lists = tables.filter_map(|block| block.table()?.item(part.key()));
    lists
        .filter(|item| matches!(item.node.kind, NodeKind::List(_)))
        .flat_map(|item| item.one_or_more())
        .collect()
}

fn read_settings(table: &Fields, scope: &mut Scope) {
    for (key, item) in flattened(table) {
        let Some(target) = scope.resolve(&key, &item) else {
            continue;
        };
        let Target::Setting(part, name) = &target else {
            item.report(
                "names a part, which is not a setting",
                format!("write `{key}` at the top"),
            );
            continue;
        };
        if scope.is_everywhere(&target, &item)
            && let Some(value) = scope.value(&target, &item)
        {
            scope.parts.set.push((*part, name.clone(), value));
        }
    }
}

/// The entries of a table by their full names; `workload.size` may also be written as a nested
/// table.
pub(super) fn flattened<'a>(table: &Fields<'a>) -> Vec<(String, Item<'a>)> {
    let mut flat = Vec::new();
    for (entry, item) in table.entries() {
        let is_part = Part::ALL.iter().any(|part| part.key() == entry.key);
        match item.node.kind {
            NodeKind::Table(_) if is_part => {
                let inner = item.table().into_iter();
                flat.extend(inner.flat_map(|table| {
                    let qualify = |(inner, item): (&Entry, Item<'a>)| {
                        (format!("{}.{}", entry.key, inner.key), item)
                    };
                    table.entries().map(qualify).collect::<Vec<_>>()
                }));
            }
            _ => flat.push((entry.key.clone(), item)),
        }
    }
    flat
}

impl<'a> Scope<'a> {
    pub(super) fn new(simulator: &'a dyn Simulator, is_planned: bool) -> Scope<'a> {
        Scope {
            simulator,
            is_planned,
            settings: BTreeMap::new(),
            parts: Parts::default(),
        }
    }

    /// Looks up the settings of a part that the experiment names.
    fn load(&mut self, part: Part, name: &str, item: &Item) -> bool {
        let written = name;
        let (name, own) = match part {
            Part::Scheduler => with_settings(name),
            _ => (name, ""),
        };
        match self.simulator.settings(part, name) {
            Ok(mut settings) => {
                let all = own.split(';').filter(|one| !one.is_empty());
                let set: Vec<bool> = all
                    .map(|one| set_own(name, &mut settings, one, item))
                    .collect();
                self.learn(part, written, settings);
                !set.contains(&false)
            }
            Err(PartError::Unknown) => {
                let names = self.simulator.names(part);
                let names = names.iter().map(String::as_str);
                item.unknown(
                    format!("there is no {} \"{name}\"", part.key()),
                    name,
                    names,
                );
                false
            }
            Err(why) => {
                item.report(format!("\"{name}\" cannot be used: {why}"), "");
                false
            }
        }
    }

    /// No world is named.
    fn is_simulated(&mut self) {
        self.parts.names.insert(Part::World, LAB.to_owned());
        let settings = self.simulator.settings(Part::World, LAB);
        self.learn(Part::World, LAB, settings.unwrap_or_default());
    }

    fn learn(&mut self, part: Part, name: &str, settings: Vec<Setting>) {
        let key = (part, name.to_owned());
        let defaults = settings.iter();
        let defaults = defaults.map(|setting| (setting.name.clone(), setting.default.clone()));
        self.parts.defaults.insert(key.clone(), defaults.collect());
        self.settings.insert(key, settings);
    }

    /// Why the parts of `point` do not go together.
    pub(super) fn unfit(&self, point: &Point) -> Option<String> {
        let name = |part: Part| self.parts.name_at(part, point);
        let world = name(Part::World);
        let parts = [Part::Machine, Part::Scheduler, Part::Workload].into_iter();
        let mut refused =
            parts.filter_map(|part| self.simulator.takes(&world, part, &name(part)).err());
        refused.next()
    }

    /// `point` with [`NO_VALUE`] for the settings that its parts lack.
    pub(super) fn of_its_parts(&self, point: &Point) -> Point {
        let mut point = point.clone();
        for axis in &self.parts.axes {
            if let Target::Setting(part, setting) = &axis.target
                && self.lacks(*part, setting, &point)
            {
                let none = Value::Text(NO_VALUE.to_owned());
                point.0.insert(axis.key.clone(), none);
            }
        }
        point
    }

    /// Whether `setting` means nothing to `part` at `point`. A scheduler of the lab that is of no
    /// kernel is the same whatever the kernel.
    fn lacks(&self, part: Part, setting: &str, point: &Point) -> bool {
        let name = |part: Part| self.parts.name_at(part, point);
        let of_kernel = name(Part::World) != LAB || name(Part::Scheduler) == KERNEL;
        if part == Part::World && setting == KERNEL && !of_kernel {
            return true;
        }
        let settings = self
            .settings
            .get(&(part, self.parts.written_at(part, point)));
        let settings = settings.into_iter().flatten();
        // Schedulers of other worlds have settings that nobody knows here; a kernel's own has none
        // in any world.
        let mut settings = settings.peekable();
        let is_known = part == Part::World || name(part) == KERNEL || settings.peek().is_some();
        is_known && !settings.any(|known| known.name == setting)
    }

    fn has(&self, part: Part) -> bool {
        self.settings.keys().any(|(of, _)| *of == part)
    }

    /// The settings of one name in every part of a kind that is in use.
    fn named(&self, part: Part, setting: &str) -> Vec<Option<&Setting>> {
        let of_part = self.settings.iter().filter(|((of, _), _)| *of == part);
        of_part
            .map(|(_, list)| list.iter().find(|known| known.name == setting))
            .collect()
    }

    /// What `key` sets: a part's name, or the setting of the one kind of part that has it.
    pub(super) fn resolve(&self, key: &str, item: &Item) -> Option<Target> {
        let part_of = |key: &str| Part::ALL.into_iter().find(|part| part.key() == key);
        if let Some(part) = part_of(key) {
            return Some(Target::Name(part));
        }
        let (wanted, name) = match key.split_once('.') {
            Some((part, name)) => (part_of(part), name),
            None => (None, key),
        };
        let candidates = Part::ALL
            .into_iter()
            .filter(|part| wanted.is_none_or(|wanted| wanted == *part));
        let having: Vec<Part> = candidates
            .filter(|part| self.named(*part, name).iter().any(Option::is_some))
            .collect();
        match having.as_slice() {
            [] => self.unknown(key, name, item),
            [part] => Some(Target::Setting(*part, name.to_owned())),
            [first, ..] => {
                let help = format!("write \"{}.{name}\"", first.key());
                let keys = join(having.iter().map(|part| part.key()), " and of ");
                item.report(format!("is a setting of {keys}"), help);
                None
            }
        }
    }

    fn unknown(&self, key: &str, name: &str, item: &Item) -> Option<Target> {
        let settings = self
            .settings
            .values()
            .flatten()
            .map(|setting| setting.name.as_str());
        let known: Vec<&str> = settings.chain(Part::ALL.map(Part::key)).collect();
        let help = match did_you_mean(name, known.iter().copied()) {
            help if help.starts_with("did") => help,
            _ => self.known(),
        };
        item.report(format!("no part in use has a setting `{key}`"), help);
        None
    }

    fn known(&self) -> String {
        let of = |((_, part), settings): (&(Part, String), &Vec<Setting>)| {
            let names = settings.iter().map(|setting| setting.name.as_str());
            format!("{part} has {}", join(names, ", "))
        };
        let with_some = self.settings.iter().filter(|(_, list)| !list.is_empty());
        join(with_some.map(of), "; ")
    }

    /// Checks that every part of a kind in use has what is set for all runs. What is swept means
    /// nothing to those that lack it.
    pub(super) fn is_everywhere(&self, target: &Target, item: &Item) -> bool {
        let Target::Setting(part, name) = target else {
            return true;
        };
        let lacking = self.settings.iter().find(|((of, _), settings)| {
            // Schedulers of other worlds have no settings that anybody knows here, and a kernel's
            // release means something in guests only.
            of == part
                && *part != Part::World
                && !settings.is_empty()
                && !settings.iter().any(|setting| setting.name == *name)
        });
        if let Some(((_, other), _)) = lacking {
            let help = format!(
                "sweep it, with one value or more: `{name}` is then `-` where it means nothing"
            );
            item.report(format!("{} {other} has no such setting", part.key()), help);
        }
        lacking.is_none()
    }

    /// A value for `target`, of the kind and in the range that it allows.
    pub(super) fn value(&self, target: &Target, item: &Item) -> Option<Value> {
        match target {
            Target::Name(_) => item.text().map(Value::Text),
            Target::Setting(part, name) => {
                let settings: Vec<&Setting> =
                    self.named(*part, name).into_iter().flatten().collect();
                let mut value = None;
                for setting in settings {
                    value = Some(item.value(&setting.kind)?);
                }
                value
            }
        }
    }
}

/// Sets one of the settings of the part `name` by `KEY=VALUE`, as its default. Returns whether it
/// has it.
fn set_own(name: &str, settings: &mut [Setting], own: &str, item: &Item) -> bool {
    let (key, value) = own.split_once('=').unwrap_or((own, ""));
    let known = settings.iter_mut().find(|known| known.name == key.trim());
    let Some(known) = known else {
        let names = settings.iter().map(|known| known.name.as_str());
        item.unknown(format!("{name} has no setting `{key}`"), key, names);
        return false;
    };
    let value = item.value_within(value.trim(), &known.kind);
    let found = value.is_some();
    known.default = value.unwrap_or_else(|| known.default.clone());
    found
}

impl Parts {
    /// The axis of `key`, which `item` names.
    pub(super) fn swept(&self, key: &str, item: &Item) -> Option<&Axis> {
        let axis = self.axis(key);
        if axis.is_none() {
            let keys = self.axes.iter().map(|axis| axis.key.as_str());
            item.unknown(format!("`{key}` is not swept"), key, keys);
        }
        axis
    }

    /// The swept value that `item` names, for the swept key `key`.
    pub(super) fn swept_value(&self, key: &str, item: &Item) -> Option<Value> {
        let axis = self.swept(key, item)?;
        let written = match &item.node.kind {
            NodeKind::Text(text) => text.clone(),
            _ => item.node.describe(),
        };
        let found = axis.values.iter().find(|value| value.is_written(&written));
        if found.is_none() {
            let what = format!("{key} = {written} is not swept");
            item.report(what, format!("the sweep has {}", join(&axis.values, ", ")));
        }
        found.cloned()
    }

    /// A table of swept keys, each with a value or a list of them.
    pub(super) fn filter(&self, item: &Item) -> Option<Filter> {
        let mut filter = Filter::default();
        for (key, item) in flattened(&item.table()?) {
            let values = item
                .one_or_more()
                .into_iter()
                .map(|value| self.swept_value(&key, &value));
            filter.0.insert(key.clone(), values.collect::<Option<_>>()?);
        }
        Some(filter)
    }

    /// A table of swept keys, each with one value.
    pub(super) fn place(&self, item: &Item) -> Option<Point> {
        let mut point = Point::default();
        for (key, item) in flattened(&item.table()?) {
            point.0.insert(key.clone(), self.swept_value(&key, &item)?);
        }
        Some(point)
    }
}
