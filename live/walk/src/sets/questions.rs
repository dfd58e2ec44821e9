//! Questions to the cache: within the time, and checked by questions whose answers are known.

use super::{Answer, GoOn, Line, Oracle, Plan, Unknown};

/// The share of wrong answers, in percent, above which nothing is believed. Up to here, a decision
/// by [`Questions::decide`] is wrong less than once in 10,000 times.
const MOST_WRONG_PERCENT: usize = 20;

/// Control questions of each kind.
const CONTROLS: usize = 64;

/// Votes by which one side must lead. Where a share `w` of the answers says the contrary and
/// another `w` nothing, a line that stays gets `w (1 - 2w)` votes for its eviction and `1 - 2w`
/// against it, and an evicted one `w` against and `(1 - 2w)^2` for it. The wrong side leads by 5
/// first with the fifth power of their ratio: 0.00001 and 0.00009 where 20 % of the answers are not
/// right.
const LEAD: i32 = 5;

/// Votes after which nothing is decided.
const MOST_VOTES: usize = 40;

/// What many votes decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The lines evict the victim.
    Evicted,
    /// They do not.
    Kept,
    /// The votes do not agree.
    Open,
}

/// Asks, as long as there is time.
pub struct Questions<'a> {
    oracle: &'a mut dyn Oracle,
    pub plan: &'a Plan,
    go_on: GoOn<'a>,
    /// How much of the search is done, in thousandths.
    part: u32,
}

impl<'a> Questions<'a> {
    pub fn new(oracle: &'a mut dyn Oracle, plan: &'a Plan, go_on: GoOn<'a>) -> Questions<'a> {
        Questions {
            oracle,
            plan,
            go_on,
            part: 0,
        }
    }

    /// `done` of `total` is done of the part of the search from `from` to `to`.
    pub fn progress(&mut self, (from, to): (u32, u32), done: usize, total: usize) {
        self.part = from + ((to - from) as usize * done / total.max(1)) as u32;
    }

    /// One question.
    ///
    /// # Errors
    /// [`Unknown::TimeUp`].
    pub fn ask(&mut self, evictors: &[Line], victims: &[Line]) -> Result<Vec<Answer>, Unknown> {
        if (self.go_on)(self.part) {
            Ok(self.oracle.ask(evictors, victims))
        } else {
            Err(Unknown::TimeUp)
        }
    }

    fn ask_one(&mut self, evictors: &[Line], victim: Line) -> Result<Answer, Unknown> {
        Ok(self.ask(evictors, &[victim])?[0])
    }

    /// Whether evictors evict a victim, by votes. `question` gives other evictors and another
    /// victim of the same kinds for each turn, so that what is peculiar to one of them does not
    /// decide.
    ///
    /// A victim that vanishes counts only where it stays if a handful of the same lines is read as
    /// often: a neighbour who uses the cache for a while must not look like a conflict.
    pub fn decide(
        &mut self,
        question: impl Fn(usize) -> (Vec<Line>, Line),
    ) -> Result<Decision, Unknown> {
        let few = self.plan.few();
        let mut lead = 0;
        for turn in 0..MOST_VOTES {
            let (evictors, victim) = question(turn);
            lead += match self.ask_one(&evictors, victim)? {
                Answer::Kept => -1,
                Answer::Unsure => 0,
                Answer::Evicted => {
                    let handful = &evictors[..few.min(evictors.len())];
                    i32::from(self.ask_one(handful, victim)? == Answer::Kept)
                }
            };
            if lead.abs() == LEAD {
                let evicted = lead > 0;
                return Ok([Decision::Kept, Decision::Evicted][usize::from(evicted)]);
            }
        }
        Ok(Decision::Open)
    }

    /// Asks whether a handful of lines, fewer than the ways, evicts another one. They cannot.
    ///
    /// # Errors
    /// [`Unknown::Noise`] where they do nevertheless.
    pub fn check_kept(&mut self) -> Result<(), Unknown> {
        self.check(self.plan.few(), Answer::Kept)
    }

    /// Asks whether `size` lines, far more than it takes, evict another one. They must.
    ///
    /// # Errors
    /// [`Unknown::Noise`] where they do not.
    pub fn check_evicted(&mut self, size: usize) -> Result<(), Unknown> {
        self.check(size, Answer::Evicted)
    }

    fn check(&mut self, size: usize, right: Answer) -> Result<(), Unknown> {
        let spare = self.plan.lines(&self.plan.spare);
        let mut wrong = 0;
        for index in 0..CONTROLS {
            let mut others = spare.clone();
            others.rotate_left(index * spare.len() / CONTROLS);
            let (victim, others) = others.split_first().ok_or(Unknown::NothingEvicts)?;
            let evictors = &others[..size.min(others.len())];
            wrong += usize::from(self.ask_one(evictors, *victim)? != right);
        }
        if wrong * 100 > CONTROLS * MOST_WRONG_PERCENT {
            return Err(Unknown::Noise);
        }
        Ok(())
    }
}
