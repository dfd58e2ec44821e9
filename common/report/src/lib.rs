//! Tidy rows into tables for a terminal, JSON lines, CSV, and one HTML page.
//!
//! A run of an experiment ends in [`Row`]s (one measure at one point of a sweep) and [`Verdict`]s
//! (one claim of a paper, checked). Together with plots, parameters and sources they make a
//! [`Section`]; sections make a [`Report`]. This crate only shows: it computes no figure but the
//! [`Summary`] and the ratios of ours to published ones, and it decides nothing that is simulated.
//!
//! ```
//! use warmq_report::{Point, Report, Row, Section, write_json_lines};
//! let row = Row {
//!     experiment: "table5-walk-misses".into(),
//!     point: Point::new([("cpus", 2.into()), ("colors", 32.into())]),
//!     metric: "walk_miss_ratio".into(),
//!     value: 7.1,
//!     unit: "%".into(),
//!     low: 6.8,
//!     high: 7.5,
//!     published: Some(7.5),
//!     calibration: false,
//! };
//! let mut lines = Vec::new();
//! write_json_lines([&row], &mut lines)?;
//! assert!(lines.starts_with(br#"{"schema":1,"experiment":"table5-walk-misses","#));
//!
//! let section = Section { id: "table5".into(), rows: vec![row], ..Section::default() };
//! let report = Report { sections: vec![section], ..Report::default() };
//! assert_eq!(report.summary().prediction().within, 1);
//! # Ok::<(), warmq_report::WriteError>(())
//! ```

mod agreement;
mod chart;
mod columns;
mod csv;
mod error;
mod html;
mod json;
mod number;
mod pivot;
mod plot;
mod profile;
mod row;
mod section;
mod summary;
mod terminal;

pub use agreement::{Agreement, Tolerance};
pub use csv::write_csv;
pub use error::WriteError;
pub use html::{page_of, write_html};
pub use json::{Versioned, write_json_lines, write_json_profiles};
pub use plot::{Axis, Kind, Origin, Plot, PlotPoint, Scale, Series, VerticalLine, X};
pub use profile::{Profile, Spot, Work};
pub use row::{Point, PointValue, Row};
pub use section::{Digest, Fact, Label, Parameter, Report, Section, Verdict};
pub use summary::{Cells, SectionSummary, Summary, WorstCell};
pub use terminal::Terminal;
