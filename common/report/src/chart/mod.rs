//! Plots as SVG, drawn by `plotters` while the page is written.
//!
//! Why not plotly, embedded: it makes a page 4 MB larger, shows nothing until a script ran, and
//! prints at the size of the screen it was opened on. An SVG in the page is there at once, prints
//! sharp, follows the page's light or dark colors by CSS, and sixteen plots weigh less than one
//! photograph. `plotters` maps values to places and writes the elements; what this module adds is
//! the look, the twin of each plot for narrow screens (words keep their size there), and the lines
//! that carry the values under the cursor.

mod canvas;
mod cursor;
mod layout;
mod marks;
mod palette;
mod ruler;
mod spread;

use crate::{Plot, WriteError};
use layout::{Frame, Layout};

pub(crate) use layout::{NARROW, WIDE};
pub(crate) use palette::{ON_DARK, hex, outline, series as color};

/// Drawing runs in tenths of a CSS pixel, because the library rounds to whole units.
pub(crate) const FINE: i32 = 10;

/// Draws `plot` into `frame`: the content of an `<svg>` whose view box is `FINE` times the frame.
pub(crate) fn draw(plot: &Plot, frame: Frame) -> Result<String, WriteError> {
    let layout = Layout::new(plot, frame);
    canvas::draw(&layout, frame).map_err(|reason| WriteError::Plot {
        plot: plot.title.clone(),
        reason,
    })
}
