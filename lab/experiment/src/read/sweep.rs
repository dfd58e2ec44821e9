//! The sweep: one or more blocks of lists; a block gives all combinations of its lists.

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools;
use warmq_config::{Fields, Item, Value};

use super::parts::{Scope, flattened};
use crate::experiment::{Axis, Experiment, Target};
use crate::grid::Grid;
use crate::plan::Part;
use crate::point::{NO_VALUE, Point};

/// The most points of a sweep that is judged as a whole; more are a typing error, or a sweep to
/// be planned and run in parts.
const MOST_POINTS: u64 = 4_000;
/// The most points of a sweep that is planned; more are surely a typing error.
const MOST_PLANNED: u64 = 1_000_000_000;

/// The lists of one block, key by key.
type Block = Vec<(String, Vec<Value>)>;

/// Reads `[sweep]` (or several `[[sweep]]`) and `[quick.sweep]`. Returns whether the rest can be
/// read.
pub(super) fn read(fields: &Fields, scope: &mut Scope, experiment: &mut Experiment) -> bool {
    let before = fields.problems();
    let tables = fields.tables("sweep");
    let mut blocks = Vec::new();
    for table in &tables {
        let Some(block) = read_block(table, scope) else {
            return false;
        };
        blocks.push(block);
    }
    if blocks.is_empty() {
        blocks.push(Block::new());
    }
    if !same_keys(&blocks, &tables) || !few_enough(&blocks, fields, scope) {
        return false;
    }
    for axis in &mut scope.parts.axes {
        let is_name = |value: &Value| matches!(value, Value::Text(_));
        if !axis.values.iter().any(is_name) {
            axis.values.sort();
        }
    }
    if count(&blocks).is_none_or(|points| points > MOST_POINTS) {
        experiment.grid = grid(&blocks, fields, scope);
        read_quick(fields, scope, experiment);
        return fields.problems() == before;
    }
    let all = blocks.iter().flat_map(combinations);
    let all: BTreeSet<Point> = all.map(|point| scope.of_its_parts(&point)).collect();
    let Some(fitting) = fitting(all, fields, scope, experiment) else {
        return false;
    };
    add_no_values(&mut scope.parts.axes, &fitting);
    experiment.points = in_order(&scope.parts.axes, fitting);
    read_quick(fields, scope, experiment);
    fields.problems() == before
}

/// The points whose parts go together; the others are named in the notes. Reports if none is left.
fn fitting(
    all: BTreeSet<Point>,
    fields: &Fields,
    scope: &Scope,
    experiment: &mut Experiment,
) -> Option<BTreeSet<Point>> {
    let mut unfit: BTreeMap<String, usize> = BTreeMap::new();
    let fits = |point: &Point| match scope.unfit(point) {
        Some(why) => {
            *unfit.entry(why).or_default() += 1;
            false
        }
        None => true,
    };
    let fitting: BTreeSet<Point> = all.into_iter().filter(fits).collect();
    if fitting.is_empty() {
        let why = unfit.into_keys().join("; ");
        let place = ["world", "sweep", "scheduler"].map(|key| fields.item(key));
        let what = "world, scheduler and workload do not go together";
        match place.into_iter().flatten().next() {
            Some(item) => item.report(what, why),
            None => fields.report(what, why),
        }
        return None;
    }
    for (why, points) in unfit {
        let s = if points == 1 { "" } else { "s" };
        let note = format!("Left out of the sweep, {points} point{s}: {why}.");
        experiment.notes.push(note);
    }
    Some(fitting)
}

/// Gives the axes the value that stands for none, where a point has it.
fn add_no_values(axes: &mut [Axis], points: &BTreeSet<Point>) {
    let none = Value::Text(NO_VALUE.to_owned());
    for axis in axes {
        let has_none = |point: &Point| point.0.get(&axis.key) == Some(&none);
        let used = points.iter().any(has_none);
        if used && !axis.values.contains(&none) {
            axis.values.insert(0, none.clone());
        }
    }
}

fn read_block(table: &Fields, scope: &mut Scope) -> Option<Block> {
    let mut block = Block::new();
    for (key, item) in flattened(table) {
        let target = scope.resolve(&key, &item)?;
        let values = distinct(&item, &target, scope)?;
        let is_set = |(part, name, _): &(Part, String, Value)| {
            target == Target::Setting(*part, name.clone())
        };
        if scope.parts.set.iter().any(is_set) {
            item.report("is both set and swept", "do one of the two");
        }
        widen(&mut scope.parts.axes, &key, target, &values, &item)?;
        block.push((key, values));
    }
    Some(block)
}

/// The values of one list; reports duplicates.
fn distinct(item: &Item, target: &Target, scope: &Scope) -> Option<Vec<Value>> {
    let mut values = Vec::new();
    for item in item.list()? {
        let value = scope.value(target, &item)?;
        if values.contains(&value) {
            item.report(format!("{value} is listed twice"), "leave one out");
        }
        values.push(value);
    }
    if values.is_empty() {
        item.report("the list is empty", "give one value or more");
        return None;
    }
    Some(values)
}

