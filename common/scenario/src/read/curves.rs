//! `[curve]`: functions that expressions may use.

use std::collections::BTreeMap;
use std::sync::Arc;

use warmq_config::{Fields, Item};

use super::settings::is_identifier;
use crate::expr::Curve;

/// The curves by name.
pub(super) fn read(fields: &Fields<'_>) -> BTreeMap<String, Arc<Curve>> {
    let Some(table) = fields.table("curve") else {
        return BTreeMap::new();
    };
    let named = table.entries().filter_map(|(entry, item)| {
        if !is_identifier(&entry.key) {
            let help = "write letters, digits and _, beginning with a letter";
            item.report("this cannot be the name of a curve", help);
            return None;
        }
        Some((entry.key.clone(), Arc::new(curve(&item)?)))
    });
    named.collect()
}

fn curve(item: &Item<'_>) -> Option<Curve> {
    let table = item.table()?;
    let points = table.required(
        "points",
        "write two points or more, as in [[2, 1], [1024, 100]]",
    );
    let _ = (table.text("what"), table.text("source"));
    table.finish();
    let item = points?;
    let points: Option<Vec<(u64, u64)>> = item.list()?.iter().map(point).collect();
    let curve = Curve::of(points?);
    if curve.is_none() {
        let help = "write two points or more, each with a greater first number than the one before";
        item.report("these points are no curve", help);
    }
    curve
}

fn point(item: &Item<'_>) -> Option<(u64, u64)> {
    const MOST: u64 = i64::MAX as u64;
    let numbers = item.list()?;
    let [x, y] = &numbers[..] else {
        return item.wrong("a point, as in [1024, 100]");
    };
    Some((x.integer(0..=MOST)?, y.integer(0..=MOST)?))
}
