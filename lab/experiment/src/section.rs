//! An outcome as a section of a report: rows, claims, plots, parameters.

use std::collections::{BTreeMap, BTreeSet};

use warmq_report::{
    Axis, Digest, Kind, Label, Origin, Parameter, Plot, PlotPoint, Row, Section, Series, Verdict, X,
};

use crate::experiment::{Experiment, PlotSpec};
use crate::judge::Finding;
use crate::outcome::{Outcome, shown_value};
use crate::plan::{LAB, Part, Plan};
use crate::point::Point;
use crate::run::{Options, Runs};
use crate::simulator::{Measured, MetricDescription, Simulator, Used};
use warmq_config::Value;

impl Experiment {
    /// The section of a report that shows `outcome`; `command` reproduces it.
    pub fn section(
        &self,
        options: &Options,
        runs: &Runs,
        outcome: &Outcome,
        command: &str,
    ) -> Section {
        let mut plots: Vec<Plot> = Vec::new();
        for spec in &self.plots {
            let series = match spec.kind {
                Kind::Histogram => self.histogram(spec, options, runs),
                Kind::Lines | Kind::Bars | Kind::Points => self.series(spec, outcome),
            };
            plots.push(plot(spec, series));
        }
        plots.retain(|plot| plot.series.iter().any(|series| !series.points.is_empty()));
        Section {
            shows: self.about.clone(),
            plots,
            rows: outcome.rows.clone(),
            columns: self.columns.clone(),
            labels: self.labels.iter().map(label).collect(),
            tolerances: self.tolerances.clone(),
            verdicts: verdicts(outcome),
            parameters: parameters(outcome),
            notes: self.notes.iter().cloned().chain(remarks(outcome)).collect(),
            command: command.to_owned(),
            digests: vec![Digest {
                of: "all runs".to_owned(),
                value: outcome.digest.clone(),
            }],
            profiles: self.profiles(options, runs),
            ..self.empty_section()
        }
    }

    /// A section with all figures of the run of `plan` at `point`.
    pub fn section_of(
        &self,
        simulator: &dyn Simulator,
        (point, plan): (&Point, &Plan),
        measured: &Measured,
    ) -> Section {
        let metrics = simulator.metrics(&Used {
            workloads: vec![plan.workload.name.as_str()],
            schedulers: vec![plan.scheduler.name.as_str()],
        });
        let place = self.shown_point(point);
        let row = |metric: MetricDescription| {
            let value = *measured.figures.get(&metric.name)?;
            let figure = (metric.name.as_str(), metric.unit.as_str());
            Some(Row::ours(&self.id, place.clone(), figure, [value; 3]))
        };
        Section {
            rows: metrics.into_iter().filter_map(row).collect(),
            notes: measured.notes.clone(),
            ..self.empty_section()
        }
    }

    /// A section that says what it is about, and no more.
    fn empty_section(&self) -> Section {
        Section {
            id: self.id.clone(),
            title: self.title.clone(),
            paper: self.figure.clone(),
            together: self.everything,
            asked_for: self.asked_for(),
            ..Section::default()
        }
    }

    /// The metrics that it draws or shows: they are shown even where they are 0.
    pub fn asked_for(&self) -> BTreeSet<String> {
        let drawn = self.plots.iter().map(|plot| &plot.y);
        drawn.chain(&self.shown).cloned().collect()
    }

    /// Simulated and published values over the key `x`: one series for each combination of values
    /// of the plot's other keys.
    fn series(&self, spec: &PlotSpec, outcome: &Outcome) -> Vec<Series> {
        let Some(measure) = self.measure(&spec.y) else {
            return Vec::new();
        };
        let mut series = Vec::new();
        for point in measure.domain.iter().filter(|point| spec.at.matches(point)) {
            let Some(x) = point.0.get(&spec.x).map(|value| self.place(spec, value)) else {
                continue;
            };
            let name = self.series_name(spec, point);
            if let Some(figure) = outcome.figures.at(&spec.y, point) {
                let drawn = PlotPoint {
                    x: x.clone(),
                    y: figure.value,
                    low: figure.low,
                    high: figure.high,
                };
                let origin = match self.parts.name_at(Part::World, point) == LAB {
                    true => Origin::Simulated,
                    false => Origin::Measured,
                };
                // Nothing is no bar.
                if drawn.y.is_finite() || !self.everything {
                    add(&mut series, &name, origin, drawn);
                }
            }
            if let Some(figure) = self.published_at(&spec.y, point) {
                let drawn = PlotPoint::exact(x, figure.value);
                add(&mut series, &name, Origin::Published, drawn);
            }
        }
        let order = [Origin::Simulated, Origin::Measured, Origin::Published];
        series.sort_by_key(|one| order.iter().position(|origin| *origin == one.origin));
        series
    }

