//! What stands under the cursor: a vertical line for each place, with every series' value there.

use maud::{Render, html};

use crate::chart::canvas::Canvas;
use crate::chart::layout::{Layout, word};
use crate::pivot::distinct;
use crate::{Axis, Plot, PlotPoint, X, number};

/// One hidden line a place; the page's script shows the nearest one and its words.
pub(crate) fn lines(layout: &Layout, canvas: &Canvas) -> String {
    let (_, top, _, bottom) = canvas.bounds();
    let places = places(layout.plot);
    let marks = places.iter().map(|x| {
        let (at, _) = canvas.spot(layout.x(x), layout.up.low);
        html! { line x1=(at) x2=(at) y1=(top) y2=(bottom) data-tip=(words(layout.plot, x)) {} }
    });
    html! { g class="cursor" { @for mark in marks { (mark) } } }
        .render()
        .into_string()
}

/// The distinct places along the horizontal axis, in order of appearance.
fn places(plot: &Plot) -> Vec<&X> {
    let points = plot.series.iter().flat_map(|series| &series.points);
    distinct(points.map(|point| &point.x))
}

/// The place, then a line a series that has a value there.
fn words(plot: &Plot, x: &X) -> String {
    let mut words = format!("{}: {}", plot.x.label, word(x, plot.x.hexadecimal));
    for series in &plot.series {
        for point in series.points.iter().filter(|point| point.x == *x) {
            let (name, origin) = (&series.name, series.origin.name());
            words.push_str(&format!(
                "\n{name}, {origin}: {}",
                value_words(&plot.y, point)
            ));
        }
    }
    words
}

/// `98.0 % (97.2 to 98.4)`.
fn value_words(axis: &Axis, point: &PlotPoint) -> String {
    let number = |value| number::ours(value, &axis.unit);
    let unit = if axis.unit.is_empty() {
        String::new()
    } else {
        format!(" {}", axis.unit)
    };
    if point.has_interval() {
        format!(
            "{}{unit} ({} to {})",
            number(point.y),
            number(point.low),
            number(point.high)
        )
    } else {
        format!("{}{unit}", number(point.y))
    }
}
