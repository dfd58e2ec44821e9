//! The values of a plot of lines, for the script that makes it one that can be zoomed.

use maud::{Markup, PreEscaped, html};
use serde::Serialize;

use crate::chart::{ON_DARK, color, hex};
use crate::{Axis, Kind, Origin, Plot, Scale, WriteError, X};

/// The library that draws it: uPlot, as it was published, with its licence beside it.
pub(super) const SCRIPT: [&str; 2] = [
    concat!(
        "/*\n",
        include_str!("vendor/LICENSE-uPlot"),
        "*/\n",
        include_str!("vendor/uPlot.iife.min.js")
    ),
    include_str!("zoom.js"),
];
/// What it looks like.
pub(super) const STYLE: [&str; 2] = [
    include_str!("vendor/uPlot.min.css"),
    include_str!("zoom.css"),
];

/// A plot as the script wants it.
#[derive(Serialize)]
struct Points<'p> {
    title: &'p str,
    x: String,
    y: String,
    /// The base of each axis' logarithm; 0 where it is linear.
    xlog: u8,
    log: u8,
    series: Vec<Line<'p>>,
}

#[derive(Serialize)]
struct Line<'p> {
    name: &'p str,
    origin: Origin,
    light: String,
    dark: &'static str,
    /// Place, value, low, high.
    points: Vec<[f64; 4]>,
}

/// Whether there is more in it than a look at the picture shows.
pub(super) fn is_worth_it(plot: &Plot) -> bool {
    let points = plot.series.iter().flat_map(|series| &series.points);
    let numbers = points.filter(|point| matches!(point.x, X::Number(_)));
    plot.kind == Kind::Lines && !plot.x.hexadecimal && numbers.count() >= 6
}

/// The values of `plot`, in the page.
///
/// # Errors
/// None that is known: names and numbers can be written.
pub(super) fn points(
    plot: &Plot,
    with_unit: impl Fn(&Axis) -> String,
) -> Result<Markup, WriteError> {
    let names = plot.names();
    let series = plot.series.iter().map(|series| {
        let place = names.iter().position(|name| *name == series.name);
        let color = color(place.unwrap_or(0));
        let dark = ON_DARK.iter().find(|(light, _)| *light == color);
        let points = series.points.iter().filter_map(|point| match point.x {
            X::Number(x) if point.y.is_finite() => Some([x, point.y, point.low, point.high]),
            _ => None,
        });
        Line {
            name: &series.name,
            origin: series.origin,
            light: hex(color),
            dark: dark.map_or("#aab4bf", |(_, dark)| dark),
            points: points.collect(),
        }
    });
    let points = Points {
        title: &plot.title,
        x: with_unit(&plot.x),
        y: with_unit(&plot.y),
        xlog: base(plot.x.scale),
        log: base(plot.y.scale),
        series: series.collect(),
    };
    // An element of a script ends at its end tag, wherever that is.
    let json = serde_json::to_string(&points)?.replace('<', "\\u003c");
    Ok(html! { script.points type="application/json" { (PreEscaped(json)) } })
}

fn base(scale: Scale) -> u8 {
    match scale {
        Scale::Linear => 0,
        Scale::Log2 => 2,
        Scale::Log10 => 10,
    }
}
