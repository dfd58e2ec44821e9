//! Colors and shapes of the plots.
//!
//! A plot is drawn in the colors of a light page. The style sheet finds each color by its value
//! (`[fill="#0B62A8"]`) and puts the dark page's in its place, so all of them differ.

use plotters::style::RGBColor;

/// Behind a plot, and inside hollow markers.
pub(crate) const PANEL: RGBColor = RGBColor(0xFE, 0xFE, 0xFE);
/// Lines of the grid.
pub(crate) const GRID: RGBColor = RGBColor(0xE4, 0xE6, 0xE9);
/// The horizontal axis.
pub(crate) const AXIS: RGBColor = RGBColor(0x8A, 0x91, 0x99);
/// Words and figures along the axes.
pub(crate) const TEXT: RGBColor = RGBColor(0x4A, 0x52, 0x5C);
/// Vertical lines that mark a place, and whiskers of bars.
pub(crate) const MARK: RGBColor = RGBColor(0x2B, 0x30, 0x36);

/// One color a name, in the order of names: blue, vermilion, green, purple, ochre, cyan, rose,
/// slate. Each has a contrast of at least 3 to 1 with the page; with the common forms of color
/// blindness neighbors still differ in lightness, and all of them differ in shape.
const SERIES: [RGBColor; 8] = [
    RGBColor(0x0B, 0x62, 0xA8),
    RGBColor(0xC9, 0x51, 0x0C),
    RGBColor(0x0A, 0x7D, 0x5A),
    RGBColor(0x8A, 0x3F, 0xA0),
    RGBColor(0x8F, 0x6B, 0x00),
    RGBColor(0x0A, 0x8A, 0xA8),
    RGBColor(0xB5, 0x32, 0x6E),
    RGBColor(0x56, 0x60, 0x6B),
];

/// Every color beside the one that takes its place on a dark page.
pub(crate) const ON_DARK: [(RGBColor, &str); 13] = [
    (PANEL, "#161a1f"),
    (GRID, "#2a3038"),
    (AXIS, "#6d7681"),
    (TEXT, "#aab3be"),
    (MARK, "#dfe4ea"),
    (SERIES[0], "#62aef0"),
    (SERIES[1], "#ff965a"),
    (SERIES[2], "#45cb9b"),
    (SERIES[3], "#cf97e8"),
    (SERIES[4], "#dcbb48"),
    (SERIES[5], "#4fcbe3"),
    (SERIES[6], "#f486b4"),
    (SERIES[7], "#aab4bf"),
];

/// The outline of a marker of radius `size` around (0, 0): one shape a name, eight of them.
///
/// All have about the area of the circle, so that none looks more important.
pub(crate) fn outline(name: usize, size: f64) -> Vec<(i32, i32)> {
    // Corners, turn of the first one from straight up in degrees, radius against the circle's.
    let (corners, turn, radius): (u32, f64, f64) = match name % SERIES.len() {
        0 => (24, 0.0, 1.0),
        1 => (4, 45.0, 1.25),
        2 => (3, 0.0, 1.4),
        3 => (4, 0.0, 1.3),
        4 => (3, 180.0, 1.4),
        5 => (5, 0.0, 1.2),
        6 => (3, 90.0, 1.4),
        _ => (6, 30.0, 1.1),
    };
    let corner = |index: u32| {
        let angle = (turn + 360.0 * f64::from(index) / f64::from(corners)).to_radians();
        let (x, y) = (angle.sin() * size * radius, -angle.cos() * size * radius);
        (x.round() as i32, y.round() as i32)
    };
    (0..corners).map(corner).collect()
}

/// The color of the name with this index; names beyond the eighth start over.
pub(crate) fn series(name: usize) -> RGBColor {
    SERIES[name % SERIES.len()]
}

/// A color as SVG has it: `#0B62A8`.
pub(crate) fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}
