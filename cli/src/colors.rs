//! The colors of tasks and groups in pictures: each has one on a whole page.

use std::collections::BTreeMap;

use warmq_metrics::evidence::Chart;

/// Colors that can be distinguished on light and on dark ground, also by the color-blind (after
/// Okabe and Ito's palette); then the same, darker.
const PALETTE: [&str; 14] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#004a75",
    "#946600", "#00614a", "#87496d", "#2b7eae", "#8a3d00", "#706700",
];
/// Of all for whom no color is left.
pub const OTHERS: &str = "#8a8f98";

/// Who has which color.
#[derive(Clone, Debug, Default)]
pub struct Colors(BTreeMap<String, &'static str>);

impl Colors {
    /// Gives colors to those of a chart who have none, whoever has most of it first.
    pub fn take(&mut self, chart: &Chart) {
        let mut had = vec![0_usize; chart.who.len()];
        let cells = chart.cpus.iter().flat_map(|(_, cells)| cells);
        cells.flatten().for_each(|who| had[*who] += 1);
        let mut places: Vec<usize> = (0..had.len()).collect();
        places.sort_by_key(|place| (std::cmp::Reverse(had[*place]), *place));
        places
            .into_iter()
            .for_each(|place| self.give(&chart.who[place]));
    }

    /// Gives a color to `name`, unless it has one or none is left.
    pub fn give(&mut self, name: &str) {
        if let Some(color) = PALETTE.get(self.0.len())
            && !self.knows(name)
        {
            self.0.insert(name.to_owned(), color);
        }
    }

    /// Whether `name` has a color of its own.
    pub fn knows(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The color of `name`.
    pub fn of(&self, name: &str) -> &'static str {
        self.0.get(name).copied().unwrap_or(OTHERS)
    }
}

#[cfg(test)]
mod tests {
    use warmq_units::{CpuId, Instant};

    use super::*;

    #[test]
    fn who_has_a_color_keeps_it_in_the_next_picture() {
        let chart = |who: &[&str], cells: &[usize]| Chart {
            from: Instant::START,
            to: Instant(1),
            who: who.iter().map(|name| (*name).to_owned()).collect(),
            cpus: vec![(CpuId(0), cells.iter().copied().map(Some).collect())],
        };
        let mut colors = Colors::default();
        colors.take(&chart(&["a", "b"], &[0, 1, 1]));
        assert_eq!([colors.of("b"), colors.of("a")], [PALETTE[0], PALETTE[1]]);
        colors.take(&chart(&["c", "a"], &[0, 0, 1]));
        assert_eq!([colors.of("b"), colors.of("a")], [PALETTE[0], PALETTE[1]]);
        assert_eq!(colors.of("c"), PALETTE[2]);
        for number in 0..20 {
            colors.give(&number.to_string());
        }
        assert_eq!((colors.of("19"), colors.knows("19")), (OTHERS, false));
    }
}
