//! The sheet a plot is drawn on: axes, grid, vertical lines, then the series.

use plotters::chart::ChartContext;
use plotters::coord::Shift;
use plotters::element::{DashedPathElement, Drawable, PointCollection};
use plotters::prelude::{
    Cartesian2d, ChartBuilder, DrawingArea, IntoDrawingArea, PathElement, Polygon, Rectangle,
    SVGBackend, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, RGBColor, ShapeStyle};

use crate::chart::layout::{Frame, Layout};
use crate::chart::palette::{AXIS, GRID, MARK, PANEL, TEXT, outline, series};
use crate::chart::ruler::Ruler;
use crate::chart::{FINE, cursor, marks};

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Ruler, Ruler>>;

/// Drawing in tenths of a pixel, with places of the axes turned into them.
pub(crate) struct Canvas<'a, 'b> {
    root: &'a DrawingArea<SVGBackend<'b>, Shift>,
    chart: Chart<'a, 'b>,
}

/// A point of the sheet.
pub(crate) type Spot = (i32, i32);

/// What the library says when it cannot draw.
pub(crate) type Drawn = Result<(), String>;

/// Draws the whole plot: the content of its `<svg>`.
pub(crate) fn draw(layout: &Layout, frame: Frame) -> Result<String, String> {
    let mut svg = String::new();
    let cursor = {
        let size = (frame.width * FINE as u32, frame.height * FINE as u32);
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let rows = label_rows(layout, frame);
        let chart = axes(
            layout,
            frame,
            &root,
            rows.iter().max().map_or(0, |row| row + 1),
        )?;
        let canvas = Canvas { root: &root, chart };
        let cursor = cursor::lines(layout, &canvas);
        canvas.vertical_lines(layout, frame, &rows)?;
        marks::draw(layout, &canvas)?;
        root.present().map_err(|error| error.to_string())?;
        cursor
    };
    let content = svg.split_once('>').map_or("", |(_, rest)| rest);
    let content = content.trim_end().strip_suffix("</svg>").unwrap_or(content);
    Ok(format!("{content}{cursor}"))
}

/// The grid, the axes and their words; room above the plot for `label_rows` rows of labels.
fn axes<'a, 'b>(
    layout: &Layout,
    frame: Frame,
    root: &'a DrawingArea<SVGBackend<'b>, Shift>,
    label_rows: u32,
) -> Result<Chart<'a, 'b>, String> {
    let fine = |pixels: u32| pixels * FINE as u32;
    let across = layout.across.ruler();
    let up = layout.up.ruler();
    let widest = up
        .ticks
        .iter()
        .map(|(_, word)| word.chars().count())
        .max()
        .unwrap_or(0) as u32;
    let ticks = (across.ticks.len(), up.ticks.len());
    let mut chart = ChartBuilder::on(root)
        .margin_top(fine(10 + label_rows * (frame.font + 5)))
        .margin_right(fine(14))
        .x_label_area_size(fine(frame.font + 12))
        .y_label_area_size(fine(widest * frame.font * 6 / 10 + 14))
        .build_cartesian_2d(across, up)
        .map_err(|error| error.to_string())?;
    // Sizes of fonts are divided by 1.24 when SVG is written.
    let font = ("sans-serif", f64::from(fine(frame.font)) * 1.24)
        .into_font()
        .color(&TEXT);
    chart
        .configure_mesh()
        .bold_line_style(GRID.stroke_width(fine(1)))
        .light_line_style(PANEL.mix(0.0))
        .axis_style(AXIS.stroke_width(fine(1)))
        .disable_x_mesh()
        .label_style(font)
        .x_labels(ticks.0)
        .y_labels(ticks.1)
        .set_all_tick_mark_size(4 * FINE)
        .draw()
        .map_err(|error| error.to_string())?;
    Ok(chart)
}

