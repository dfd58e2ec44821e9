//! What a scheduler says of its tasks for statistics, as `schedstat` does: no record holds it.

use std::collections::BTreeMap;

use warmq_units::{Duration, Instant, TaskId};

/// The time from one sample of a value to the next. The thesis of the starvation paper took one in
/// 2 s; runs here are shorter.
const PERIOD: Duration = Duration::from_ms(20);

/// One of a scheduler's statistics, by its place in the scheduler's list of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistic(pub u8);

/// What was said of a task under one statistic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sampled {
    /// How often.
    pub times: u64,
    /// The last value at every 20 ms: how often each was seen. Empty before the first value.
    pub samples: BTreeMap<u64, u64>,
    last: Option<u64>,
    /// When the next sample is due.
    due: Instant,
}

impl Sampled {
    fn say(&mut self, at: Instant, value: u64) {
        self.sample(at);
        self.times += 1;
        self.last = Some(value);
    }

    /// Takes the samples that are due before `at`.
    fn sample(&mut self, at: Instant) {
        if at < self.due {
            return;
        }
        let samples = at.since(self.due).0 / PERIOD.0 + 1;
        self.due += PERIOD * samples;
        if let Some(last) = self.last {
            *self.samples.entry(last).or_default() += samples;
        }
    }

    fn restart(&mut self, at: Instant) {
        self.sample(at);
        self.times = 0;
        self.samples.clear();
    }
}

/// All that was said, by statistic and task.
#[derive(Debug, Default)]
pub(crate) struct Statistics(Vec<Vec<Sampled>>);

impl Statistics {
    fn of(&mut self, statistic: Statistic, task: TaskId) -> &mut Sampled {
        let (row, column) = (usize::from(statistic.0), task.index());
        if self.0.len() <= row {
            self.0.resize_with(row + 1, Vec::new);
        }
        let row = &mut self.0[row];
        if row.len() <= column {
            row.resize_with(column + 1, Sampled::default);
        }
        &mut row[column]
    }

    pub(crate) fn say(&mut self, at: Instant, (statistic, task): (Statistic, TaskId), value: u64) {
        self.of(statistic, task).say(at, value);
    }

    /// What was said of `task` up to `at`.
    pub(crate) fn get(&self, at: Instant, statistic: Statistic, task: TaskId) -> Sampled {
        let row = self.0.get(usize::from(statistic.0));
        let said = row.and_then(|row| row.get(task.index()));
        let mut said = said.cloned().unwrap_or_default();
        said.sample(at);
        said
    }

    pub(crate) fn restart(&mut self, at: Instant) {
        self.0
            .iter_mut()
            .flatten()
            .for_each(|said| said.restart(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_sampled_until_the_next_one() {
        let ms = |ms| Instant::START + Duration::from_ms(ms);
        let mut said = Sampled::default();
        for (at, value) in [(5, 7), (30, 7), (45, 9), (47, 8)] {
            said.say(ms(at), value);
        }
        said.sample(ms(100));
        // At 0 there was no value; 7 at 20 and 40; 8 at 60, 80 and 100.
        assert_eq!(said.times, 4);
        assert_eq!(said.samples, BTreeMap::from([(7, 2), (8, 3)]));
        said.restart(ms(110));
        said.sample(ms(125));
        assert_eq!((said.times, &said.samples), (0, &BTreeMap::from([(8, 1)])));
    }
}
