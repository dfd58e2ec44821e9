//! A plot with its title, its legend and its caption.

use maud::{Markup, PreEscaped, html};

use super::zoom;
use crate::chart::{FINE, NARROW, WIDE, color, draw, hex, outline};
use crate::{Axis, Kind, Origin, Plot, WriteError};

/// A plot on the page; `half` where it may stand beside another.
pub(crate) fn figure(plot: &Plot, half: bool) -> Result<Markup, WriteError> {
    let alt = alt(plot);
    let picture = |frame, class: &str| -> Result<Markup, WriteError> {
        let content = draw(plot, frame)?;
        let (width, height) = (frame.width * FINE as u32, frame.height * FINE as u32);
        Ok(html! {
            svg class=(class) viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(alt) {
                (PreEscaped(content))
            }
        })
    };
    let (wide, narrow) = (picture(WIDE, "wide")?, picture(NARROW, "narrow")?);
    let points = zoom::is_worth_it(plot).then(|| zoom::points(plot, with_unit));
    let points = points.transpose()?;
    let class = if half && plot.kind != Kind::Histogram {
        "half"
    } else {
        "full"
    };
    Ok(html! {
        figure class=(class) {
            p.title { (plot.title) }
            (legend(plot))
            p.axis { (with_unit(&plot.y)) }
            div.sheet { (wide) (narrow) div.tip hidden {} }
            p.axis.across { (with_unit(&plot.x)) }
            @if !plot.caption.is_empty() { figcaption { (plot.caption) } }
            @if let Some(points) = &points { (points) }
        }
    })
}

fn with_unit(axis: &Axis) -> String {
    if axis.unit.is_empty() {
        axis.label.clone()
    } else {
        format!("{}, {}", axis.label, axis.unit)
    }
}

/// What is said to those who cannot see the plot.
fn alt(plot: &Plot) -> String {
    let series = plot
        .series
        .iter()
        .map(|series| format!("{} ({})", series.name, series.origin.name()));
    let series = itertools::join(series, ", ");
    let (y, x) = (with_unit(&plot.y), with_unit(&plot.x));
    format!(
        "Plot. {}. {y} over {x}, for {series}. {}",
        plot.title, plot.caption
    )
}

/// A swatch a name and origin, then what the ways of drawing mean.
fn legend(plot: &Plot) -> Markup {
    let names = plot.names();
    let origins = |name: &str| {
        let mut origins: Vec<Origin> = plot
            .series
            .iter()
            .filter(|series| series.name == name)
            .map(|series| series.origin)
            .collect();
        origins.sort();
        origins
    };
    html! {
        ul.legend {
            @for (index, name) in names.iter().enumerate() {
                li {
                    @for origin in origins(name) { (swatch(plot.kind, origin, index)) }
                    (name)
                }
            }
            @for origin in [Origin::Simulated, Origin::Published, Origin::Measured] {
                @if let Some(words) = meaning(plot, origin) { li.meaning { (words) } }
            }
        }
    }
}

/// How an origin is drawn in this plot, in words; none where no series has it.
fn meaning(plot: &Plot, origin: Origin) -> Option<&'static str> {
    let series = || plot.series.iter().filter(|series| series.origin == origin);
    series().next()?;
    let intervals = series().any(|series| series.points.iter().any(|point| point.has_interval()));
    Some(match (origin, plot.kind, intervals) {
        (Origin::Published, _, _) => "hollow: published",
        (Origin::Simulated, Kind::Lines, true) => "line and band: simulated, range over seeds",
        (Origin::Simulated, Kind::Lines, false) => "line: simulated",
        (Origin::Simulated, Kind::Bars, true) => "bar and whisker: simulated, range over seeds",
        (Origin::Simulated, Kind::Bars | Kind::Histogram, _) => "bar: simulated",
        (_, Kind::Points, _) => return None,
        (Origin::Measured, Kind::Lines, true) => "dashes and whiskers: measured, with its spread",
        (Origin::Measured, Kind::Lines, false) => "dashes: measured",
        (Origin::Measured, Kind::Bars | Kind::Histogram, _) => "pale bar: measured",
    })
}

/// A small picture of how a name is drawn: 30 by 14 pixels, or 14 square without a line.
fn swatch(kind: Kind, origin: Origin, name: usize) -> Markup {
    let color = hex(color(name));
    let boxed = origin == Origin::Published || kind != Kind::Lines;
    let view = if boxed { "80 0 140 140" } else { "0 0 300 140" };
    let shape = |size: f64| {
        let corners = outline(name, size).into_iter();
        corners
            .map(|(x, y)| format!("{},{} ", x + 150, y + 70))
            .collect::<String>()
    };
    html! {
        svg class=(if boxed { "swatch boxed" } else { "swatch" }) viewBox=(view) aria-hidden="true" {
            @match (origin, kind) {
                (_, Kind::Points) => polygon points=(shape(52.0)) fill=(color) {},
                (Origin::Published, _) => {
                    polygon points=(shape(52.0)) fill="#FEFEFE" stroke=(color) stroke-width="20" {}
                }
                (Origin::Simulated, Kind::Lines) => {
                    rect x="0" y="25" width="300" height="90" fill=(color) opacity="0.18" {}
                    line x1="0" x2="300" y1="70" y2="70" stroke=(color) stroke-width="22" {}
                    polygon points=(shape(32.0)) fill=(color) {}
                }
                (Origin::Measured, Kind::Lines) => {
                    line x1="0" x2="300" y1="70" y2="70" stroke=(color) stroke-width="20"
                        stroke-dasharray="60 40" {}
                    polygon points=(shape(42.0)) fill=(color) {}
                }
                (Origin::Measured, _) => {
                    rect x="90" y="15" width="120" height="110" fill=(color) fill-opacity="0.3"
                        stroke=(color) stroke-width="15" {}
                }
                (Origin::Simulated, _) => {
                    rect x="90" y="10" width="120" height="120" fill=(color) opacity="0.85" {}
                }
            }
        }
    }
}
