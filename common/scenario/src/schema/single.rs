//! Keys that the reader reads one by one, and has no table of.

use crate::keys::Kind::*;
use crate::keys::{Key, may, must};

#[rustfmt::skip]
pub(super) const TOP: &[Key] = &[
    may("title", Text, "What it is, in a line."),
    may("about", Text, "What it is, in sentences."),
    may("work", Text, "The counter that is the work done; by default `rounds`."),
    may("order", Words(&["listed", "random"]), "In which order tasks start that start at the same time."),
];

#[rustfmt::skip]
pub(super) const SETTING: &[Key] = &[
    may("least", Value, "The least value allowed."),
    may("most", Value, "The greatest value allowed."),
    may("choices", ListOfWords, "The words allowed."),
    must("default", Value, "The value where none is chosen.", "write the value where none is chosen"),
    may("what", Text, "What it does, in a sentence."),
    may("source", Text, "Where the default comes from."),
];

#[rustfmt::skip]
pub(super) const CURVE: &[Key] = &[
    must("points", Points, "Two points or more, from left to right: [[2, 1], [1024, 100]].", "write two points or more, as in [[2, 1], [1024, 100]]"),
    may("what", Text, "What it gives, in a sentence."),
    may("source", Text, "Where the points come from."),
];

#[rustfmt::skip]
pub(super) const AT: &[Key] = &[
    may("at", Time, "When, once."),
    may("every", Time, "How long after one another."),
    may("start", Time, "The first time; after one period."),
    may("end", Time, "When it ends; never."),
];

/// The keys of a change of the scheduler, besides [`AT`].
#[rustfmt::skip]
pub(super) const SCHEDULER: &[Key] = &[
    must("scheduler", Text, "`kernel`, `first` (the one that the run began with), or the scheduler that \
         is loaded.", ""),
    may("options", Text, "The options that it is started with."),
];
