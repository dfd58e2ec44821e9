//! Where things stand in a plot, before a line is drawn.

use crate::chart::ruler::Ruler;
use crate::chart::spread::Spread;
use crate::number;
use crate::pivot::distinct;
use crate::{Kind, Origin, Plot, PlotPoint, Series, X};

/// The room that a plot has, in CSS pixels.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    pub width: u32,
    pub height: u32,
    /// The size of words and figures.
    pub font: u32,
    /// About how many ticks fit side by side.
    pub ticks: usize,
}

/// For a desk and for paper.
pub(crate) const WIDE: Frame = Frame {
    width: 800,
    height: 400,
    font: 13,
    ticks: 10,
};
/// For a phone.
pub(crate) const NARROW: Frame = Frame {
    width: 360,
    height: 300,
    font: 12,
    ticks: 4,
};

/// The axes of a plot and the names in it.
pub(crate) struct Layout<'a> {
    pub plot: &'a Plot,
    pub across: Across,
    pub up: Spread,
    /// Distinct names of the series, in order; the index gives color and shape.
    pub names: Vec<&'a str>,
}

/// The horizontal axis.
pub(crate) enum Across {
    /// Values along a scale.
    Numbers(Spread),
    /// Names that stand evenly, at 0, 1, 2...
    Categories(Vec<String>),
}

impl<'a> Layout<'a> {
    pub fn new(plot: &'a Plot, frame: Frame) -> Layout<'a> {
        let points = plot.series.iter().flat_map(|series| &series.points);
        let heights = points.flat_map(|point| [point.y, point.low, point.high]);
        let heights = heights.chain(plot.y.holds.iter().copied());
        // Points are compared with each other and not with nothing.
        let up = match plot.kind {
            Kind::Points => Spread::horizontal(&plot.y, &ascending(heights), 5, 0.06),
            _ => Spread::vertical(&plot.y, heights, 5),
        };
        Layout {
            plot,
            across: Across::new(plot, frame),
            up,
            names: plot.names(),
        }
    }

    /// The index of a series' name.
    pub fn name(&self, series: &Series) -> usize {
        self.names
            .iter()
            .position(|name| *name == series.name)
            .unwrap_or(0)
    }

    /// Where a point stands along the horizontal axis.
    pub fn x(&self, x: &X) -> f64 {
        match (&self.across, x) {
            (Across::Numbers(spread), X::Number(value)) => spread.place(*value),
            (Across::Numbers(spread), X::Category(_)) => spread.low,
            (Across::Categories(names), x) => {
                let word = word(x, self.plot.x.hexadecimal);
                names.iter().position(|name| *name == word).unwrap_or(0) as f64
            }
        }
    }

    /// Where a value stands along the vertical axis; none where it is not finite.
    pub fn y(&self, value: f64) -> Option<f64> {
        value.is_finite().then(|| self.up.place(value))
    }

    /// The bar of a series within its group: which one of how many. Bars of published figures
    /// share the place of their name's other series.
    pub fn slot(&self, series: &Series) -> (usize, usize) {
        let drawn = |other: &&Series| {
            let alone = !self
                .plot
                .series
                .iter()
                .any(|twin| twin.name == other.name && twin.origin != Origin::Published);
            other.origin != Origin::Published || alone
        };
        let slots: Vec<&Series> = self.plot.series.iter().filter(drawn).collect();
        let own = slots.iter().position(|slot| std::ptr::eq(*slot, series));
        let twin = || slots.iter().position(|slot| slot.name == series.name);
        (own.or_else(twin).unwrap_or(0), slots.len().max(1))
    }

    /// The distance between two neighboring bins of a histogram, as places.
    pub fn bin(&self, points: &[PlotPoint]) -> f64 {
        let places: Vec<f64> = points.iter().map(|point| self.x(&point.x)).collect();
        let gaps = places
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .filter(|gap| *gap > 0.0);
        let (low, high) = self.across.ends();
        gaps.fold(high - low, f64::min)
    }
}

impl Across {
    fn new(plot: &Plot, frame: Frame) -> Across {
        let places = || {
            plot.series
                .iter()
                .flat_map(|series| &series.points)
                .map(|point| &point.x)
        };
        let named = places().any(|x| matches!(x, X::Category(_)));
        if named || plot.kind == Kind::Bars {
            let names = places().map(|x| word(x, plot.x.hexadecimal));
            return Across::Categories(distinct(names));
        }
        let values = ascending(places().filter_map(|x| match x {
            X::Number(value) => Some(*value),
            X::Category(_) => None,
        }));
        let air = if plot.kind == Kind::Histogram {
            0.005
        } else {
            0.03
        };
        Across::Numbers(Spread::horizontal(&plot.x, &values, frame.ticks, air))
    }

    /// Both ends, as places.
    pub fn ends(&self) -> (f64, f64) {
        match self {
            Across::Numbers(spread) => (spread.low, spread.high),
            Across::Categories(names) => (-0.5, names.len().max(1) as f64 - 0.5),
        }
    }

    /// The axis with its ticks as places and words.
    pub fn ruler(&self) -> Ruler {
        match self {
            Across::Numbers(spread) => spread.ruler(),
            Across::Categories(names) => {
                let (low, high) = self.ends();
                let ticks = names
                    .iter()
                    .enumerate()
                    .map(|(at, name)| (at as f64, name.clone()));
                Ruler {
                    low,
                    high,
                    ticks: ticks.collect(),
                }
            }
        }
    }
}

/// The finite ones of some values, each once.
fn ascending(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

/// What a place along the horizontal axis is called.
pub(crate) fn word(x: &X, hexadecimal: bool) -> String {
    match x {
        X::Category(name) => name.clone(),
        X::Number(value) if hexadecimal => format!("{:#x}", value.round() as i64),
        X::Number(value) => number::exact(*value),
    }
}
