//! What a number of a scenario counts, and the units in which people write it.

warmq_units::named! {
    /// What a number counts, and what a person calls it. Numbers are kept in the base unit: things,
    /// picoseconds, bytes, cycles.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Quantity {
        /// Things: tasks, messages, lines.
        Count = "a count",
        /// A span of time, in picoseconds.
        Time = "a time",
        /// A size, in bytes.
        Size = "a size",
        /// Clock cycles of a CPU.
        Cycles = "cycles",
    }
}

/// The units, with what they count and how many of the base unit they are.
const UNITS: &[(&str, Quantity, i64)] = &[
    ("s", Quantity::Time, 1_000_000_000_000),
    ("ms", Quantity::Time, 1_000_000_000),
    ("us", Quantity::Time, 1_000_000),
    ("ns", Quantity::Time, 1_000),
    ("ps", Quantity::Time, 1),
    ("B", Quantity::Size, 1),
    ("KB", Quantity::Size, 1 << 10),
    ("MB", Quantity::Size, 1 << 20),
    ("GB", Quantity::Size, 1 << 30),
    ("cycles", Quantity::Cycles, 1),
    ("cycle", Quantity::Cycles, 1),
];

impl Quantity {
    /// The most that there can be of it, in the base unit: a million seconds (12 days), as many
    /// cycles as a GHz has in them, 64 TB. So that sums and products of some fit into 64 bits.
    pub(crate) fn most(self) -> i64 {
        match self {
            Quantity::Count => i64::MAX,
            Quantity::Time => 1_000_000_000_000_000_000,
            Quantity::Size => 1 << 46,
            Quantity::Cycles => 1_000_000_000_000_000,
        }
    }

    /// [`Quantity::most`], as it is written.
    pub(crate) fn most_written(self) -> &'static str {
        match self {
            Quantity::Count => "9223372036854775807",
            Quantity::Time => "1000000s",
            Quantity::Size => "65536GB",
            Quantity::Cycles => "1000000000000000 cycles",
        }
    }

    /// How it is written, as an example.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Quantity::Count => "3",
            Quantity::Time => "\"10ms\"",
            Quantity::Size => "\"4KB\"",
            Quantity::Cycles => "\"2000 cycles\"",
        }
    }

    /// What the unit called `name` counts, and how many of the base unit it is.
    pub(crate) fn of_unit(name: &str) -> Option<(Quantity, i64)> {
        let unit = UNITS.iter().find(|(unit, ..)| *unit == name)?;
        Some((unit.1, unit.2))
    }

    /// The names of all units, for suggestions.
    pub(crate) fn units() -> impl Iterator<Item = &'static str> {
        UNITS.iter().map(|(unit, ..)| *unit)
    }
}

/// A list of alternatives as the end of a sentence: `a time or cycles`.
pub(crate) fn alternatives(wanted: &[Quantity], word: fn(Quantity) -> &'static str) -> String {
    let words: Vec<&str> = wanted.iter().map(|quantity| word(*quantity)).collect();
    words.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_is_written_as_it_is_meant() {
        for quantity in [Quantity::Time, Quantity::Size, Quantity::Cycles] {
            let written = quantity.most_written();
            let digits = written.trim_end_matches(|letter: char| !letter.is_ascii_digit());
            let unit = written[digits.len()..].trim();
            let (of, factor) = Quantity::of_unit(unit).unwrap();
            assert_eq!(of, quantity);
            assert_eq!(digits.parse::<i64>().unwrap() * factor, quantity.most());
        }
    }
}
