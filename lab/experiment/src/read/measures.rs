//! `[[measure]]`: metrics of the simulator, and measures derived from them.

use std::collections::{BTreeMap, BTreeSet};

use warmq_config::{Fields, Item};
use warmq_metrics::Described;

use super::sweep::in_order;
use crate::experiment::{Axis, Compare, Experiment, HistogramRead, How, Measure, OverSeeds, Take};
use crate::plan::LAB;
use crate::point::Point;
use crate::simulator::{HistogramDescription, MetricDescription, Simulator};

pub(super) fn read(fields: &Fields, simulator: &dyn Simulator, experiment: &mut Experiment) {
    let tables = fields.tables("measure");
    let listed = simulator.metrics(&experiment.parts.used());
    let by_name = listed.iter().map(|metric| (metric.name.as_str(), metric));
    let metrics = Metrics {
        list: &listed,
        by_name: by_name.collect(),
    };
    for table in &tables {
        let read = if let Some(item) = table.item("metric") {
            let names = item.one_or_more();
            experiment.everything |= names.iter().any(|item| item.is_text(EVERYTHING));
            plain(table, (&item, simulator), &metrics, experiment)
        } else if let Some(item) = table.item("histogram") {
            histogram(table, &item, simulator, experiment)
                .into_iter()
                .collect()
        } else {
            derived(table, experiment).into_iter().collect()
        };
        if read.is_empty() {
            table.know(&["name", "title", "of", "as", "take", "share", "better"]);
        }
        table.finish();
        for measure in read {
            add(table, measure, &metrics, experiment);
        }
    }
    if tables.is_empty() {
        fields.report("nothing is measured", "add [[measure]] with a `metric`");
    }
}

/// Whatever a run gives is measured.
pub(super) fn everything(simulator: &dyn Simulator, experiment: &mut Experiment) {
    for metric in simulator.metrics(&experiment.parts.used()) {
        let measure = figure(&metric, readable(&metric.name), experiment);
        experiment.measures.push(measure);
    }
}

/// What the simulator measures, in its order and by name.
struct Metrics<'m> {
    list: &'m [MetricDescription],
    by_name: BTreeMap<&'m str, &'m MetricDescription>,
}

fn add(table: &Fields, measure: Measure, metrics: &Metrics<'_>, experiment: &mut Experiment) {
    let is_metric = metrics.by_name.contains_key(measure.name.as_str());
    if is_metric && measure.how != How::Figure {
        let what = format!("`{}` is the name of a metric", measure.name);
        table.report(what, "choose another name");
    } else if experiment.measure(&measure.name).is_some() {
        table.report(
            format!("`{}` is measured twice", measure.name),
            "leave one out",
        );
    } else {
        experiment.measures.push(measure);
    }
}

fn plain(
    table: &Fields,
    (item, simulator): (&Item, &dyn Simulator),
    metrics: &Metrics<'_>,
    experiment: &Experiment,
) -> Vec<Measure> {
    let mut read = Vec::new();
    let title = table.line("title");
    for item in item.one_or_more() {
        let Some(name) = item.text() else { continue };
        if name == EVERYTHING {
            let all = metrics.list.iter();
            read.extend(all.map(|metric| figure(metric, readable(&metric.name), experiment)));
            continue;
        }
        let unread = || of_missing(&name, simulator, experiment);
        let known = metrics
            .by_name
            .get(name.as_str())
            .map(|known| (*known).clone());
        let Some(metric) = known.or_else(unread) else {
            let known = metrics.list.iter().map(|metric| metric.name.as_str());
            item.unknown(format!("there is no metric \"{name}\""), &name, known);
            continue;
        };
        let title = title.clone().unwrap_or_else(|| readable(&name));
        read.push(figure(&metric, title, experiment));
    }
    read
}

/// A counter of a scheduler whose program is not here: nobody knows which it has.
fn of_missing(
    name: &str,
    simulator: &dyn Simulator,
    experiment: &Experiment,
) -> Option<MetricDescription> {
    let mut schedulers = experiment.parts.used().schedulers.into_iter();
    schedulers.find(|scheduler| simulator.missing(LAB, scheduler).is_some())?;
    let Described { name, unit, what } = Described::of_scheduler(name)?;
    let unit = unit.to_owned();
    Some(MetricDescription { name, unit, what })
}

/// The name that stands for every metric.
const EVERYTHING: &str = "*";

fn figure(metric: &MetricDescription, title: String, experiment: &Experiment) -> Measure {
    Measure {
        name: metric.name.clone(),
        title,
        unit: metric.unit.clone(),
        domain: experiment.points.clone(),
        how: How::Figure,
    }
}

