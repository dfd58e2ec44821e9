//! The walk as a section of a page.

use std::collections::{BTreeMap, BTreeSet};

use warmq_report::{
    Axis, Label, Origin, Parameter, Plot, PlotPoint, Point, Row, Scale, Section, Series, Verdict,
    VerticalLine, X,
};
use warmq_walk::{Known, WalkRow};

use super::{MEASURED, Walk, table};

/// How far simulated and measured may lie apart, as a share of measured.
pub const TOLERANCE: f64 = 0.25;

const ID: &str = "walk";

/// The section of `walk`, which `command` measures again.
pub fn section(walk: &Walk, command: &str) -> Section {
    Section {
        id: ID.to_owned(),
        title: "The real thing: the walk on this machine".to_owned(),
        shows: format!(
            "The walk over the run queue on this machine's own caches, vanilla and colored in turn, \
             and the same visits simulated on a description of this machine. {}",
            table::on_what(walk)
        ),
        plots: vec![plot(walk)],
        rows: rows(walk),
        columns: vec!["colors".to_owned()],
        labels: vec![Label {
            key: "colors".to_owned(),
            value: 1.into(),
            text: "vanilla".to_owned(),
        }],
        verdicts: verdicts(walk),
        parameters: parameters(walk),
        notes: notes(walk),
        command: command.to_owned(),
        ..Section::default()
    }
}

fn rows(walk: &Walk) -> Vec<Row> {
    let row = |walked: &WalkRow, figure: (&str, &str), values| {
        let WalkRow { blocks, colors, .. } = *walked;
        let point = [("blocks", blocks.into()), ("colors", colors.into())];
        Row::ours(ID, Point::new(point), figure, values)
    };
    let measured = walk.rows().map(|(walked, _)| {
        let spread = walked.ns_per_visit;
        let values = [spread.median, spread.low, spread.high];
        row(walked, ("measured_visit", "ns"), values)
    });
    let simulated = walk.rows().flat_map(|(walked, twin)| {
        let times = (twin.least.ns_per_visit, twin.most.ns_per_visit);
        let times = ends(walk, "simulated_visit", times).into_iter();
        let times = times.map(|(metric, ns)| (metric, "ns", ns));
        let ratios = ends(walk, "simulated_over_measured", twin.ratios(walked)).into_iter();
        let all = times.chain(ratios.map(|(metric, times)| (metric, "", times)));
        all.map(move |(metric, unit, value)| row(walked, (&metric, unit), [value; 3]))
    });
    measured.chain(simulated).collect()
}

/// A metric where the sets are known; where they are not, one for each end of the range.
pub fn ends<T>(walk: &Walk, metric: &str, (least, most): (T, T)) -> BTreeMap<String, T> {
    let ends = [
        (format!("{metric}_least"), least),
        (format!("{metric}_most"), most),
    ];
    match walk.sets_known() {
        true => ends
            .into_iter()
            .take(1)
            .map(|(_, least)| (metric.to_owned(), least))
            .collect(),
        false => ends.into(),
    }
}

/// Whether measured may be what was simulated, as far as that is known.
pub fn fits((least, most): (f64, f64)) -> bool {
    least <= 1.0 + TOLERANCE && most >= 1.0 - TOLERANCE
}

/// Time over blocks, a series for each number of colors, measured and simulated.
fn plot(walk: &Walk) -> Plot {
    let colors: BTreeSet<u32> = walk.report.rows.iter().map(|row| row.colors).collect();
    let mut series = Vec::new();
    for origin in [Origin::Measured, Origin::Simulated] {
        series.extend(colors.iter().map(|colors| of(walk, *colors, origin)));
    }
    Plot {
        title: "Time for a visit".to_owned(),
        x: Axis::linear("blocks", "").on(Scale::Log2),
        y: Axis::linear("time a visit", "ns"),
        series,
        markers: markers(walk, &colors),
        caption:
            "Measured: median and quartiles. Simulated: the range that is possible where the sets \
                  are unknown. The lines mark equation 3: so many blocks need no more than so many \
                  colors."
                .to_owned(),
        ..Plot::default()
    }
}

