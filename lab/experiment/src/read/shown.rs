//! The presentation: `[[plot]]`, `[labels]`, `columns`, `shown`, `[tolerance]`.

use warmq_config::{Fields, Item};
use warmq_report::{Kind as PlotKind, Scale, Tolerance, VerticalLine};

use super::measures::{axis_of, histogram_named, readable};
use super::published::{measure_of, measured};
use crate::experiment::{Experiment, Measure, PlotSpec};
use crate::plan::Part;
use crate::point::Filter;
use crate::simulator::Simulator;

pub(super) fn read(fields: &Fields, simulator: &dyn Simulator, experiment: &mut Experiment) {
    for table in fields.tables("plot") {
        let plot = plot(&table, simulator, experiment);
        table.finish();
        experiment.plots.extend(plot);
    }
    if let Some(table) = fields.table("labels") {
        labels(&table, experiment);
    }
    if let Some(item) = fields.item("columns") {
        let known = |item: &Item| key_of(item, experiment);
        experiment.columns = item.one_or_more().iter().filter_map(known).collect();
    }
    if let Some(item) = fields.item("shown") {
        let measured = |item: &Item| Some(measure_of(item, experiment)?.name.clone());
        experiment.shown = item.one_or_more().iter().filter_map(measured).collect();
    }
    if let Some(table) = fields.table("tolerance") {
        tolerances(&table, experiment);
    }
}

fn plot(table: &Fields, simulator: &dyn Simulator, experiment: &Experiment) -> Option<PlotSpec> {
    let kinds = [
        ("lines", PlotKind::Lines),
        ("bars", PlotKind::Bars),
        ("histogram", PlotKind::Histogram),
    ];
    let scales = [
        ("linear", Scale::Linear),
        ("log2", Scale::Log2),
        ("log10", Scale::Log10),
    ];
    let kind = table.choice("kind", &kinds).unwrap_or_default();
    let at = table.or("at", Filter::default(), |item| {
        experiment.parts.filter(item)
    });
    let scale = table.choice("scale", &scales).unwrap_or_default();
    let series = table
        .item("series")
        .map(|item| item.one_or_more())
        .unwrap_or_default();
    let series = series
        .iter()
        .filter_map(|item| key_of(item, experiment))
        .collect();
    let markers = table.tables("marker").iter().filter_map(marker).collect();
    let (title, caption) = (table.line("title"), table.line("caption"));
    let x = table.item("x");
    let y = table.required("y", "name the measure or histogram to draw")?;
    let drawn = match kind {
        PlotKind::Histogram => histogram_of(&y, simulator, experiment)?,
        _ => drawn_over(table, x, &y, experiment)?,
    };
    let Drawn { x, y, label, unit } = drawn;
    let title = title.unwrap_or_else(|| label.clone());
    let caption = caption.unwrap_or_default();
    Some(PlotSpec {
        title,
        caption,
        kind,
        x,
        scale,
        y,
        label,
        unit,
        series,
        at: at?,
        markers,
    })
}

/// A measure for each world.
pub(super) fn bars(measure: &Measure, series: &[String]) -> PlotSpec {
    PlotSpec {
        title: measure.title.clone(),
        kind: PlotKind::Bars,
        x: Part::World.key().to_owned(),
        y: measure.name.clone(),
        label: measure.title.clone(),
        unit: measure.unit.clone(),
        series: series.to_vec(),
        ..PlotSpec::default()
    }
}

/// What the axes of a plot show.
struct Drawn {
    x: String,
    y: String,
    label: String,
    unit: String,
}

fn drawn_over(table: &Fields, x: Option<Item>, y: &Item, experiment: &Experiment) -> Option<Drawn> {
    let Measure {
        name, title, unit, ..
    } = measure_of(y, experiment)?;
    let Some(x) = x else {
        table.report("`x` is missing", "name the swept key along the axis");
        return None;
    };
    let axis = axis_of(&x, &experiment.parts.axes, experiment.measure(name)?)?;
    let (label, unit) = (title.clone(), unit.clone());
    Some(Drawn {
        x: axis.key.clone(),
        y: name.clone(),
        label,
        unit,
    })
}

fn histogram_of(item: &Item, simulator: &dyn Simulator, experiment: &Experiment) -> Option<Drawn> {
    let histogram = histogram_named(item, simulator, experiment)?;
    Some(Drawn {
        x: histogram.along,
        label: readable(&histogram.name),
        y: histogram.name,
        unit: histogram.unit,
    })
}

fn marker(table: &Fields) -> Option<VerticalLine> {
    let x = table.required("x", "give the place of the line");
    let label = table.required("label", "name in a word what it marks");
    table.finish();
    Some(VerticalLine {
        x: x?.number()?,
        label: label?.text()?,
    })
}

/// A key of the sweep.
fn key_of(item: &Item, experiment: &Experiment) -> Option<String> {
    let axis = experiment.parts.swept(&item.text()?, item)?;
    Some(axis.key.clone())
}

/// `[labels.colors]` with `1 = "vanilla"`: a key of TOML is a text, whatever the value is.
fn labels(table: &Fields, experiment: &mut Experiment) {
    for (entry, item) in table.entries() {
        let Some(axis) = experiment.parts.swept(&entry.key, &item) else {
            continue;
        };
        let Some(names) = item.table() else { continue };
        let mut read = Vec::new();
        for (name, text) in names.entries() {
            let value = axis.values.iter().find(|value| value.is_written(&name.key));
            match (value, text.text()) {
                (Some(value), Some(text)) => read.push((axis.key.clone(), value.clone(), text)),
                (None, _) => text.report(format!("{} = {} is not swept", axis.key, name.key), ""),
                _ => {}
            }
        }
        experiment.labels.extend(read);
    }
}

fn tolerances(table: &Fields, experiment: &mut Experiment) {
    for (entry, item) in table.entries() {
        if measured(&entry.key, &item, experiment).is_none() {
            continue;
        }
        let Some(inner) = item.table() else { continue };
        let (factor, points) = (inner.number("factor"), inner.number("points"));
        inner.finish();
        let tolerance = match (factor, points) {
            (Some(factor), None) if factor > 1.0 => Tolerance::Factor(factor),
            (None, Some(points)) if points > 0.0 => Tolerance::Difference(points),
            _ => {
                let help = "write { factor = 1.5 } (above 1) or { points = 10 } (above 0)";
                item.report("this is not a tolerance", help);
                continue;
            }
        };
        experiment.tolerances.insert(entry.key.clone(), tolerance);
    }
}
