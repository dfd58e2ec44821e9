//! An experiment as checked data: the reader makes it from a file, and it contains all that runs
//! need.

use std::collections::BTreeMap;

use warmq_report::{Kind as PlotKind, Scale, Tolerance, VerticalLine};
use warmq_units::{Duration, Seed};

use crate::grid::Grid;
use crate::plan::{Configured, KERNEL, Part, Plan, with_settings};
use crate::point::{Filter, Point, is_no_value};
use crate::real_kernel::Modelled;
use crate::simulator::Used;
use warmq_config::Value;

/// An experiment that can be run.
///
/// Invariant, established by [`Experiment::read`]: every name in it is known to the simulator that
/// it was read for; every point, filter and base lies in the sweep; every measure is made of
/// metrics and of measures before it.
#[derive(Clone, Debug, Default)]
pub struct Experiment {
    /// An identifier for links and rows: the file's name without its extension.
    pub id: String,
    /// The file it was read from.
    pub file: String,
    /// The title for people.
    pub title: String,
    /// The paper that it reproduces: `coloring`; empty if there is none.
    pub paper: String,
    /// Where in the paper: `Table 2`; empty if there is no paper.
    pub figure: String,
    /// What it shows, in a paragraph.
    pub about: String,
    /// What a reader must know to judge the figures.
    pub notes: Vec<String>,
    /// Measures that nobody asked for by name: where a run gives no such figure, it has no row.
    pub everything: bool,
    /// What all runs have in common, and what is swept.
    pub parts: Parts,
    /// Seeds and times of a full run.
    pub full: Extent,
    /// Seeds and times of a quick run.
    pub quick: Extent,
    /// The points of a quick run, a part of the sweep.
    pub quick_points: Filter,
    /// Every point of the sweep, in order; empty where there is a `grid`.
    pub points: Vec<Point>,
    /// The points of a sweep that is only planned ([`Experiment::planned`]), and too large to be
    /// listed. Such an experiment has measures of single runs, and neither claims nor plots.
    pub grid: Option<Grid>,
    /// What is measured. Each measure is computed from the simulator's metrics and earlier
    /// measures.
    pub measures: Measures,
    /// What the paper printed.
    pub published: Vec<Published>,
    /// The statements of the paper, or ours, to be checked.
    pub claims: Vec<Claim>,
    /// What is drawn.
    pub plots: Vec<PlotSpec>,
    /// The metrics that a table of all of them shows first, besides what is drawn.
    pub shown: Vec<String>,
    /// Names for values of swept keys.
    pub labels: Vec<(String, Value, String)>,
    /// The swept keys that become columns of the table.
    pub columns: Vec<String>,
    /// How close a figure must be to the published one, by measure.
    pub tolerances: BTreeMap<String, Tolerance>,
}

/// The length and the seeds of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// One run per seed; at least one, no two equal.
    pub seeds: Vec<u64>,
    /// Simulated time before anything is measured.
    pub warmup: Duration,
    /// Simulated time that is measured, more than zero.
    pub time: Duration,
}

/// What all runs have in common, and what is swept.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// The names of the parts that are not swept.
    pub names: BTreeMap<Part, String>,
    /// All settings of each part in use, at their defaults.
    pub defaults: BTreeMap<(Part, String), BTreeMap<String, Value>>,
    /// The settings of all runs of the experiment.
    pub set: Vec<(Part, String, Value)>,
    /// The swept keys, in the order of the file.
    pub axes: Vec<Axis>,
    /// What the lab plays in place of real kernels, by the names that they have in runs.
    pub kernels: BTreeMap<String, Modelled>,
}

/// A key that is swept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The key as written in the file: `colors`.
    pub key: String,
    /// What the key sets.
    pub target: Target,
    /// Its values: numbers ascending, names in the order of the file.
    pub values: Vec<Value>,
}

/// What a key sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Which world, machine, scheduler or workload.
    Name(Part),
    /// A setting of one of them.
    Setting(Part, String),
}

/// Something that is measured at points of the sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// Its name in rows, claims and plots.
    pub name: String,
    /// The title for people.
    pub title: String,
    /// Its unit.
    pub unit: String,
    /// The points at which it has a value in a full run, in order; all have the same keys.
    pub domain: Vec<Point>,
    /// How it is obtained.
    pub how: How,
}

/// Measures in their order, each of which has a name of its own; a scenario of many tasks has tens
/// of thousands.
#[derive(Clone, Debug, Default, derive_more::Deref)]
pub struct Measures {
    #[deref(forward)]
    list: Vec<Measure>,
    by_name: BTreeMap<String, usize>,
}

