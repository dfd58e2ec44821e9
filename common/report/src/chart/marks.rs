//! The series of a plot: lines with bands, bars with whiskers, histograms.

use crate::chart::canvas::{Canvas, Drawn, Spot};
use crate::chart::layout::Layout;
use crate::chart::palette::{MARK, series as color};
use crate::{Kind, Origin, PlotPoint, Series};

/// Radius of a published marker, in tenths of a pixel.
const HOLLOW: f64 = 55.0;
/// Radius of a marker of ours.
const FILLED: f64 = 32.0;
/// Half the width of a whisker's end.
const WHISKER: i32 = 40;
/// The share of a category's width that its bars fill.
const GROUP: f64 = 0.72;

/// Draws all series. Published figures come last, so that nothing covers them.
pub(crate) fn draw(layout: &Layout, canvas: &Canvas) -> Drawn {
    let by_origin = |published: bool| {
        let all = layout.plot.series.iter();
        all.filter(move |series| (series.origin == Origin::Published) == published)
    };
    if layout.plot.kind == Kind::Lines {
        for series in by_origin(false) {
            band(layout, canvas, series)?;
        }
    }
    let mut own: Vec<&Series> = by_origin(false).collect();
    if layout.plot.kind == Kind::Points {
        own.reverse(); // what is named first is covered by nothing
    }
    for series in own {
        match layout.plot.kind {
            Kind::Lines | Kind::Points => line(layout, canvas, series)?,
            Kind::Bars => bars(layout, canvas, series)?,
            Kind::Histogram => histogram(layout, canvas, series)?,
        }
    }
    by_origin(true).try_for_each(|series| published(layout, canvas, series))
}

/// The interval over the seeds, behind the lines.
fn band(layout: &Layout, canvas: &Canvas, series: &Series) -> Drawn {
    if series.origin != Origin::Simulated || !series.points.iter().any(PlotPoint::has_interval) {
        return Ok(());
    }
    for run in runs(layout, &series.points) {
        let edge = |point: &PlotPoint, pick: fn(&PlotPoint) -> f64| -> Option<Spot> {
            Some(canvas.spot(layout.x(&point.x), layout.y(pick(point))?))
        };
        let high = run
            .iter()
            .filter_map(|point| edge(point, |point| point.high));
        let low = run
            .iter()
            .rev()
            .filter_map(|point| edge(point, |point| point.low));
        let around: Vec<Spot> = high.chain(low).collect();
        canvas.area(&around, color(layout.name(series)), 0.18)?;
    }
    Ok(())
}

fn line(layout: &Layout, canvas: &Canvas, series: &Series) -> Drawn {
    let name = layout.name(series);
    let measured = series.origin == Origin::Measured;
    let alone = layout.plot.kind == Kind::Points;
    for run in runs(layout, &series.points) {
        let spots = run.iter().filter_map(|point| spot(layout, canvas, point));
        let spots: Vec<Spot> = spots.collect();
        if measured {
            canvas.dashes(&spots, color(name), 20)?;
        } else if !alone {
            canvas.line(&spots, color(name), 22)?;
        }
        for (point, at) in run.iter().zip(&spots) {
            if measured {
                whisker(layout, canvas, point, at.0, name)?;
            }
            let size = if measured || alone { 1.3 } else { 1.0 };
            canvas.marker(*at, name, FILLED * size)?;
        }
    }
    Ok(())
}

fn bars(layout: &Layout, canvas: &Canvas, series: &Series) -> Drawn {
    let name = layout.name(series);
    let base = layout.up.place(0.0);
    for point in &series.points {
        let Some(y) = layout.y(point.y) else { continue };
        let (left, right) = slot(layout, series, point);
        let corners = ordered(canvas.spot(left, y), canvas.spot(right, base));
        if series.origin == Origin::Measured {
            canvas.bar(corners, color(name), 0.3)?;
            let [(left, top), (right, bottom)] = corners;
            canvas.line(
                &[(left, bottom), (left, top), (right, top), (right, bottom)],
                color(name),
                15,
            )?;
        } else {
            canvas.bar(corners, color(name), 0.85)?;
        }
        whisker(
            layout,
            canvas,
            point,
            i32::midpoint(corners[0].0, corners[1].0),
            name,
        )?;
    }
    Ok(())
}

fn histogram(layout: &Layout, canvas: &Canvas, series: &Series) -> Drawn {
    let name = layout.name(series);
    let half = layout.bin(&series.points) / 2.0;
    let base = layout.up.place(0.0);
    for point in &series.points {
        let Some(y) = layout.y(point.y).filter(|y| *y != base) else {
            continue;
        };
        let x = layout.x(&point.x);
        let corners = ordered(canvas.spot(x - half, y), canvas.spot(x + half, base));
        canvas.bar(
            corners,
            color(name),
            if layout.names.len() > 1 { 0.7 } else { 0.9 },
        )?;
    }
    Ok(())
}

fn published(layout: &Layout, canvas: &Canvas, series: &Series) -> Drawn {
    let name = layout.name(series);
    for point in &series.points {
        let Some(y) = layout.y(point.y) else { continue };
        let x = if layout.plot.kind == Kind::Bars {
            let (left, right) = slot(layout, series, point);
            f64::midpoint(left, right)
        } else {
            layout.x(&point.x)
        };
        let at = canvas.spot(x, y);
        if point.has_interval() {
            whisker(layout, canvas, point, at.0, name)?;
        }
        canvas.hollow_marker(at, name, HOLLOW)?;
    }
    Ok(())
}

/// A line from low to high with an end at both.
fn whisker(layout: &Layout, canvas: &Canvas, point: &PlotPoint, x: i32, name: usize) -> Drawn {
    let ends = layout
        .y(point.low)
        .zip(layout.y(point.high))
        .filter(|_| point.has_interval());
    let Some((low, high)) = ends else {
        return Ok(());
    };
    let height = |y: f64| canvas.spot(0.0, y).1;
    let (low, high) = (height(low), height(high));
    let color = if layout.plot.kind == Kind::Bars {
        MARK
    } else {
        color(name)
    };
    canvas.line(&[(x, low), (x, high)], color, 13)?;
    for y in [low, high] {
        canvas.line(&[(x - WHISKER, y), (x + WHISKER, y)], color, 13)?;
    }
    Ok(())
}

/// The left and right side of a bar, as places.
fn slot(layout: &Layout, series: &Series, point: &PlotPoint) -> (f64, f64) {
    let (index, count) = layout.slot(series);
    let width = (GROUP / count as f64).min(0.4);
    let start = layout.x(&point.x) - width * count as f64 / 2.0;
    let left = start + width * index as f64;
    (left + width * 0.05, left + width * 0.95)
}

/// The points between gaps.
fn runs<'a>(layout: &Layout, points: &'a [PlotPoint]) -> impl Iterator<Item = &'a [PlotPoint]> {
    points
        .split(|point| layout.y(point.y).is_none())
        .filter(|run| !run.is_empty())
}

fn spot(layout: &Layout, canvas: &Canvas, point: &PlotPoint) -> Option<Spot> {
    Some(canvas.spot(layout.x(&point.x), layout.y(point.y)?))
}

/// Upper left, then lower right, as SVG needs them.
fn ordered(a: Spot, b: Spot) -> [Spot; 2] {
    [(a.0.min(b.0), a.1.min(b.1)), (a.0.max(b.0), a.1.max(b.1))]
}