fn of(walk: &Walk, colors: u32, origin: Origin) -> Series {
    let rows = walk.rows().filter(|(row, _)| row.colors == colors);
    let mut points: Vec<(u32, PlotPoint)> = rows
        .map(|(row, twin)| {
            let (x, spread) = (X::Number(f64::from(row.blocks)), row.ns_per_visit);
            let (least, most) = (twin.least.ns_per_visit, twin.most.ns_per_visit);
            let (y, low, high) = match origin {
                Origin::Measured => (spread.median, spread.low, spread.high),
                Origin::Simulated | Origin::Published => (f64::midpoint(least, most), least, most),
            };
            (row.blocks, PlotPoint { x, y, low, high })
        })
        .collect();
    points.sort_by_key(|(blocks, _)| *blocks);
    Series {
        name: name(colors),
        origin,
        points: points.into_iter().map(|(_, point)| point).collect(),
    }
}

/// Equation 3, `c >= p / (s / block)`, solved for the blocks p that c colors suffice for; those
/// that lie within the plot.
fn markers(walk: &Walk, colors: &BTreeSet<u32>) -> Vec<VerticalLine> {
    let blocks = |colors: u32| u64::from(colors) * walk.report.facts.fit_without_colors;
    let shown = || walk.report.rows.iter().map(|row| u64::from(row.blocks));
    let (least, most) = (shown().min().unwrap_or(0), shown().max().unwrap_or(0));
    let line = |colors: &u32| VerticalLine {
        x: blocks(*colors) as f64,
        label: format!("equation 3: {}", name(*colors)),
    };
    let inside = |colors: &&u32| (least..=most).contains(&blocks(**colors));
    colors.iter().filter(inside).map(line).collect()
}

fn name(colors: u32) -> String {
    if colors == 1 {
        "vanilla".to_owned()
    } else {
        format!("{colors} colors")
    }
}

fn verdicts(walk: &Walk) -> Vec<Verdict> {
    let mut verdicts = vec![near(walk)];
    verdicts.extend(faster(walk));
    verdicts
}

/// Simulated lies near measured, in every row; where the sets are unknown, it may lie there.
fn near(walk: &Walk) -> Verdict {
    let ratios: Vec<(f64, f64)> = walk.rows().map(|(row, twin)| twin.ratios(row)).collect();
    let (leasts, mosts): (Vec<f64>, Vec<f64>) = ratios.iter().copied().unzip();
    let least = leasts.into_iter().fold(f64::INFINITY, f64::min);
    let most = mosts.into_iter().fold(0.0, f64::max);
    let off = ratios.iter().filter(|ratio| !fits(**ratio)).count();
    let statement = if walk.sets_known() {
        "A simulated visit takes as long as a measured one, within 25 %"
    } else {
        "A measured visit takes no less than one simulated with the best placement and no more than \
         with the worst, within 25 %; the cache's sets are unknown"
    };
    Verdict {
        statement: statement.to_owned(),
        holds: off == 0,
        numbers: format!(
            "simulated over measured from {least:.2} to {most:.2}; {off} of {} outside{}",
            ratios.len(),
            drift(walk)
        ),
        source: "ours".to_owned(),
    }
}

/// The levels that took another time after the walk than before, by more than is tolerated: rows
/// that they serve are then off for no reason of the walk.
fn drift(walk: &Walk) -> String {
    let levels = walk.latencies.levels.iter();
    let after = |level: u8| walk.latencies_after.level_ns(level);
    let both = levels.filter_map(|level| Some((level.level, level.ns, after(level.level)?)));
    let drifted = both.filter(|(_, before, after)| (after / before - 1.0).abs() > TOLERANCE);
    let sentences = drifted.map(|(level, before, after)| {
        format!("; level {level} took {before:.1} ns before the walk and {after:.1} ns after it")
    });
    sentences.collect()
}