    fn place(&self, spec: &PlotSpec, value: &Value) -> X {
        match value {
            Value::Integer(count) => X::Number(*count as f64),
            _ => X::Category(self.word(&spec.x, value)),
        }
    }

    /// The name of a series: the values of its keys at `point`.
    fn series_name(&self, spec: &PlotSpec, point: &Point) -> String {
        let word = |key: &String| point.0.get(key).map(|value| self.word(key, value));
        let words: Vec<String> = spec.series.iter().filter_map(word).collect();
        match words.as_slice() {
            [] => spec.label.clone(),
            _ => words.join(", "),
        }
    }

    fn word(&self, key: &str, value: &Value) -> String {
        let mut labels = self.labels.iter();
        let label = labels.find(|(of, known, _)| of == key && known == value);
        match (label, value) {
            (Some((_, _, text)), _) => text.clone(),
            (None, Value::Integer(count)) => format!("{count} {key}"),
            (None, Value::Bool(flag)) => format!("{key}: {}", if *flag { "yes" } else { "no" }),
            (None, _) => value.to_string(),
        }
    }

    /// The histogram of the first seed at every point of the plot.
    fn histogram(&self, spec: &PlotSpec, options: &Options, runs: &Runs) -> Vec<Series> {
        let extent = self.extent(options);
        let mut series = Vec::new();
        for point in self
            .points_of(options)
            .into_iter()
            .filter(|point| spec.at.matches(point))
        {
            let plan = self.parts.plan(point, extent.seeds[0], &extent);
            let bins = runs
                .measured(&plan)
                .and_then(|measured| measured.histograms.get(&spec.y));
            let Some(bins) = bins else { continue };
            let points = bins
                .iter()
                .map(|(x, y)| PlotPoint::exact(X::Number(*x), *y))
                .collect();
            let name = self.series_name(spec, point);
            series.push(Series {
                name,
                origin: Origin::Simulated,
                points,
            });
        }
        series
    }
}

fn plot(spec: &PlotSpec, series: Vec<Series>) -> Plot {
    let offsets = spec.kind == Kind::Histogram;
    Plot {
        title: spec.title.clone(),
        x: Axis {
            hexadecimal: offsets,
            ..Axis::linear(spec.x.as_str(), "").on(spec.scale)
        },
        y: Axis::linear(spec.label.as_str(), spec.unit.as_str()),
        kind: spec.kind,
        series,
        markers: spec.markers.clone(),
        caption: spec.caption.clone(),
    }
}

fn add(series: &mut Vec<Series>, name: &str, origin: Origin, point: PlotPoint) {
    let mut known = series.iter_mut();
    match known.find(|other| other.name == name && other.origin == origin) {
        Some(series) => series.points.push(point),
        None => series.push(Series {
            name: name.to_owned(),
            origin,
            points: vec![point],
        }),
    }
}

fn label((key, value, text): &(String, Value, String)) -> Label {
    Label {
        key: key.clone(),
        value: shown_value(value),
        text: text.clone(),
    }
}

fn verdicts(outcome: &Outcome) -> Vec<Verdict> {
    let claims = outcome.claims.iter();
    let checked = claims.filter(|claim| claim.finding != Finding::NotChecked);
    let verdict = |judged: &crate::judge::Judged| Verdict {
        statement: judged.says.clone(),
        holds: judged.finding == Finding::Holds,
        numbers: judged.numbers.clone(),
        source: judged.source.clone(),
    };
    checked.map(verdict).collect()
}

/// Remarks on claims that were not checked and runs that failed.
fn remarks(outcome: &Outcome) -> Vec<String> {
    let claims = outcome.claims.iter();
    let unchecked = claims.filter(|claim| claim.finding == Finding::NotChecked);
    let mut remarks: Vec<String> = unchecked
        .map(|claim| format!("Not checked, as its points were not run: {}", claim.says))
        .collect();
    for (failure, names) in outcome.failures_by_reason() {
        remarks.push(format!("No measurement from {names}: {}", failure.error));
    }
    remarks.extend(outcome.notes.iter().cloned());
    remarks
}

/// Each parameter once, with all its values if a sweep changes it.
fn parameters(outcome: &Outcome) -> Vec<Parameter> {
    let mut values: BTreeMap<(&str, &str, &str), BTreeSet<&str>> = BTreeMap::new();
    for parameter in &outcome.parameters {
        values
            .entry((&parameter.name, &parameter.unit, &parameter.source))
            .or_default()
            .insert(&parameter.value);
    }
    let joined = |((name, unit, source), values): ((&str, &str, &str), BTreeSet<&str>)| Parameter {
        name: name.to_owned(),
        value: itertools::join(values, ", "),
        unit: unit.to_owned(),
        source: source.to_owned(),
    };
    values.into_iter().map(joined).collect()
}
