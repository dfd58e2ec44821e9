//! It is switched away again and again by tasks that ask for very short slices.

use warmq_units::{Duration, TaskId};

use super::capital;
use crate::Cure;
use crate::case::Case;
use crate::verdict::Finding;
use crate::words::{count, list, rate, share, span, thousandths};

/// Shorter than any slice that a kernel gives by itself.
const SHORT: Duration = Duration::from_us(700);
/// Its turns are shorter than this on average. A switch takes some us, and what the caches of a CPU
/// held takes some 100 us to come back.
const LEAST_TURN: Duration = Duration::from_us(500);
/// It got a CPU so often in a second.
const LEAST_TURNS: u64 = 1_000;
/// It ran for so much of the time, in thousandths.
const LEAST_RAN: u64 = 200;
/// Those who ask for short slices had so much of the CPU while it waited, in thousandths.
const LEAST_BESIDE: u64 = 300;

const CURES: &[Cure] = &[
    Cure::new(
        "let them ask for longer slices, as long as what they do at a wakeup",
        "where others are runnable, they are answered later",
    )
    .on("Linux 6.12 or later"),
    Cure::new(
        "let them do more at each wakeup",
        "the first of what they do together is done later",
    ),
    Cure::new(
        "bind them to another CPU",
        "they cannot use this one when it idles",
    ),
];

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    let (facts, tally) = (case.facts, case.tally);
    let turns = rate(tally.turns, facts.period);
    let turn = Duration(tally.ran.0 / tally.turns.max(1));
    // Who sleeps in between ends its turns itself.
    let is_preempted = tally.wakeups * 2 < tally.turns;
    let runs = thousandths(tally.ran, facts.period) >= LEAST_RAN;
    let asks = |id: TaskId| {
        let slice = facts.task(id).who.slice;
        slice > Duration::ZERO && slice < SHORT
    };
    let had = case.share_beside(asks);
    if !runs || !is_preempted || turns < LEAST_TURNS || turn > LEAST_TURN || had < LEAST_BESIDE {
        return None;
    }
    let names = list(&case.names_beside(asks), 3);
    Some(Finding {
        cause: names.clone(),
        says: format!(
            "{} runs for {} at a time, and is switched away {} times a second by {names}, which ask \
             for short slices",
            case.name(),
            span(turn),
            count(turns)
        ),
        because: format!(
            "{} of its waits. A switch takes some us, and its data have to come back into the caches.",
            capital(&format!("they had the CPU for {}", share(had)))
        ),
        cures: CURES.to_vec(),
    })
}