/// A readable title from a name such as `walk_l2_miss_ratio`.
pub(super) fn readable(name: &str) -> String {
    name.replace('_', " ")
}

fn histogram(
    table: &Fields,
    item: &Item,
    simulator: &dyn Simulator,
    experiment: &Experiment,
) -> Option<Measure> {
    /// What makes a way of reading from the measure's own table.
    type Reader = fn(&Fields<'_>) -> HistogramRead;
    let reads: [(&str, Reader); 4] = [
        ("peak_at", |_| HistogramRead::PeakAt),
        ("peak_share", |_| HistogramRead::PeakShare),
        ("peak_over_next", |_| HistogramRead::PeakOverNext),
        ("share", share),
    ];
    let read = table.choice("take", &reads).map(|read| read(table));
    if read.is_none() {
        table.report(
            "a histogram needs `take`",
            "write peak_at, peak_share, peak_over_next or share",
        );
    }
    let (named, read) = (Named::read(table)?, read?);
    let of = histogram_named(item, simulator, experiment)?.name;
    let unit = match read {
        HistogramRead::PeakShare | HistogramRead::Share { .. } => "%",
        HistogramRead::PeakAt | HistogramRead::PeakOverNext => "",
    };
    let how = How::Histogram { of, read };
    Some(named.measure(unit, experiment.points.clone(), how))
}

/// The histogram that `item` names.
pub(super) fn histogram_named(
    item: &Item,
    simulator: &dyn Simulator,
    experiment: &Experiment,
) -> Option<HistogramDescription> {
    let name = item.text()?;
    let known = simulator.histograms(&experiment.parts.used());
    let found = known.iter().find(|histogram| histogram.name == name);
    if found.is_none() {
        let names = known.iter().map(|histogram| histogram.name.as_str());
        item.unknown(format!("there is no histogram \"{name}\""), &name, names);
    }
    found.cloned()
}

/// The share of the bins from `from` to `to`, or of one.
fn share(table: &Fields) -> HistogramRead {
    let help = "give the position of the first bin that counts";
    let from = table.required("from", help).and_then(|item| item.count());
    let to = table.item("to").and_then(|item| item.count()).or(from);
    HistogramRead::Share {
        from: from.unwrap_or(0),
        to: to.unwrap_or(u64::MAX),
    }
}

/// What a measure that is no metric is called: its name, and its title.
struct Named(String, String);

impl Named {
    fn read(table: &Fields) -> Option<Named> {
        let name = table
            .required("name", "give the name for rows and claims")?
            .text()?;
        let title = table.line("title").unwrap_or_else(|| readable(&name));
        Some(Named(name, title))
    }

    /// Made `how`, in `unit`, at the points of `domain`.
    fn measure(self, unit: &str, domain: Vec<Point>, how: How) -> Measure {
        let (Named(name, title), unit) = (self, unit.to_owned());
        Measure {
            name,
            title,
            unit,
            domain,
            how,
        }
    }
}

fn derived(table: &Fields, experiment: &Experiment) -> Option<Measure> {
    let relative = table.item("relative_to");
    let along = table.item("along");
    let Some(item) = table.item("of") else {
        let help = "write metric = \"...\", or name = \"...\" and of = \"...\"";
        table.report("it measures nothing", help);
        return None;
    };
    let of = item.text()?;
    let Some(parent) = experiment.measure(&of) else {
        let known = experiment
            .measures
            .iter()
            .map(|measure| measure.name.as_str());
        item.unknown(format!("no measure before this one is `{of}`"), &of, known);
        return None;
    };
    match (relative, along, table.item("times"), table.item("seeds")) {
        (Some(base), None, None, None) => compared(table, &base, parent, experiment),
        (None, Some(key), None, None) => taken(table, &key, parent, experiment),
        (None, None, Some(times), None) => scaled(table, &times, parent, experiment),
        (None, None, None, Some(_)) => over_seeds(table, parent),
        _ => {
            let help = "add one of `relative_to`, `along`, `times` and `seeds`";
            table.report("it does not say how it is derived", help);
            None
        }
    }
}

fn compared(
    table: &Fields,
    item: &Item,
    parent: &Measure,
    experiment: &Experiment,
) -> Option<Measure> {
    let compare = table.choice("as", &Compare::NAMES);
    let compare = compare.unwrap_or(Compare::Percent);
    let named = Named::read(table)?;
    let base = experiment.parts.place(item)?;
    let away = parent.domain.iter().filter(|point| !point.is_at(&base));
    let domain: Vec<Point> = away.cloned().collect();
    let lacks = |point: &&Point| !parent.domain.contains(&point.moved(&base));
    if let Some(point) = domain.iter().find(lacks) {
        let what = format!(
            "the base of {point} is not in the sweep of `{}`",
            parent.name
        );
        item.report(what, format!("sweep {} as well", point.moved(&base)));
        return None;
    }
    let unit = match compare {
        Compare::Percent => "%",
        Compare::Ratio => "",
        Compare::Difference => &parent.unit,
    };
    let of = parent.name.clone();
    Some(named.measure(unit, domain, How::Relative { of, base, compare }))
}

fn over_seeds(table: &Fields, parent: &Measure) -> Option<Measure> {
    let takes = [("mean", OverSeeds::Mean), ("spread", OverSeeds::Spread)];
    let take = table.choice("seeds", &takes)?;
    let named = Named::read(table)?;
    let unit = match take {
        OverSeeds::Mean => &parent.unit,
        OverSeeds::Spread => "%",
    };
    let of = parent.name.clone();
    let how = How::OverSeeds { of, take };
    Some(named.measure(unit, parent.domain.clone(), how))
}

fn scaled(
    table: &Fields,
    item: &Item,
    parent: &Measure,
    experiment: &Experiment,
) -> Option<Measure> {
    let times = item.number()?;
    let named = Named::read(table)?;
    let over = table.choice("as", &[("product", false), ("quotient", true)]);
    let unit = table.text("unit").unwrap_or_default();
    let keys = table.item("each");
    let keys: Vec<Item> = keys.iter().flat_map(Item::one_or_more).collect();
    let mut each = Vec::new();
    for key in &keys {
        let axis = axis_of(key, &experiment.parts.axes, parent)?;
        if axis.values.iter().any(|value| value.number().is_none()) {
            key.report(format!("`{}` has no numbers", axis.key), "leave it out");
            return None;
        }
        each.push(axis.key.clone());
    }
    let how = How::Scaled {
        of: parent.name.clone(),
        times,
        each,
        over: over.unwrap_or(false),
    };
    Some(named.measure(&unit, parent.domain.clone(), how))
}

fn taken(
    table: &Fields,
    item: &Item,
    parent: &Measure,
    experiment: &Experiment,
) -> Option<Measure> {
    let take = take(table)?;
    let named = Named::read(table)?;
    let axis = axis_of(item, &experiment.parts.axes, parent)?;
    let is_place = matches!(take, Take::PeakAt | Take::Needed { .. });
    if is_place && axis.values.iter().any(|value| value.number().is_none()) {
        item.report(
            format!("`{}` has no numbers", axis.key),
            "take largest or smallest",
        );
        return None;
    }
    let groups: BTreeSet<Point> = parent
        .domain
        .iter()
        .map(|point| point.without([axis.key.as_str()]))
        .collect();
    let unit = if is_place { &axis.key } else { &parent.unit };
    let domain = in_order(&experiment.parts.axes, groups);
    let how = How::Along {
        of: parent.name.clone(),
        key: axis.key.clone(),
        take,
    };
    Some(named.measure(unit, domain, how))
}

/// The axis that `item` names, if `parent` still has its key.
pub(super) fn axis_of<'a>(item: &Item, axes: &'a [Axis], parent: &Measure) -> Option<&'a Axis> {
    let key = item.text()?;
    let left = |axis: &&Axis| {
        parent
            .domain
            .first()
            .is_some_and(|point| point.0.contains_key(&axis.key))
    };
    let axes: Vec<&Axis> = axes.iter().filter(left).collect();
    let found = axes.iter().find(|axis| axis.key == key).copied();
    if found.is_none() {
        let known = axes.iter().map(|axis| axis.key.as_str());
        item.unknown(format!("`{}` has no key `{key}`", parent.name), &key, known);
    }
    found
}

fn take(table: &Fields) -> Option<Take> {
    let share = table.item("share");
    let better = table.choice("better", &[("higher", false), ("lower", true)]);
    let needed = Take::Needed {
        share: 90.0,
        lower_is_better: better.unwrap_or(false),
    };
    let takes = [
        ("largest", Take::Largest),
        ("smallest", Take::Smallest),
        ("peak_at", Take::PeakAt),
        ("needed", needed),
    ];
    if table.item("take").is_none() {
        table.report(
            "`take` is missing",
            "write largest, smallest, peak_at or needed",
        );
    }
    let mut take = table.choice("take", &takes)?;
    match (&mut take, share) {
        (Take::Needed { share, .. }, Some(item)) => *share = percentage(&item)?,
        (_, Some(item)) => item.report("only `take = \"needed\"` has a share", "leave it out"),
        _ => {}
    }
    Some(take)
}

/// A number from 0 to 100.
pub(super) fn percentage(item: &Item) -> Option<f64> {
    match item.number()? {
        number if (0.0..=100.0).contains(&number) => Some(number),
        _ => item.wrong("a percentage from 0 to 100"),
    }
}