/// Enough colors beat none, wherever more than one is needed. None if no row needs more than one.
fn faster(walk: &Walk) -> Option<Verdict> {
    let vanilla = |blocks: u32| {
        let mut rows = walk.report.rows.iter();
        rows.find(|row| row.blocks == blocks && row.colors == 1)
    };
    let enough = |row: &&WalkRow| row.needed_colors > 1 && row.colors >= row.needed_colors;
    let pairs: Vec<(&WalkRow, &WalkRow)> = walk
        .report
        .rows
        .iter()
        .filter(enough)
        .filter_map(|row| Some((vanilla(row.blocks)?, row)))
        .collect();
    let numbers = |(without, with): &(&WalkRow, &WalkRow)| {
        let (without, ns) = (without.ns_per_visit.median, with.ns_per_visit.median);
        let times = without / ns;
        format!(
            "{} blocks: {without:.1} to {ns:.1} ns with {} colors ({times:.1} times)",
            with.blocks, with.colors
        )
    };
    let holds =
        |(without, with): &(&WalkRow, &WalkRow)| with.ns_per_visit.high < without.ns_per_visit.low;
    (!pairs.is_empty()).then(|| Verdict {
        statement: "As many colors as equation 3 asks for make every visit faster".to_owned(),
        holds: pairs.iter().all(holds),
        numbers: itertools::join(pairs.iter().map(numbers), "; "),
        source: "equation 3".to_owned(),
    })
}

fn parameters(walk: &Walk) -> Vec<Parameter> {
    let parameter = |name: &str, value: String, unit: &str, source: &str| Parameter {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
        source: source.to_owned(),
    };
    let facts = &walk.report.facts;
    let level = |latency: &warmq_walk::LevelLatency| {
        let name = format!("cache.l{}.latency", latency.level);
        parameter(&name, format!("{:.2}", latency.ns), "ns", MEASURED)
    };
    let mut parameters: Vec<Parameter> = walk.latencies.levels.iter().map(level).collect();
    if let Some(ns) = walk.latencies.memory_ns {
        let latency = format!("{ns:.1}");
        parameters.push(parameter("memory.latency", latency, "ns", MEASURED));
    }
    let (cache, seen) = (facts.cache, "/sys of this machine");
    let shape = format!(
        "{}, {} ways, lines of {}",
        cache.size, cache.ways, cache.line
    );
    let level = format!("cache.l{}", cache.level);
    parameters.push(parameter(&level, shape, "", seen));
    let sets = &facts.sets;
    let (by, found) = match sets.by {
        Known::Unknown => ("not found", "unknown".to_owned()),
        Known::Offset => ("a way is no larger than a page", sets.sets.to_string()),
        Known::Timing => ("found here: which lines evict which", sets.sets.to_string()),
    };
    parameters.push(parameter("sets", found, "", by));
    let given = "this command's options";
    let options = [
        ("block_size", facts.block_size.to_string()),
        ("lines", facts.lines.to_string()),
        ("seed", facts.seed.to_string()),
    ];
    parameters.extend(options.map(|(name, value)| parameter(name, value, "", given)));
    parameters
}

fn notes(walk: &Walk) -> Vec<String> {
    let disturbed: u32 = walk.report.rows.iter().map(|row| row.disturbed).sum();
    let measurements: u32 = walk.report.rows.iter().map(|row| row.repetitions).sum();
    let mut notes = vec![
        "Measured on whatever machine made this page: the figures differ from one to the next."
            .to_owned(),
    ];
    if disturbed > 0 {
        notes.push(format!(
            "During {disturbed} of {measurements} measurements another task had the CPU."
        ));
    }
    notes
}
