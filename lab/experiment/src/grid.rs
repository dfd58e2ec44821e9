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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::experiment::Target;
    use crate::plan::Part;

    fn axis(key: &str, values: i64) -> Axis {
        Axis {
            key: key.to_owned(),
            target: Target::Setting(Part::Scheduler, key.to_owned()),
            values: (0..values).map(Value::Integer).collect(),
        }
    }

    proptest! {
        #[test]
        fn numbers_count_the_points_in_order_the_first_axis_slowest(a in 1..5i64, b in 1..5i64, c in 1..5i64) {
            let grid = Grid::new(&[axis("a", a), axis("z", b), axis("m", c)]);
            let point = |(a, b, c): (i64, i64, i64)| {
                let values = [("a", a), ("z", b), ("m", c)];
                Point(values.map(|(key, value)| (key.to_owned(), value.into())).into())
            };
            let listed = (0..a).flat_map(|a| (0..b).flat_map(move |b| (0..c).map(move |c| (a, b, c))));
            let listed: Vec<Point> = listed.map(point).collect();
            let made: Vec<Point> = (0..).map_while(|number| grid.point(number)).collect();
            prop_assert_eq!(grid.count(), listed.len() as u64);
            prop_assert_eq!(&made, &listed);

            let filter = Filter([("z".to_owned(), vec![Value::Integer(0)])].into());
            let part = grid.filtered(&filter);
            let made: Vec<Point> = (0..).map_while(|number| part.point(number)).collect();
            let matching = listed.into_iter().filter(|point| filter.matches(point));
            let matching: Vec<Point> = matching.collect();
            prop_assert_eq!(made, matching);
        }
    }
}
