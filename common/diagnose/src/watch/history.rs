//! What the sums were at earlier times, so that a part of the time can be judged by itself.
//!
//! The sums are remembered at each step. Old steps are thinned out: the older, the coarser. So what
//! is kept is bounded, however long a trace is.

use std::collections::BTreeMap;
use std::sync::Arc;

use warmq_units::{Duration, Instant, TaskId};

use super::Tally;

/// How often sums are remembered: half of the shortest wait that is judged by itself.
pub(super) const STEP: Duration = Duration::from_ms(50);
/// A wait of this length is judged by itself: more than slices and ticks explain.
pub(crate) const LONG_WAIT: Duration = Duration::from_ms(100);
/// The length of the windows that slide over the trace, and by how much they do.
const WINDOW: Duration = Duration::from_s(1);
const SLIDES: Duration = Duration::from_ms(500);
/// So many steps are remembered, and of these the latest are not thinned out.
const MOST_MARKS: usize = 64;
const LATEST: usize = 24;

/// What is certain of each task.
pub(crate) type Sums = BTreeMap<TaskId, Arc<Tally>>;

/// The sums at a time, of tasks that were alive shortly before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mark {
    pub at: Instant,
    pub sums: Sums,
}

/// A long wait that has ended, and what was counted of it alone.
#[derive(Clone, Debug)]
pub(crate) struct EndedWait {
    pub task: TaskId,
    pub tally: Tally,
}

/// The steps that are remembered, and the long waits that ended since the last one.
#[derive(Debug, Default)]
pub(super) struct History {
    marks: Vec<Arc<Mark>>,
    ended: Vec<EndedWait>,
    /// When the next step is due.
    next: Instant,
    /// When the last window ended.
    slid: Instant,
}

impl History {
    /// Of a measurement that begins at `from`.
    pub fn beginning(from: Instant) -> History {
        let mark = Mark {
            at: from,
            ..Mark::default()
        };
        History {
            marks: vec![Arc::new(mark)],
            ended: Vec::new(),
            next: from + STEP,
            slid: from,
        }
    }

    /// The latest step that is due by `at`, if one is. Where nothing was recorded, steps are left
    /// out.
    pub fn is_due(&self, at: Instant) -> Option<Instant> {
        let late = Duration(at.0.checked_sub(self.next.0)? / STEP.0 * STEP.0);
        Some(self.next + late)
    }

    /// A wait of `task` has ended, of which `tally` was counted.
    pub fn ends(&mut self, task: TaskId, tally: Tally) {
        if tally.longest.span() >= LONG_WAIT {
            self.ended.push(EndedWait { task, tally });
        }
    }

    /// The long waits that ended lately, by the step that was nearest to their beginning.
    pub fn ended_since(&mut self) -> Vec<(Arc<Mark>, Vec<EndedWait>)> {
        let mut by_mark: Vec<(Arc<Mark>, Vec<EndedWait>)> = Vec::new();
        for ended in std::mem::take(&mut self.ended) {
            let from = ended.tally.longest.from;
            let off = |mark: &&Arc<Mark>| mark.at.since(from).max(from.since(mark.at));
            // There is always one: the beginning.
            let Some(mark) = self.marks.iter().min_by_key(off) else {
                continue;
            };
            match by_mark.iter_mut().find(|(known, _)| known.at == mark.at) {
                Some((_, those)) => those.push(ended),
                None => by_mark.push((Arc::clone(mark), vec![ended])),
            }
        }
        by_mark
    }

    /// The step at which the window began that ends at `at`, if it is time for one.
    pub fn window_before(&mut self, at: Instant) -> Option<Arc<Mark>> {
        if at.since(self.slid) < SLIDES {
            return None;
        }
        let begins = |mark: &&Arc<Mark>| at.since(mark.at) >= WINDOW;
        let mark = self.marks.iter().rev().find(begins)?;
        self.slid = at;
        Some(Arc::clone(mark))
    }

    /// Remembers a step.
    pub fn remember(&mut self, mark: Mark) {
        self.next = mark.at + STEP;
        if self.marks.len() >= MOST_MARKS {
            let older = self.marks.len() - LATEST;
            let mut place = 0;
            self.marks.retain(|_| {
                place += 1;
                place > older || place % 2 == 1
            });
        }
        self.marks.push(Arc::new(mark));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::START + Duration::from_ms(ms)
    }

    #[test]
    fn a_long_trace_is_remembered_in_few_steps_the_latest_of_which_are_close() {
        let mut history = History::beginning(Instant::START);
        for step in 1..=20_000 {
            let mark = Mark {
                at: at(50 * step),
                ..Mark::default()
            };
            history.remember(mark);
        }
        assert!(history.marks.len() <= MOST_MARKS);
        assert_eq!(history.marks[0].at, Instant::START);
        let latest = &history.marks[history.marks.len() - LATEST..];
        let spans = latest.windows(2).map(|pair| pair[1].at.since(pair[0].at));
        assert!(spans.into_iter().all(|span| span == STEP));
        let before = history.window_before(at(1_000_000)).unwrap();
        assert_eq!(before.at, at(999_000));
    }
}
