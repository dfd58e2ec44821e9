//! The cost at which a figure of the lab is the measured one.

/// How near the figure has to come, as a part of it.
const NEAR: f64 = 0.001;
/// What is further off was not found: as a part of it, and in us, since a cost is a whole number
/// of cycles.
const MISSED: f64 = 0.03;
const MISSED_US: f64 = 0.001;
/// Runs of the lab for one cost. A figure is nearly a straight line over a cost: three are usual.
const MOST_RUNS: usize = 8;
/// The first step aside, in cycles, where the cost is smaller.
const ASIDE: f64 = 500.0;

/// No path through a kernel takes so many cycles.
const MOST: f64 = 1e6;

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solved {
    /// The cost in cycles.
    pub cycles: u64,
    /// The figure that the lab has with it.
    pub figure: f64,
}

impl Solved {
    /// Whether no cost makes the figure what is `wanted`: not even 0, or none that a path through a
    /// kernel can have.
    pub fn misses(&self, wanted: f64) -> bool {
        (self.figure - wanted).abs() > (MISSED * wanted.abs()).max(MISSED_US)
    }
}

/// Looks for the cost at which `figure` is `wanted`, from `start` on: where the line through the
/// last two tries meets it. A cost is never below 0; where even that is too much, it is 0.
///
/// # Errors
/// As `figure`.
pub fn solve<E>(
    wanted: f64,
    start: u64,
    mut figure: impl FnMut(u64) -> Result<f64, E>,
) -> Result<Solved, E> {
    let mut of = |cycles: u64| {
        let figure = figure(cycles)?;
        Ok(Solved { cycles, figure })
    };
    let off = |tried: &Solved| (tried.figure - wanted).abs();
    let mut last = of(start)?;
    let mut next = start + (start as f64 / 2.0).max(ASIDE) as u64;
    let mut best = last;
    for _ in 1..MOST_RUNS {
        if off(&best) <= NEAR * wanted.abs() {
            break;
        }
        let tried = of(next)?;
        if off(&tried) < off(&best) {
            best = tried;
        }
        let Some(meets) = crossing(last, tried, wanted) else {
            break;
        };
        if meets == tried.cycles {
            break;
        }
        (last, next) = (tried, meets);
    }
    Ok(best)
}

/// Where the line through two tries has the `wanted` figure; `None`, where it is level.
fn crossing(one: Solved, other: Solved, wanted: f64) -> Option<u64> {
    let slope = (other.figure - one.figure) / (other.cycles as f64 - one.cycles as f64);
    let cycles = other.cycles as f64 + (wanted - other.figure) / slope;
    cycles
        .is_finite()
        .then(|| cycles.round().clamp(0.0, MOST) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solved(wanted: f64, start: u64, figure: impl Fn(f64) -> f64) -> (Solved, usize) {
        let mut runs = 0;
        let solved = solve(wanted, start, |cycles| {
            runs += 1;
            Ok::<f64, ()>(figure(cycles as f64))
        });
        (solved.unwrap(), runs)
    }

    #[test]
    fn a_straight_line_takes_three_runs() {
        let (found, runs) = solved(5.0, 1_000, |cycles| 1.0 + cycles / 2_600.0);
        assert_eq!((found.cycles, runs), (10_400, 3));
    }

    #[test]
    fn what_is_right_already_stays() {
        let (found, runs) = solved(2.0, 2_600, |cycles| 1.0 + cycles / 2_600.0);
        assert_eq!((found.cycles, runs), (2_600, 1));
    }

    #[test]
    fn a_curve_is_followed() {
        let (found, _) = solved(9.0, 100, |cycles| 1.0 + (cycles / 1_000.0).powi(2));
        assert!((found.figure - 9.0).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn where_the_rest_takes_longer_the_cost_is_nothing() {
        let (found, _) = solved(0.5, 1_000, |cycles| 1.0 + cycles / 2_600.0);
        assert_eq!(found.cycles, 0);
    }

    #[test]
    fn a_time_that_no_cost_explains_is_missed() {
        let (found, _) = solved(1e6, 1_000, |cycles| 1.0 + cycles / 2_600.0);
        assert!(found.misses(1e6), "{found:?}");
        let (found, _) = solved(2.0, 1_000, |cycles| 1.0 + cycles / 2_600.0);
        assert!(!found.misses(2.0), "{found:?}");
    }

    #[test]
    fn a_figure_that_does_not_depend_on_it_ends_the_search() {
        let (found, runs) = solved(5.0, 1_000, |_| 3.0);
        assert_eq!((found.cycles, runs), (1_000, 2));
    }
}
