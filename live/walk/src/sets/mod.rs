//! Which lines share a set of the cache, found out by asking which lines evict which.
//!
//! Neither a virtual nor a guest-physical address shows it: the hypervisor puts each of its pages
//! where it has room, and a hashed index mixes high bits of the address into the low ones, even
//! into those within a page. What is asked, and what depends on what:
//!
//! 1. [`signature`]: so many random lines are read that half of all lines are evicted. Which half
//!    depends on the set of a line and on nothing else, so that the answers to many such questions
//!    are a signature of the set. One question serves many lines at once, and its size adapts
//!    itself to how many sets there are, hashed or not.
//! 2. [`classes`]: pages with nearly equal signatures become classes, and each page is believed
//!    only where half as many members again as the cache has ways evict it. That direct test is the
//!    conflict test of Vila, Köpf and Morales, "Theory and Practice of Finding Eviction Sets", IEEE
//!    S&P 2019; the reduction of one large eviction set after another, which that paper is about,
//!    takes far more questions than the signatures of all sets together.
//! 3. [`relations`]: a class at one line of its pages may share a set with another class at another
//!    line. One test for each class and bit of the line's number shows it.
//!
//! Signatures may be wrong, they only propose. What is believed of a page and of two classes is
//! decided by votes ([`questions`]) that are wrong less than once in 10,000 times as long as at
//! most 20 % of the answers are; more noise than that is noticed by questions whose answers are
//! known, and then nothing is found. What the votes leave open is not known.
//!
//! Assumed: the index is an exclusive or of bits of the address, as all published ones are, so that
//! what holds at one line of two pages holds at all. And a line that leaves this cache leaves the
//! nearer ones, as on AMD's Zen, or else the index leaves the bits within a page alone, as Intel's
//! level 2 does: with neither, relations go unnoticed. Nothing here reads a clock or touches
//! memory: an [`Oracle`] does, and tests put a made-up cache in its place.

mod classes;
mod questions;
mod relations;
mod signature;
#[cfg(test)]
mod tests;

use questions::Questions;
use serde::Serialize;
use thiserror::Error;
use warmq_units::Stream;

/// A line of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The small page, counted from the start of the arena.
    pub page: u32,
    /// The line, counted from the start of its page.
    pub line: u32,
}

/// Whether a line was evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was.
    Evicted,
    /// It was not.
    Kept,
    /// The trials do not agree, or the time lies in between.
    Unsure,
}

/// Evicts lines from a cache.
pub trait Oracle {
    /// Reads `victims`, then `evictors` over and over, and says for each victim whether the cache
    /// still has it.
    fn ask(&mut self, evictors: &[Line], victims: &[Line]) -> Vec<Answer>;
}

/// The cache, and the pages that a search may use.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Ways of the cache.
    pub ways: u32,
    /// Sets of the cache.
    pub sets: u32,
    /// Lines of a small page: a power of two, at least 4.
    pub lines_of_page: u32,
    /// The pages whose sets are wanted.
    pub wanted: Vec<u32>,
    /// Other pages, in random order, that help to find them.
    pub spare: Vec<u32>,
}

impl Plan {
    /// The line of every page that evicts others. It is the last: a prefetcher that fetches the
    /// next line, too, would evict what it should not, but none goes beyond the page.
    fn base(&self) -> u32 {
        self.lines_of_page - 1
    }

    /// So few lines that they evict no other one, even if all of them share its set.
    fn few(&self) -> usize {
        (self.ways as usize / 2).max(1)
    }

    fn lines(&self, pages: &[u32]) -> Vec<Line> {
        let line = self.base();
        pages
            .iter()
            .map(|page| Line { page: *page, line })
            .collect()
    }
}

/// Why the sets are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unknown {
    /// No search was asked for.
    #[error("no search was asked for")]
    NotAsked,
    /// The blocks take more pages than a search can classify.
    #[error("the blocks take too many pages")]
    TooManyPages,
    /// This program cannot read a fine clock here.
    #[error("a program reads no clock here that distinguishes a hit from a miss")]
    NoClock,
    /// Of the questions whose answers are known, too many are answered otherwise.
    #[error("too noisy: lines seem to leave the cache though nothing evicts them, or the reverse")]
    Noise,
    /// All spare lines together hardly evict anything.
    #[error("no amount of lines evicts others")]
    NothingEvicts,
    /// Too few pages are evicted by the pages that seem to share their sets.
    #[error("too few pages conflict with those that they seem to share sets with")]
    TooFew,
    /// The answers contradict each other, or the geometry of the cache.
    #[error("the conflicts found contradict each other or the cache's geometry")]
    Contradiction,
    /// The time for the search is over.
    #[error("the search did not end in its time")]
    TimeUp,
}

/// Which lines share a set.
///
/// Invariant: every class has an entry in `set_of` for each line of a page; sets count from 0 to
/// less than the cache has; no two lines of one page share a set. Several classes may be the same.
#[derive(Clone, Debug)]
pub struct Sets {
    /// (page, class) of the pages that are known, ascending.
    class_of: Vec<(u32, u32)>,
    /// The set of line `l` of a page of class `c`, at `c * lines_of_page + l`.
    set_of: Vec<u32>,
    lines_of_page: u32,
}

impl Sets {
    /// The set of a line, if its page is known.
    pub fn of(&self, line: Line) -> Option<u32> {
        let classes = &self.class_of;
        let known = classes.binary_search_by_key(&line.page, |(page, _)| *page);
        let class = self.class_of[known.ok()?].1;
        Some(self.set_of[(class * self.lines_of_page + line.line) as usize])
    }

    /// How many different sets were found.
    pub fn count(&self) -> u32 {
        self.set_of.iter().max().map_or(0, |last| last + 1)
    }

    /// How many different sets the same line of all pages may use.
    pub fn at_one_line(&self) -> u32 {
        let first = self.set_of.iter().step_by(self.lines_of_page as usize);
        let mut sets: Vec<u32> = first.copied().collect();
        sets.sort_unstable();
        sets.dedup();
        sets.len() as u32
    }
}

/// Called before each question with how much is done, in thousandths; false ends the search.
pub type GoOn<'a> = &'a mut dyn FnMut(u32) -> bool;

/// Finds the sets of the wanted pages, as far as they can be found. The number of questions is
/// bounded by the plan, whatever the oracle answers, and `go_on` is called before each.
///
/// # Errors
/// Why they cannot be found.
pub fn find(
    oracle: &mut dyn Oracle,
    plan: &Plan,
    random: &mut Stream,
    go_on: GoOn<'_>,
) -> Result<Sets, Unknown> {
    let mut questions = Questions::new(oracle, plan, go_on);
    let signed = signature::of_pages(&mut questions, random)?;
    let classes = classes::confirmed(&mut questions, &signed)?;
    // What else runs changes with time: the noise at the beginning is not that of the end.
    questions.check_kept()?;
    let sets = relations::sets(&mut questions, &classes)?;
    questions.check_kept()?;
    Ok(sets)
}