impl Measures {
    /// The measure `name`.
    pub fn find(&self, name: &str) -> Option<&Measure> {
        self.by_name.get(name).map(|index| &self.list[*index])
    }

    /// Adds a measure whose name no other has.
    pub fn push(&mut self, measure: Measure) {
        self.by_name.insert(measure.name.clone(), self.list.len());
        self.list.push(measure);
    }
}

/// How a measure is obtained.
#[derive(Clone, Debug, PartialEq)]
pub enum How {
    /// A metric of the simulator.
    Figure,
    /// A property of a histogram of the simulator.
    Histogram {
        /// Which histogram.
        of: String,
        /// The property.
        read: HistogramRead,
    },
    /// Another measure times a number, or that number over it.
    Scaled {
        /// The other measure.
        of: String,
        /// The number.
        times: f64,
        /// Keys whose numbers at the point are factors, too.
        each: Vec<String>,
        /// All these are divided by the measure.
        over: bool,
    },
    /// Another measure compared with itself at a base point, seed by seed.
    Relative {
        /// Which measure.
        of: String,
        /// The changes to a point that give its base.
        base: Point,
        /// How the two are compared.
        compare: Compare,
    },
    /// Another measure's values of all seeds at once: the same for each seed.
    OverSeeds {
        /// Which measure.
        of: String,
        /// What is taken of the values.
        take: OverSeeds,
    },
    /// A property of another measure along one key. The key is not part of the points of this
    /// measure.
    Along {
        /// Which measure.
        of: String,
        /// The key.
        key: String,
        /// The property of the values along it.
        take: Take,
    },
}

/// What is taken of the values of all seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverSeeds {
    /// Their mean.
    Mean,
    /// The greatest less the least, in percent of the mean.
    Spread,
}

/// A property of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistogramRead {
    /// The position of the tallest bin.
    PeakAt,
    /// The tallest bin's share of the whole, in percent.
    PeakShare,
    /// The tallest bin over the second tallest.
    PeakOverNext,
    /// The share of the bins from one position to another in the whole, in percent.
    Share {
        /// The first position.
        from: u64,
        /// The last position.
        to: u64,
    },
}

warmq_units::named! {
    /// How a value is compared with its base.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Compare {
        /// By how many percent it is larger (negative: smaller).
        Percent = "percent",
        /// The value divided by its base.
        Ratio = "ratio",
        /// The value minus its base, in the same unit.
        Difference = "difference",
    }
}

/// A property of the values along a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Take {
    /// The largest value.
    Largest,
    /// The smallest value.
    Smallest,
    /// The place along the key of the largest value (the first such place).
    PeakAt,
    /// The first place along the key where the change since the key's first value reaches `share`
    /// percent of the largest change.
    Needed {
        /// From 0 to 100.
        share: f64,
        /// Whether a change downwards is the desired one.
        lower_is_better: bool,
    },
}

/// A figure that the paper printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The measure.
    pub metric: String,
    /// A point of that measure.
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
    /// Its source: who says so, and where.
    pub source: String,
    /// The measures it is about; at least one.
    pub metrics: Vec<String>,
    /// The points it is about.
    pub at: Filter,
    /// How many percent of the items must pass.
    pub share: f64,
    /// Whether an item passes if the test fails.
    pub negated: bool,
    /// The test of one item.
    pub test: Test,
}

/// The kinds of tests. Depending on the kind, an item is a point, or a group of points along a key.
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
        /// The given value; `None` is the published one.
        to: Option<f64>,
        /// How near.
        within: Within,
    },
    /// Values along a key rise, fall or stay flat.
    Trend {
        /// The key.
        along: String,
        /// The direction.
        direction: Direction,
        /// The first value of the key that counts; `None`: from the start.
        from: Option<Value>,
        /// The last value of the key that counts; `None`: to the end.
        to: Option<Value>,
        /// By how many percent a single step may go the wrong way.
        slack: f64,
    },
    /// Values at several places are in order, the largest first.
    Order {
        /// The places; all have the same keys, at least two.
        places: Vec<Point>,
        /// The factor by which each exceeds the next.
        factor: f64,
    },
}

/// The tolerance of [`Test::Near`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Within {
    /// Up to this many times larger or smaller.
    Factor(f64),
    /// Up to this many percent more or less.
    Percent(f64),
    /// Up to this much more or less, in the unit of the measure.
    Points(f64),
}

