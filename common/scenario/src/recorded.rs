//! What a task was seen to do, as a row of moments: so long a list has no room for steps of their
//! own.

use std::collections::BTreeMap;
use std::sync::Arc;

use warmq_units::Duration;

use crate::quantity::Quantity;
use crate::step::Step;
use crate::task::TaskKindId;

/// One thing that a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Takes so much CPU time. What its steps took before counts: a task that has had too much
    /// already computes less.
    Run(Duration),
    /// Sleeps so long.
    Sleep(Duration),
    /// Sleeps until so long after it last woke from such a sleep should have been; whoever comes
    /// too late does not sleep.
    Until(Duration),
    /// Does a step, by its place in [`Recorded::steps`].
    Step(u32),
    /// Begins a part: the step waits for a message, and what follows is what the task does about
    /// one of this sender, by its place in [`Recorded::senders`].
    Part {
        /// The step, by its place in [`Recorded::steps`].
        step: u32,
        /// The sender.
        sender: u32,
    },
}

/// A row of moments. Parts are done in the order in which messages come: that of a sender's first
/// message first, of its second message second.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The moments, in their order.
    pub moments: Arc<[Moment]>,
    /// The steps that moments name.
    pub steps: Vec<Step>,
    /// The tasks whose messages begin parts.
    pub senders: Vec<TaskKindId>,
}

/// What is before the time of a sleep.
const SLEEP: char = '~';
/// What is before the time of a sleep until a time.
const UNTIL: char = '@';
/// What is between a step that waits and the sender.
const FROM: char = '<';

/// The moments of `text`: words of which each is a time, a sleep, one of the names of `steps`, or
/// that and one of `senders`.
///
/// # Errors
/// The first word that is none of these.
pub(crate) fn moments<'t>(
    text: &'t str,
    steps: &[String],
    senders: &[String],
) -> Result<Arc<[Moment]>, &'t str> {
    let (steps, senders) = (places(steps), places(senders));
    text.split_ascii_whitespace()
        .map(|word| moment(word, &steps, &senders).ok_or(word))
        .collect()
}

/// Names with their places in a list.
type Places<'n> = BTreeMap<&'n str, u32>;

fn places(names: &[String]) -> Places<'_> {
    let names = names.iter().map(String::as_str);
    names.zip(0..).collect()
}

fn moment(word: &str, steps: &Places<'_>, senders: &Places<'_>) -> Option<Moment> {
    if let Some(step) = steps.get(word) {
        return Some(Moment::Step(*step));
    }
    if let Some((step, sender)) = word.split_once(FROM) {
        let (step, sender) = (*steps.get(step)?, *senders.get(sender)?);
        return Some(Moment::Part { step, sender });
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
        let senders = ["s".to_owned(), "t".to_owned()];
        let found = moments("12us a\n ~1ms b2 @10us a b2<t", &names, &senders);
        let wanted = [
            Moment::Run(us(12)),
            Moment::Step(0),
            Moment::Sleep(us(1_000)),
            Moment::Step(1),
            Moment::Until(us(10)),
            Moment::Step(0),
            Moment::Part { step: 1, sender: 1 },
        ];
        assert_eq!(found.as_deref(), Ok(&wanted[..]));
        let wrong = [
            "c",
            "~a",
            "12",
            "@",
            "-1us",
            "9000000s",
            "~9000000s",
            "a<b2",
            "t<a",
            "a<",
        ];
        for word in wrong {
            let text = format!("1us {word} a");
            assert_eq!(moments(&text, &names, &senders), Err(word));
        }
    }
}
