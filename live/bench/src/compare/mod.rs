//! What the real programs share: repetitions, modes in turn, and what can be said of a difference.

mod spread;

pub use spread::Spread;