/// Adds the values to the axis of `key`, which several blocks may share.
fn widen(
    axes: &mut Vec<Axis>,
    key: &str,
    target: Target,
    values: &[Value],
    item: &Item,
) -> Option<()> {
    if let Some(axis) = axes.iter_mut().find(|axis| axis.key == key) {
        let new = values.iter().filter(|value| !axis.values.contains(value));
        let new: Vec<&Value> = new.collect();
        axis.values.extend(new.into_iter().cloned());
        return Some(());
    }
    if axes.iter().any(|axis| axis.target == target) {
        item.report("is swept twice, under two names", "sweep it once");
        return None;
    }
    axes.push(Axis {
        key: key.to_owned(),
        target,
        values: values.to_vec(),
    });
    Some(())
}

/// Checks that all blocks have the same keys: only then can points be compared.
fn same_keys(blocks: &[Block], tables: &[Fields]) -> bool {
    let keys = |block: &Block| {
        block
            .iter()
            .map(|(key, _)| key.clone())
            .collect::<BTreeSet<_>>()
    };
    let first = keys(&blocks[0]);
    for (block, table) in blocks.iter().zip(tables) {
        let here = keys(block);
        if let Some(key) = first.symmetric_difference(&here).next() {
            let what = format!("`{key}` is swept in one block and not in another");
            table.report(what, "sweep it in every block; one value is enough");
            return false;
        }
    }
    true
}

/// Points of all blocks, counting those in two of them twice; none if there is no number for them.
fn count(blocks: &[Block]) -> Option<u64> {
    let size = |block: &Block| {
        block
            .iter()
            .try_fold(1u64, |n, (_, values)| n.checked_mul(values.len() as u64))
    };
    blocks
        .iter()
        .map(size)
        .try_fold(0u64, |sum, size| sum.checked_add(size?))
}

fn few_enough(blocks: &[Block], fields: &Fields, scope: &Scope) -> bool {
    let (most, help) = match scope.is_planned {
        false => (
            MOST_POINTS,
            "sweep fewer values, or run it in parts: `warmq plan`, `warmq run --only` (docs/sweeps.md)",
        ),
        true => (MOST_PLANNED, "sweep fewer values"),
    };
    let few = count(blocks).is_some_and(|points| points <= most);
    if !few && let Some(item) = fields.item("sweep") {
        item.report(format!("the sweep has more than {most} points"), help);
    }
    few
}

/// The points of a large sweep, which are never all in memory. Whatever asks for a look at every
/// point is refused.
fn grid(blocks: &[Block], fields: &Fields, scope: &Scope) -> Option<Grid> {
    let sweep = fields.item("sweep")?;
    let large = format!("a sweep of more than {MOST_POINTS} points");
    if blocks.len() > 1 {
        sweep.report(
            format!("{large} is one block"),
            "write a file for each block",
        );
        return None;
    }
    let axes = &scope.parts.axes;
    let of_world = |axis: &&Axis| {
        matches!(
            &axis.target,
            Target::Name(Part::World) | Target::Setting(Part::World, _)
        )
    };
    if let Some(axis) = axes.iter().find(of_world) {
        let help = format!("write a file for each `{}`", axis.key);
        sweep.report(format!("{large} is in one world"), help);
        return None;
    }
    let named = axes
        .iter()
        .filter(|axis| matches!(axis.target, Target::Name(_)));
    let named: Block = named
        .map(|axis| (axis.key.clone(), axis.values.clone()))
        .collect();
    if let Some(why) = combinations(&named)
        .iter()
        .find_map(|point| scope.unfit(point))
    {
        sweep.report("world, scheduler and workload do not go together", why);
        return None;
    }
    Some(Grid::new(axes))
}

fn combinations(block: &Block) -> Vec<Point> {
    let axes = block.iter().map(|(key, values)| {
        let pair = move |value: &Value| (key.clone(), value.clone());
        values.iter().map(pair)
    });
    let all = axes.multi_cartesian_product();
    all.map(|pairs| Point(pairs.into_iter().collect()))
        .collect()
}

/// Points in the order of the axes, the first axis slowest.
pub(super) fn in_order(axes: &[Axis], points: impl IntoIterator<Item = Point>) -> Vec<Point> {
    let rank = |point: &Point| -> Vec<Option<usize>> {
        let place = |axis: &Axis| {
            let value = point.0.get(&axis.key)?;
            axis.values.iter().position(|other| other == value)
        };
        axes.iter().map(place).collect()
    };
    let mut points: Vec<Point> = points.into_iter().collect();
    points.sort_by_key(rank);
    points
}

fn read_quick(fields: &Fields, scope: &Scope, experiment: &mut Experiment) {
    let quick = fields.table("quick");
    let Some(item) = quick.and_then(|table| table.item("sweep")) else {
        return;
    };
    let Some(filter) = scope.parts.filter(&item) else {
        return;
    };
    experiment.quick_points = filter;
    if experiment.grid.is_none() && experiment.quick_points().next().is_none() {
        report_empty(&item);
    }
}

fn report_empty(item: &Item) {
    item.report(
        "no point of the sweep is left",
        "keep at least one value of each list",
    );
}
