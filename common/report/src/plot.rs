//! What a plot shows, as data. How it looks is the page's business.

use serde::Serialize;

use crate::pivot::distinct;

/// A plot: series over one pair of axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plot {
    /// What it shows: `Cache misses of the walk`.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// How the series are drawn.
    pub kind: Kind,
    /// The series, at most eight names. Series of one name and different origin are the same thing
    /// seen twice: they share color and shape.
    pub series: Vec<Series>,
    /// Vertical lines at a place that matters: a threshold, an offset.
    pub markers: Vec<VerticalLine>,
    /// What a reader should see in it, in a sentence; read aloud to those who cannot see it.
    pub caption: String,
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Axis {
    /// What is along it: `L2 miss ratio`.
    pub label: String,
    /// Its unit: `%`; empty for a count.
    pub unit: String,
    /// How values are spread along it. Bars stand evenly whatever the scale.
    pub scale: Scale,
    /// Whether its ticks are hexadecimal, as offsets and addresses are.
    pub hexadecimal: bool,
    /// For a vertical axis: values that it holds beside those of the points. Give two plots the
    /// same ones to make them comparable at a glance.
    pub holds: Vec<f64>,
}

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// By their logarithm, with a tick at powers of two: for sizes and counts that double.
    Log2,
    /// By their logarithm, with a tick at powers of ten. Values of zero and less sit on the axis.
    Log10,
}

/// How the series of a plot are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Simulated: a line with a band from low to high. Published: hollow markers.
    #[default]
    Lines,
    /// Simulated: bars with a whisker from low to high. Published: hollow markers on them.
    Bars,
    /// Many narrow bars without gaps, one a bin; x are numbers in ascending, even steps.
    Histogram,
    /// Markers alone: each point is a thing of its own, and no value is between two.
    Points,
}

/// One thing over the horizontal axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    /// What people call it: `32 colors`.
    pub name: String,
    /// Where its values come from.
    pub origin: Origin,
    /// Its points, in ascending order of x (or in the order of the categories).
    pub points: Vec<PlotPoint>,
}

warmq_units::named! {
    /// Where values come from.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Origin {
        /// Our model: a solid line with an interval.
        #[default]
        Simulated = "simulated",
        /// The paper: hollow markers, no line.
        Published = "published",
        /// A real machine: a dashed line with filled markers and whiskers.
        Measured = "measured",
    }
}

/// A point of a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlotPoint {
    /// Where along the horizontal axis.
    pub x: X,
    /// The value. Not finite: a gap.
    pub y: f64,
    /// The low end of its interval; `y` if there is none.
    pub low: f64,
    /// The high end of its interval; `y` if there is none.
    pub high: f64,
}

/// A place along the horizontal axis. A plot uses one of the two kinds throughout.
#[derive(Clone, Debug, PartialEq, Serialize, derive_more::From)]
#[serde(untagged)]
pub enum X {
    /// A quantity.
    #[from]
    Number(f64),
    /// A name; categories stand in the order in which they first appear.
    #[from(&str)]
    Category(String),
}

/// A vertical line across a plot, with a word beside it. For a horizontal axis of numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerticalLine {
    /// Where.
    pub x: f64,
    /// What is there: `equation 3`.
    pub label: String,
}

impl Plot {
    /// The names of its series.
    pub(crate) fn names(&self) -> Vec<&str> {
        distinct(self.series.iter().map(|series| series.name.as_str()))
    }
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>, unit: impl Into<String>) -> Axis {
        Axis {
            label: label.into(),
            unit: unit.into(),
            ..Axis::default()
        }
    }

    /// The same axis on another scale.
    #[must_use]
    pub fn on(self, scale: Scale) -> Axis {
        Axis { scale, ..self }
    }
}

impl PlotPoint {
    /// A point without an interval.
    pub fn exact(x: X, y: f64) -> PlotPoint {
        PlotPoint {
            x,
            y,
            low: y,
            high: y,
        }
    }

    /// Whether its interval has a width.
    pub fn has_interval(&self) -> bool {
        self.low < self.high
    }
}
