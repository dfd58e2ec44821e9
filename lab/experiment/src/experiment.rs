//! An experiment as checked data: what the reader makes of a file, and all that a run needs.

use std::collections::BTreeMap;

use warmq_report::{Kind as PlotKind, Scale, Tolerance, VerticalLine};
use warmq_units::{Duration, Seed};

use crate::plan::{Chosen, Part, Plan};
use crate::point::{Filter, Point};
use warmq_config::Value;

/// An experiment that can be run.
///
/// Invariant, established by [`Experiment::read`]: every name in it is known to the simulator that
/// it was read for; every point, filter and base lies in the sweep; every measure is made of
/// metrics and of measures before it.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// A word for links and rows: the file's name without its ending.
    pub id: String,
    /// The file it was read from.
    pub file: String,
    /// What a person would call it.
    pub title: String,
    /// The paper that it reproduces: `coloring`; empty for one of ours.
    pub paper: String,
    /// Where in the paper: `Table 2`; empty for one of ours.
    pub figure: String,
    /// What it shows, in a paragraph.
    pub about: String,
    /// What a reader must know to judge the figures.
    pub notes: Vec<String>,
    /// What every run has in common, and what is swept.
    pub parts: Parts,
    /// Seeds and times of a full run.
    pub full: Extent,
    /// Seeds and times of a quick run.
    pub quick: Extent,
    /// The points of a quick run, a part of the sweep.
    pub quick_points: Filter,
    /// Every point of the sweep, in order.
    pub points: Vec<Point>,
    /// What is measured, each made of the simulator's metrics and of those before it.
    pub measures: Vec<Measure>,
    /// What the paper printed.
    pub published: Vec<Published>,
    /// What the paper (or we) state.
    pub claims: Vec<Claim>,
    /// What is drawn.
    pub plots: Vec<PlotSpec>,
    /// What people call a value of a swept key.
    pub labels: Vec<(String, Value, String)>,
    /// The swept keys that become columns of the table.
    pub columns: Vec<String>,
    /// How close is close enough, by measure.
    pub tolerances: BTreeMap<String, Tolerance>,
}

/// How long a run is, and how often it is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// One run a seed; at least one, no two equal.
    pub seeds: Vec<u64>,
    /// Simulated time before anything is measured.
    pub warmup: Duration,
    /// Simulated time that is measured, more than zero.
    pub time: Duration,
}

/// What every run has in common, and what is swept.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// The parts that are not swept by name.
    pub names: BTreeMap<Part, String>,
    /// All settings of each part in use, at their defaults.
    pub defaults: BTreeMap<(Part, String), BTreeMap<String, Value>>,
    /// What the experiment sets for all its runs.
    pub set: Vec<(Part, String, Value)>,
    /// What it sweeps, in the order of the file.
    pub axes: Vec<Axis>,
}

/// A key that is swept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The key as the file has it: `colors`.
    pub key: String,
    /// What it sets.
    pub target: Target,
    /// Its values: numbers ascending, names in the order of the file.
    pub values: Vec<Value>,
}

/// What a key sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Which machine, scheduler or workload.
    Name(Part),
    /// A setting of one of them.
    Setting(Part, String),
}

/// Something that is measured at points of the sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// Its name in rows, claims and plots.
    pub name: String,
    /// What a person would call it.
    pub title: String,
    /// Its unit.
    pub unit: String,
    /// Where it has a value in a full run, in order; all of the same keys.
    pub domain: Vec<Point>,
    /// How it is obtained.
    pub how: How,
}

/// How a measure is obtained.
#[derive(Clone, Debug, PartialEq)]
pub enum How {
    /// The simulator gives it.
    Figure,
    /// Read off a histogram that the simulator gives.
    Histogram {
        /// Which histogram.
        of: String,
        /// What is read off.
        read: HistogramRead,
    },
    /// Another measure over itself at a base point, seed by seed.
    Relative {
        /// Which measure.
        of: String,
        /// What to change in a point to get to its base.
        base: Point,
        /// How the two are compared.
        compare: Compare,
    },
    /// Another measure seen along one key, which thereby leaves the point.
    Along {
        /// Which measure.
        of: String,
        /// The key.
        key: String,
        /// What is taken from the values along it.
        take: Take,
    },
}

/// What is read off a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistogramRead {
    /// Where the tallest bin stands.
    PeakAt,
    /// The tallest bin's share of the whole, in percent.
    PeakShare,
    /// The tallest bin over the second tallest.
    PeakOverNext,
}

/// How a value is compared with its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// By how many percent it is more (or, negative, less).
    Percent,
    /// How many times as much it is.
    Ratio,
    /// How much more it is, in the same unit.
    Difference,
}

/// What is taken from the values along a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Take {
    /// The largest value.
    Largest,
    /// The smallest value.
    Smallest,
    /// Where along the key the largest value stands (the first such place).
    PeakAt,
    /// The first place along the key where the change since the key's first value reaches `share`
    /// percent of the largest change.
    Needed {
        /// From 0 to 100.
        share: f64,
        /// Whether a change downwards is the one wanted.
        lower_is_better: bool,
    },
}