warmq_units::named! {
    /// The direction of values along a key.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Direction {
        /// Up.
        Rises = "rises",
        /// Down.
        Falls = "falls",
        /// All within the slack of the largest.
        Flat = "flat",
    }
}

/// A plot, without values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlotSpec {
    /// What it shows.
    pub title: String,
    /// What a reader should see in it.
    pub caption: String,
    /// How it is drawn.
    pub kind: PlotKind,
    /// The key along the horizontal axis; for a histogram, what is along it.
    pub x: String,
    /// The scale of the horizontal axis.
    pub scale: Scale,
    /// The measure, or the histogram.
    pub y: String,
    /// The title for people.
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
        self.measures.find(name)
    }

    /// What was published of a measure at a point.
    pub(crate) fn published_at(&self, metric: &str, point: &Point) -> Option<&Published> {
        let mut all = self.published.iter();
        all.find(|published| published.metric == metric && published.point == *point)
    }

    /// The name of `point` for people: its values in the order of the sweep.
    pub fn name_of(&self, point: &Point) -> String {
        let named = |axis: &Axis| Some(format!("{} = {}", axis.key, point.0.get(&axis.key)?));
        itertools::join(self.parts.axes.iter().filter_map(named), ", ")
    }
}

impl Parts {
    /// The axis of `key`.
    pub fn axis(&self, key: &str) -> Option<&Axis> {
        self.axes.iter().find(|axis| axis.key == key)
    }

    /// The run at `point` with one of the seeds of `extent`.
    pub fn plan(&self, point: &Point, seed: u64, extent: &Extent) -> Plan {
        let [world, machine, scheduler, workload] = Part::ALL.map(|part| self.chosen(part, point));
        let Extent { warmup, time, .. } = *extent;
        let mut plan = Plan {
            world,
            machine,
            scheduler,
            workload,
            seed: Seed(seed),
            warmup,
            time,
        };
        if let Some(kernel) = self.modelled(&plan) {
            kernel.take_place(&mut plan);
        }
        plan
    }

    /// What the lab plays in place of the kernel that `plan` names.
    fn modelled(&self, plan: &Plan) -> Option<&Modelled> {
        let named = plan.world.settings.get(KERNEL);
        let named = named.filter(|_| plan.is_simulated())?;
        self.kernels.get(&named.to_string())
    }

    /// Every name of a part that is in use, without settings.
    pub(crate) fn names_of(&self, part: Part) -> Vec<&str> {
        let of_part = self.defaults.keys().filter(|(of, _)| *of == part);
        let mut names: Vec<&str> = of_part.map(|(_, name)| bare(part, name)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The parts in use whose runs give figures of their own.
    pub(crate) fn used(&self) -> Used<'_> {
        Used {
            workloads: self.names_of(Part::Workload),
            schedulers: self.names_of(Part::Scheduler),
        }
    }

    /// The name of a part at `point`.
    pub(crate) fn name_at(&self, part: Part, point: &Point) -> String {
        bare(part, &self.written_at(part, point)).to_owned()
    }

    /// The same as it is written, perhaps with settings of its own.
    pub(crate) fn written_at(&self, part: Part, point: &Point) -> String {
        let swept = self
            .axes
            .iter()
            .find(|axis| axis.target == Target::Name(part));
        match swept.and_then(|axis| point.0.get(&axis.key)) {
            Some(value) => value.to_string(),
            None => self.names.get(&part).cloned().unwrap_or_default(),
        }
    }

    fn chosen(&self, part: Part, point: &Point) -> Configured {
        let key = (part, self.written_at(part, point));
        let mut settings = self.defaults.get(&key).cloned().unwrap_or_default();
        // What only another of the worlds or schedulers of a sweep has means nothing here.
        let mut set = |setting: &String, value: &Value| {
            if let Some(known) = settings.get_mut(setting) {
                *known = value.clone();
            }
        };
        for (_, setting, value) in self.set.iter().filter(|(of, _, _)| *of == part) {
            set(setting, value);
        }
        for axis in &self.axes {
            if let (Target::Setting(of, setting), Some(value)) =
                (&axis.target, point.0.get(&axis.key))
                && *of == part
                && !is_no_value(value)
            {
                set(setting, value);
            }
        }
        Configured {
            name: bare(part, &key.1).to_owned(),
            settings,
        }
    }
}

/// The name of a part without the settings that may follow that of a scheduler.
pub(crate) fn bare(part: Part, name: &str) -> &str {
    match part {
        Part::Scheduler => with_settings(name).0,
        _ => name,
    }
}
