//! What a task was seen to do, as a row of moments: so long a list has no room for steps of their own.

use std::sync::Arc;

use warmq_units::Duration;

use crate::quantity::Quantity;
use crate::step::Step;

/// One thing that a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Takes so much CPU time. What its steps took before counts: a task that has had too much
    /// already computes less.
    Run(Duration),
    /// Sleeps so long.
    Sleep(Duration),
    /// Sleeps until so long after it last woke from such a sleep should have been; whoever comes too
    /// late does not sleep.
    Until(Duration),
    /// Does a step, by its place in [`Recorded::steps`].
    Step(u32),
}

/// A row of moments.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The moments, in their order.
    pub moments: Arc<[Moment]>,
    /// The steps that moments name.
    pub steps: Vec<Step>,
}

/// What is before the time of a sleep.
const SLEEP: char = '~';
/// What is before the time of a sleep until a time.
const UNTIL: char = '@';

/// The moments of `text`: words of which each is a time, a sleep or one of `names`.
///
/// # Errors
/// The first word that is none of these.
pub(crate) fn moments<'t>(text: &'t str, names: &[String]) -> Result<Arc<[Moment]>, &'t str> {
    text.split_ascii_whitespace()
        .map(|word| moment(word, names).ok_or(word))
        .collect()
}

fn moment(word: &str, names: &[String]) -> Option<Moment> {
    if let Some(step) = names.iter().position(|name| name == word) {
        return Some(Moment::Step(step as u32));
    }
    let most = Duration(Quantity::Time.most() as u64);
    let time = |text: &str| text.parse().ok().filter(|time| *time <= most);
    match word.strip_prefix(SLEEP) {
        Some(text) => time(text).map(Moment::Sleep),
        None => match word.strip_prefix(UNTIL) {
            Some(text) => time(text).map(Moment::Until),
            None => time(word).map(Moment::Run),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_word_by_word() {
        let names = ["a".to_owned(), "b2".to_owned()];
        let us = Duration::from_us;
        let found = moments("12us a\n ~1ms b2 @10us a", &names);
        let wanted = [
            Moment::Run(us(12)),
            Moment::Step(0),
            Moment::Sleep(us(1_000)),
            Moment::Step(1),
            Moment::Until(us(10)),
            Moment::Step(0),
        ];
        assert_eq!(found.as_deref(), Ok(&wanted[..]));
        for word in ["c", "~a", "12", "@", "-1us", "9000000s", "~9000000s"] {
            assert_eq!(moments(&format!("1us {word} a"), &names), Err(word));
        }
    }
}
