//! What people write: settings, and TOML documents that are read with places and suggestions.
//!
//! Purpose: one reader for machines, experiments and whatever else is data. It knows none of them.
//!
//! - [`Document`]: a TOML text as a tree in which every value knows its place. Options of a
//!   command line can change values in it; each is parsed once, by the grammar of the files.
//! - [`Fields`] and [`Item`]: a table and a value as a reader asks for them: by key, type, range
//!   and unit. Whatever is wrong is reported with its place and a fix, and reading goes on, so
//!   that one pass finds as many [`Problem`]s as it can.
//! - [`Setting`]: what can be set on a part of a run, with its [`Kind`], default and source;
//!   [`Chosen`]: the values that are in force. [`settings!`] and [`settings_of!`] are tables of
//!   them.
//!
//! ```
//! use warmq_config::Document;
//!
//! let file = Document::parse("engine.toml", "cylinders = 4\nbore = 81.5\n").unwrap();
//! // A reader asks for what it knows; what nobody asked for is a problem with its place.
//! let cylinders = file.read(|fields| {
//!     let cylinders = fields.number("cylinders");
//!     fields.finish();
//!     cylinders
//! });
//! assert!(cylinders.unwrap_err().to_string().contains("bore"));
//! ```

// Integers decide; floats only describe.
#![deny(clippy::float_arithmetic)]

mod document;
mod fields;
mod input;
mod item;
mod pair;
mod problem;
mod setting;
mod suggestion;
mod table;
mod value;

pub use document::{Document, Entry, Node, NodeKind, Place};
pub use fields::Fields;
pub use input::{MOST_TEXT, read_bytes, read_text};
pub use item::Item;
pub use pair::Pair;
pub use problem::{Problem, Problems, Source};
pub use setting::{Chosen, Kind, Setting};
pub use suggestion::{did_you_mean, most_like, nearest};
pub use table::OfValue;
pub use value::{Value, quoted};
#[doc(hidden)]
pub use warmq_units::named; // for `choices!`

/// Name and text of files that a program contains: `texts! { "../laws/": "nice" "quota" }` is of
/// `nice.toml` and `quota.toml` in that folder, as seen from the file that says so.
#[macro_export]
macro_rules! texts {
    ($folder:literal: $($name:literal)*) => {
        &[$(($name, include_str!(concat!($folder, $name, ".toml")))),*]
    };
}
