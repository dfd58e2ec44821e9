//! Curves: functions of a count that are given by points.

/// A whole number for each whole number: linear between two points, and beyond the first and the
/// last point as there.
///
/// Invariant: there are at least two points, from left to right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Curve(Vec<(u64, u64)>);

impl Curve {
    /// None if there are fewer than two points, or they are not from left to right.
    pub(crate) fn of(points: Vec<(u64, u64)>) -> Option<Curve> {
        let rises = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
        (points.len() > 1 && rises).then_some(Curve(points))
    }

    /// The value at `place`, rounded down.
    pub(crate) fn at(&self, place: i64) -> i64 {
        let next = self
            .0
            .partition_point(|(x, _)| i128::from(*x) <= i128::from(place));
        let value = match (next.checked_sub(1), self.0.get(next)) {
            (None, _) => self.0[0].1.into(),
            (Some(last), None) => self.0[last].1.into(),
            (Some(before), Some(after)) => between(self.0[before], *after, place),
        };
        // Between two points of 63 bits nothing is larger.
        value as i64
    }
}

fn between(left: (u64, u64), right: (u64, u64), place: i64) -> i128 {
    let [x0, y0, x1, y1] = [left.0, left.1, right.0, right.1].map(i128::from);
    y0 + ((y1 - y0) * (i128::from(place) - x0)).div_euclid(x1 - x0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_linear_between_points_and_constant_beyond_them() {
        let curve = Curve::of(vec![(2, 1), (4, 10), (10, 4)]).expect("a curve");
        for (place, value) in [
            (i64::MIN, 1),
            (0, 1),
            (2, 1),
            (3, 5),
            (4, 10),
            (5, 9),
            (9, 5),
            (10, 4),
            (i64::MAX, 4),
        ] {
            assert_eq!(curve.at(place), value, "{place}");
        }
        let widest = i64::MAX as u64;
        let curve = Curve::of(vec![(0, widest), (widest, 0)]).expect("a curve");
        assert_eq!(curve.at(1), i64::MAX - 1);
    }

    #[test]
    fn points_go_from_left_to_right() {
        for points in [
            vec![],
            vec![(1, 1)],
            vec![(1, 1), (1, 2)],
            vec![(2, 1), (1, 2)],
        ] {
            assert_eq!(Curve::of(points.clone()), None, "{points:?}");
        }
    }
}
