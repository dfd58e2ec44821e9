//! A task that is woken often, runs for a moment, and waits for longer than it runs.
//!
//! Averages of the time that it wanted say little of it: who answers a key or a request wants a CPU
//! for a small part of the time, and each of its waits is somebody's.

use warmq_units::{Duration, TaskId};

use crate::facts::Facts;
use crate::preference::MOST_OWN_SLICE;
use crate::words::rate;

/// Wakeups a second: somebody who types presses a key so often.
const LEAST_WOKEN: u64 = 5;
/// So many of its waits are known. Of fewer, the second longest says nothing of the next one.
const LEAST_KNOWN: u64 = 20;
/// It waits for so many times what it runs for. Who waits for less may have its turn after
/// somebody who does as much.
const LEAST_TIMES: u64 = 2;
/// The percentile of its waits that is looked at, in thousandths.
const USUAL: u64 = 990;

/// How late it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Late {
    /// Wakeups a second.
    pub often: u64,
    /// What it runs for at a wakeup, on average.
    pub runs: Duration,
    /// Of a hundred wakeups, one waits for longer than this.
    pub p99: Duration,
    /// And none for longer than this.
    pub longest: Duration,
}

impl Late {
    /// Of a task that is late, as far as the whole time shows.
    pub fn of(facts: &Facts<'_>, id: TaskId) -> Option<Late> {
        let task = facts.task(id);
        if !facts.whole || task.waits.all() < LEAST_KNOWN {
            return None;
        }
        let tally = facts.tally(id);
        let late = Late {
            often: rate(tally.wakeups, facts.lived(task)),
            runs: Duration(tally.ran.0 / tally.wakeups.max(1)),
            p99: task.waits.at(USUAL),
            longest: task.waits.longest(),
        };
        // Whoever ran had a whole slice. On the whole it waits for more than it runs, too: else a
        // few waits are late, and it is not.
        let is_late = late.often >= LEAST_WOKEN
            && late.p99 > MOST_OWN_SLICE
            && late.p99 > late.runs * LEAST_TIMES
            && tally.waited > tally.ran;
        is_late.then_some(late)
    }
}
