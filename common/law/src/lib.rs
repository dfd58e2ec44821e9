//! Laws: what any decent scheduler keeps, simulated or real.
//!
//! A law is a scenario with bounds for its figures and the reason for each bound
//! ([`Law::read`], docs/laws.md). This crate reads laws, measures what only they need
//! ([`LawMeter`]), and judges what was measured ([`judge`]). It knows neither the lab nor a real
//! kernel: whoever plays hands over figures.

mod beside;
mod law;
mod meter;
mod placement;
mod read;
mod verdict;

pub use beside::{Kind, Spread};
pub use law::{Bound, Family, Law, Limit, Side};
pub use meter::LawMeter;
pub use placement::Places;
pub use read::{MACHINE, figures};
pub use verdict::{Fault, Figures, Finding, Judged, Repetition, Verdict, judge, skipped};
