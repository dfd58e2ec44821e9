//! What a number of a scenario counts, and the units in which people write it.

/// What a number counts. Numbers are kept in the base unit: things, picoseconds, bytes, cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Things: tasks, messages, lines.
    Count,
    /// A span of time, in picoseconds.
    Time,
    /// A size, in bytes.
    Size,
    /// Clock cycles of a CPU.
    Cycles,
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
    /// What a person calls it: `a time`.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Count => "a count",
            Quantity::Time => "a time",
            Quantity::Size => "a size",
            Quantity::Cycles => "cycles",
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