/// In which row above the plot the label of each vertical line stands, so that none cover another.
fn label_rows(layout: &Layout, frame: Frame) -> Vec<u32> {
    let (left, right) = layout.across.ends();
    let width = f64::from(frame.width);
    let mut ends: Vec<f64> = Vec::new();
    layout
        .plot
        .markers
        .iter()
        .map(|line| {
            let center = (layout.x(&line.x.into()) - left) / (right - left) * width;
            let half = line.label.chars().count() as f64 * f64::from(frame.font) * 0.3 + 6.0;
            let row = ends
                .iter()
                .position(|end| *end < center - half)
                .unwrap_or(ends.len());
            ends.truncate(ends.len().max(row));
            if row == ends.len() {
                ends.push(0.0)
            }
            ends[row] = center + half;
            row as u32
        })
        .collect()
}

impl<'b> Canvas<'_, 'b> {
    /// The spot of a pair of places.
    pub fn spot(&self, x: f64, y: f64) -> Spot {
        self.chart.backend_coord(&(x, y))
    }

    /// The plot without its margins: left, top, right, bottom.
    pub fn bounds(&self) -> (i32, i32, i32, i32) {
        let (x, y) = self.chart.plotting_area().get_pixel_range();
        (x.start, y.start, x.end, y.end)
    }

    /// A line through `spots`; `width` in tenths of a pixel.
    pub fn line(&self, spots: &[Spot], color: RGBColor, width: u32) -> Drawn {
        self.put(&PathElement::new(spots.to_vec(), color.stroke_width(width)))
    }

    /// A dashed line through `spots`.
    pub fn dashes(&self, spots: &[Spot], color: RGBColor, width: u32) -> Drawn {
        let style = color.stroke_width(width);
        self.put(&DashedPathElement::new(
            spots.to_vec(),
            6 * FINE,
            4 * FINE,
            style,
        ))
    }

    /// An area filled with a color that lets the grid through.
    pub fn area(&self, spots: &[Spot], color: RGBColor, opacity: f64) -> Drawn {
        self.put(&Polygon::new(spots.to_vec(), filled(color, opacity)))
    }

    /// A filled rectangle.
    pub fn bar(&self, corners: [Spot; 2], color: RGBColor, opacity: f64) -> Drawn {
        self.put(&Rectangle::new(corners, filled(color, opacity)))
    }

    /// The marker of a name, filled.
    pub fn marker(&self, at: Spot, name: usize, size: f64) -> Drawn {
        let shape = moved(outline(name, size), at);
        self.put(&Polygon::new(shape, filled(series(name), 1.0)))
    }

    /// The marker of a name, hollow.
    pub fn hollow_marker(&self, at: Spot, name: usize, size: f64) -> Drawn {
        let mut shape = moved(outline(name, size), at);
        self.put(&Polygon::new(shape.clone(), filled(PANEL, 1.0)))?;
        // Once around and one edge more, so that the last corner is joined like the others.
        shape.extend_from_within(..2);
        self.line(&shape, series(name), 20)
    }

    fn vertical_lines(&self, layout: &Layout, frame: Frame, rows: &[u32]) -> Drawn {
        let (left, top, right, bottom) = self.bounds();
        for (marker, row) in layout.plot.markers.iter().zip(rows) {
            let (x, _) = self.spot(layout.x(&marker.x.into()), layout.up.low);
            let y = top - ((5 + row * (frame.font + 5)) as i32) * FINE;
            self.dashes(&[(x, bottom), (x, y)], MARK, 12)?;
            let half = marker.label.chars().count() as i32 * frame.font as i32 * 3 * FINE / 10;
            let center = x.clamp(left + half, (right - half).max(left + half));
            let font = ("sans-serif", f64::from(frame.font) * f64::from(FINE) * 1.24);
            let style = font
                .into_font()
                .color(&MARK)
                .pos(Pos::new(HPos::Center, VPos::Bottom));
            self.put(&Text::new(marker.label.clone(), (center, y), style))?;
        }
        Ok(())
    }

    fn put<E>(&self, element: &E) -> Drawn
    where
        for<'e> &'e E: PointCollection<'e, Spot>,
        E: Drawable<SVGBackend<'b>>,
    {
        self.root.draw(element).map_err(|error| error.to_string())
    }
}

fn filled(color: RGBColor, opacity: f64) -> ShapeStyle {
    ShapeStyle::from(color.mix(opacity)).filled()
}

fn moved(shape: Vec<Spot>, (x, y): Spot) -> Vec<Spot> {
    shape.into_iter().map(|(dx, dy)| (x + dx, y + dy)).collect()
}
