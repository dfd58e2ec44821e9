//! `[[claim]]`: a statement in words, and the test that it must pass.

use warmq_config::{Fields, Item, NodeKind};

use super::measures::{axis_of, percentage};
use super::published::measure_of;
use crate::experiment::{Claim, Direction, Experiment, Measure, Test, Within};
use crate::judge;
use crate::point::{Filter, Point};

pub(super) fn read(fields: &Fields, experiment: &mut Experiment) {
    for table in fields.tables("claim") {
        let claim = claim(&table, experiment);
        table.finish();
        let Some(claim) = claim else { continue };
        if !judge::has_items(&claim, experiment) {
            table.report(
                "no point of the sweep is covered by the claim",
                "correct `at`, or the places and keys that it names",
            );
        }
        experiment.claims.push(claim);
    }
}

fn claim(table: &Fields, experiment: &Experiment) -> Option<Claim> {
    let says = table.required("says", "state the claim in a sentence");
    let source = table.text("source").unwrap_or_default();
    let share = table.or("share", 100.0, percentage);
    let negated = table.flag("not");
    let at = table.or("at", Filter::default(), |item| {
        experiment.parts.filter(item)
    });
    let metric = table.required("metric", "name the measure that the claim is about");
    let measures = metric
        .as_ref()
        .map(|item| measures_of(item, experiment))
        .unwrap_or_default();
    let test = measures
        .first()
        .and_then(|measure| test(table, measure, experiment));
    if measures.is_empty() {
        table.know(&KEYS);
    }
    Some(Claim {
        says: says?.text()?,
        source,
        metrics: measures
            .iter()
            .map(|measure| measure.name.clone())
            .collect(),
        at: at?,
        share: share?,
        negated,
        test: test?,
    })
}

fn measures_of<'a>(item: &Item, experiment: &'a Experiment) -> Vec<&'a Measure> {
    item.one_or_more()
        .iter()
        .filter_map(|item| measure_of(item, experiment))
        .collect()
}

const KEYS: [&str; 13] = [
    "at_least",
    "at_most",
    "near",
    "within_factor",
    "within_percent",
    "within_points",
    "trend",
    "along",
    "from",
    "to",
    "slack",
    "order",
    "by_factor",
];

/// The test that the table describes. Each kind of test has a key that no other has.
fn test(table: &Fields, measure: &Measure, experiment: &Experiment) -> Option<Test> {
    let bounds = table.item("at_least").or(table.item("at_most"));
    let (near, trend, order) = (table.item("near"), table.item("trend"), table.item("order"));
    let named = [&bounds, &near, &trend, &order]
        .into_iter()
        .flatten()
        .count();
    if named != 1 {
        table.know(&KEYS);
        let what = if named == 0 {
            "the claim has no test"
        } else {
            "the claim has two tests"
        };
        let help = "use one of at_least and at_most, near, trend, order";
        table.report(what, help);
        return None;
    }
    if let Some(near) = near {
        return read_near(table, &near);
    }
    if trend.is_some() {
        return read_trend(table, measure, experiment);
    }
    if let Some(order) = order {
        return read_order(table, &order, experiment);
    }
    read_bounds(table)
}

fn read_bounds(table: &Fields) -> Option<Test> {
    let (least, most) = (table.number("at_least"), table.number("at_most"));
    if let (Some(least), Some(most)) = (least, most)
        && least > most
    {
        table.report(
            format!("nothing is at least {least} and at most {most}"),
            "swap the two",
        );
    }
    Some(Test::Bounds { least, most })
}

fn read_near(table: &Fields, near: &Item) -> Option<Test> {
    let to = match &near.node.kind {
        NodeKind::Text(word) if word == "published" => None,
        NodeKind::Text(_) => return near.wrong("a number or \"published\""),
        _ => Some(near.number()?),
    };
    let factor = table.number("within_factor").map(Within::Factor);
    let percent = table.number("within_percent").map(Within::Percent);
    let points = table.number("within_points").map(Within::Points);
    let given: Vec<Within> = [factor, percent, points].into_iter().flatten().collect();
    let [within] = given.as_slice() else {
        let help = "use one of within_factor, within_percent, within_points";
        table.report("it does not say how near", help);
        return None;
    };
    match within {
        Within::Factor(factor) if *factor < 1.0 => {
            table.report("a factor must be at least 1", "write within_factor = 1.5");
        }
        Within::Percent(limit) | Within::Points(limit) if *limit < 0.0 => {
            table.report("a distance cannot be negative", "leave out the sign");
        }
        _ => {}
    }
    Some(Test::Near {
        to,
        within: *within,
    })
}

fn read_trend(table: &Fields, measure: &Measure, experiment: &Experiment) -> Option<Test> {
    let direction = table.choice("trend", &Direction::NAMES);
    let slack = table.or("slack", 0.0, percentage);
    let (from, to) = (table.item("from"), table.item("to"));
    let along = table.required("along", "name the swept key along which the trend runs")?;
    let axis = axis_of(&along, &experiment.parts.axes, measure)?;
    let end = |item: Option<Item>| match item {
        Some(item) => experiment.parts.swept_value(&axis.key, &item).map(Some),
        None => Some(None),
    };
    let (along, direction, slack) = (axis.key.clone(), direction?, slack?);
    Some(Test::Trend {
        along,
        direction,
        from: end(from)?,
        to: end(to)?,
        slack,
    })
}

fn read_order(table: &Fields, order: &Item, experiment: &Experiment) -> Option<Test> {
    let factor = table.number("by_factor").unwrap_or(1.0);
    let items = order.list()?;
    let places = items.iter().map(|item| experiment.parts.place(item));
    let places: Vec<Point> = places.collect::<Option<_>>()?;
    if places.len() < 2 {
        order.report(
            "an order needs two places or more",
            "name another, the largest first",
        );
        return None;
    }
    let keys = |place: &Point| place.0.keys().cloned().collect::<Vec<_>>();
    if places.iter().any(|place| keys(place) != keys(&places[0])) {
        order.report(
            "the places have different keys",
            "name the same keys in each",
        );
        return None;
    }
    Some(Test::Order { places, factor })
}
