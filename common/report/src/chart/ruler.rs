//! An axis as the drawing library wants it: a range of places, and words at some of them.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// Places from `low` to `high`, with a word at each tick. What lies outside is drawn at the edge.
pub(crate) struct Ruler {
    pub low: f64,
    pub high: f64,
    pub ticks: Vec<(f64, String)>,
}

impl Ranged for Ruler {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (start, end): (i32, i32)) -> i32 {
        let share = ((place - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        start + (share * f64::from(end - start)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.iter().map(|(place, _)| *place).collect()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Ruler {
    fn format_ext(&self, place: &f64) -> String {
        let tick = self.ticks.iter().find(|(tick, _)| tick == place);
        tick.map(|(_, word)| word.clone()).unwrap_or_default()
    }
}
