//! Records in the order of time.

use std::collections::VecDeque;

use crate::event::Said;

/// Where nobody says when a round ends, so many records are sorted at once; half of them are
/// handed out then. They take 200 MB.
const MOST: usize = 2 << 20;

/// What is said, put in order.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    waiting: Vec<Said>,
    ready: VecDeque<Said>,
    /// The newest time of the rounds before this one, and of all.
    before: u64,
    newest: u64,
    no_rounds: bool,
    /// The time of what was handed out last, and how often something older followed.
    last: u64,
    late: u64,
}

impl Sorted {
    /// Something is said.
    #[inline]
    pub fn add(&mut self, said: Said) {
        self.newest = self.newest.max(said.ns);
        self.waiting.push(said);
        if self.waiting.len() >= MOST {
            self.waiting.sort_by_key(|said| said.ns);
            let half = self.waiting.drain(..MOST / 2);
            self.ready.extend(half);
        }
    }

    /// Ends of rounds say nothing here.
    pub fn has_no_rounds(&mut self) {
        self.no_rounds = true;
    }

    /// A round ends: what follows is not older than the newest of the round before.
    pub fn end_round(&mut self) {
        if self.no_rounds {
            return;
        }
        let limit = std::mem::replace(&mut self.before, self.newest);
        self.waiting.sort_by_key(|said| said.ns);
        let ready = self.waiting.partition_point(|said| said.ns <= limit);
        self.ready.extend(self.waiting.drain(..ready));
    }

    /// Nothing follows.
    pub fn end(&mut self) {
        self.waiting.sort_by_key(|said| said.ns);
        self.ready.extend(self.waiting.drain(..));
    }

    /// The next of what is in order.
    #[inline]
    pub fn next(&mut self) -> Option<Said> {
        let said = self.ready.pop_front()?;
        match said.ns < self.last {
            true => self.late += 1,
            false => self.last = said.ns,
        }
        Some(said)
    }

    /// What is to be known of the order: a sentence.
    pub fn note(&self) -> Option<String> {
        let late = self.late;
        (late > 0).then(|| format!("{late} records came too late to be put in order"))
    }
}