/// A figure that the paper printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Of which measure.
    pub metric: String,
    /// Where: a point of that measure.
    pub point: Point,
    /// The figure, in the measure's unit.
    pub value: f64,
    /// Whether the model was calibrated on it.
    pub calibration: bool,
}

/// A statement, and how it is checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The statement in words.
    pub says: String,
    /// Who says so, and where.
    pub source: String,
    /// The measures it is about; at least one.
    pub metrics: Vec<String>,
    /// The points it is about.
    pub at: Filter,
    /// How many percent of the items must pass.
    pub share: f64,
    /// Whether an item passes when the test does not.
    pub negated: bool,
    /// The test of one item.
    pub test: Test,
}

/// The shapes of a claim. What an item is differs: a point, or a group of points along a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// A point's value lies within bounds (both included).
    Bounds {
        /// The least allowed.
        least: Option<f64>,
        /// The most allowed.
        most: Option<f64>,
    },
    /// A point's value lies near a given or the published one.
    Near {
        /// The given one, or the published.
        to: Option<f64>,
        /// How near.
        within: Within,
    },
    /// Values along a key go one way.
    Trend {
        /// The key.
        along: String,
        /// Which way.
        direction: Direction,
        /// The first value of the key that counts; none: from the start.
        from: Option<Value>,
        /// The last value of the key that counts; none: to the end.
        to: Option<Value>,
        /// How many percent a single step may go the wrong way.
        slack: f64,
    },
    /// Values at several places stand in order, the largest first.
    Order {
        /// The places; all have the same keys, at least two.
        places: Vec<Point>,
        /// By how many times each exceeds the next.
        factor: f64,
    },
}

/// How near is near.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Within {
    /// Up to this many times larger or smaller.
    Factor(f64),
    /// Up to this many percent more or less.
    Percent(f64),
    /// Up to this much more or less, in the unit of the measure.
    Points(f64),
}

/// Which way values go along a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Up.
    Rises,
    /// Down.
    Falls,
    /// All within the slack of the largest.
    Flat,
}

/// A plot, before there are values.
#[derive(Clone, Debug, PartialEq)]
pub struct PlotSpec {
    /// What it shows.
    pub title: String,
    /// What a reader should see in it.
    pub caption: String,
    /// How it is drawn.
    pub kind: PlotKind,
    /// The key along the horizontal axis; for a histogram, what is along it.
    pub x: String,
    /// How the horizontal axis is spread.
    pub scale: Scale,
    /// The measure, or the histogram.
    pub y: String,
    /// What a person would call it.
    pub label: String,
    /// Its unit.
    pub unit: String,
    /// The keys whose values make the series.
    pub series: Vec<String>,
    /// The points that are drawn.
    pub at: Filter,
    /// Lines at places that matter.
    pub markers: Vec<VerticalLine>,
}

impl Experiment {
    /// The measure `name`.
    pub fn measure(&self, name: &str) -> Option<&Measure> {
        self.measures.iter().find(|measure| measure.name == name)
    }

    /// What people call `point`: its values in the order of the sweep.
    pub fn name_of(&self, point: &Point) -> String {
        let named = |axis: &Axis| Some(format!("{} = {}", axis.key, point.0.get(&axis.key)?));
        self.parts
            .axes
            .iter()
            .filter_map(named)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

impl Parts {
    /// The axis of `key`.
    pub fn axis(&self, key: &str) -> Option<&Axis> {
        self.axes.iter().find(|axis| axis.key == key)
    }

    /// The run at `point` with one of the seeds of `extent`.
    pub fn plan(&self, point: &Point, seed: u64, extent: &Extent) -> Plan {
        let [machine, scheduler, workload] = Part::ALL.map(|part| self.chosen(part, point));
        let Extent { warmup, time, .. } = *extent;
        Plan {
            machine,
            scheduler,
            workload,
            seed: Seed(seed),
            warmup,
            time,
        }
    }

    fn chosen(&self, part: Part, point: &Point) -> Chosen {
        let swept = self
            .axes
            .iter()
            .find(|axis| axis.target == Target::Name(part));
        let name = match swept.and_then(|axis| point.0.get(&axis.key)) {
            Some(value) => value.to_string(),
            None => self.names.get(&part).cloned().unwrap_or_default(),
        };
        let key = (part, name);
        let mut settings = self.defaults.get(&key).cloned().unwrap_or_default();
        for (_, setting, value) in self.set.iter().filter(|(of, _, _)| *of == part) {
            settings.insert(setting.clone(), value.clone());
        }
        for axis in &self.axes {
            if let (Target::Setting(of, setting), Some(value)) =
                (&axis.target, point.0.get(&axis.key))
                && *of == part
            {
                settings.insert(setting.clone(), value.clone());
            }
        }
        Chosen {
            name: key.1,
            settings,
        }
    }
}
