//! Laws: what any decent scheduler keeps, simulated or real.
//!
//! A law is a scenario with bounds for its figures and the reason for each bound
//! ([`Law::read`], docs/laws.md). This crate reads laws, measures what only they need
//! ([`LawMeter`]), and judges what was measured ([`judge`]). Laws are rows of a matrix, whose
//! [`Columns`] are schedulers in worlds; its [`Cell`]s are kept as [`Line`]s, and those of the lab
//! are [`predictions`] of those of guests. It knows neither the lab nor a real kernel: whoever
//! plays hands over figures.

mod beside;
mod cell;
mod column;
mod law;
mod line;
mod meter;
mod placement;
mod prediction;
mod read;
pub mod shown;
mod verdict;

pub use beside::{Kind, Spread};
pub use cell::{Cell, Found, Kept};
pub use column::{Column, Columns, OF_KERNEL};
pub use law::{Bound, Family, Law, Limit, Side};
pub use line::{Line, changed, columns_of, known, lines_of, read_lines};
pub use meter::LawMeter;
pub use placement::Places;
pub use prediction::{Prediction, predictions};
pub use read::{MACHINE, figures};
pub use verdict::{
    Fault, Figures, Finding, Judged, Repetition, Verdict, judge, judge_kernel, skipped,
};
