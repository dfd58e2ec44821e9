//! The points of a sweep that is too large to be listed: made one by one, by their numbers.

use warmq_config::Value;

use crate::experiment::Axis;
use crate::point::{Filter, Point};

/// Every combination of the values of some axes, the first axis slowest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid(Vec<(String, Vec<Value>)>);

impl Grid {
    pub(crate) fn new(axes: &[Axis]) -> Grid {
        let pair = |axis: &Axis| (axis.key.clone(), axis.values.clone());
        Grid(axes.iter().map(pair).collect())
    }

    /// The points that `filter` matches: a grid, too.
    #[must_use]
    pub(crate) fn filtered(&self, filter: &Filter) -> Grid {
        let kept = |(key, values): &(String, Vec<Value>)| {
            let wanted = filter.0.get(key);
            let keeps = |value: &&Value| wanted.is_none_or(|wanted| wanted.contains(value));
            (key.clone(), values.iter().filter(keeps).cloned().collect())
        };
        Grid(self.0.iter().map(kept).collect())
    }

    /// How many points. The reader of an experiment keeps it far below the greatest number.
    pub fn count(&self) -> u64 {
        self.0
            .iter()
            .map(|(_, values)| values.len() as u64)
            .product()
    }

    /// The point with this number, counted from 0; none if there are fewer.
    pub(crate) fn point(&self, number: u64) -> Option<Point> {
        let mut point = Point::default();
        let mut rest = number;
        for (key, values) in self.0.iter().rev() {
            let base = values.len() as u64;
            let value = &values[rest.checked_rem(base)? as usize];
            rest /= base;
            point.0.insert(key.clone(), value.clone());
        }
        (rest == 0).then_some(point)
    }
}
