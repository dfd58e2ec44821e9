//! Chains of pointers that show one property of the memory each.

use warmq_units::{Bytes, Seed};

use super::arena::{Arena, SMALL_PAGE};
use super::geometry::Geometry;
use super::latency::LevelLatency;
use super::timing::{self, Stops};
use super::translation::Translation;
use crate::error::WalkError;
use crate::spread::Spread;

/// Lines of a page that are used to overload level 2.
const LINES_OF_A_PAGE: u64 = 8;

/// Measurements of each point; the median counts.
const REPETITIONS: usize = 5;

/// The shortest time of one of them.
const MIN_NS: u64 = 2_000_000;

/// Chases pointers through an arena.
pub struct Prober {
    arena: Arena,
    line: u64,
    seed: Seed,
}

impl Prober {
    /// In an arena of its own of `size` bytes, on huge pages where there are any.
    ///
    /// # Errors
    /// No memory.
    pub fn new(size: Bytes, line: Bytes) -> Result<Prober, WalkError> {
        Ok(Prober {
            arena: Arena::new(size, true)?,
            line: line.0,
            seed: Seed(1),
        })
    }

    /// Time of a load in ns on a chain through all lines of the first `buffer` bytes.
    pub fn random_lines(&mut self, buffer: u64) -> f64 {
        let buffer = buffer.min(self.arena.length());
        let mut lines: Vec<u64> = (0..buffer / self.line)
            .map(|index| index * self.line)
            .collect();
        self.seed.stream("lines").shuffle(&mut lines);
        self.time(&lines)
    }

    /// Time of a load in ns on a chain through the same few lines of each of `pages` pages. They
    /// share few sets, so that a cache must miss whose ways are that often outnumbered, wherever
    /// the pages lie; and they take little room in the next level, which others use too.
    pub fn few_lines_of(&mut self, pages: u64) -> f64 {
        let pages = pages.min(self.arena.length() / SMALL_PAGE);
        let in_page = SMALL_PAGE / self.line;
        let apart = (in_page / LINES_OF_A_PAGE).max(1);
        let of_page = |page: u64| {
            (0..in_page)
                .step_by(apart as usize)
                .map(move |line| (page, line))
        };
        let lines = (0..pages).flat_map(of_page);
        let mut lines: Vec<u64> = lines
            .map(|(page, line)| page * SMALL_PAGE + line * self.line)
            .collect();
        self.seed.stream("few lines").shuffle(&mut lines);
        self.time(&lines)
    }

    /// One level, by random lines of a buffer that is few pages.
    pub fn level(&mut self, level: u8, buffer: u64) -> LevelLatency {
        LevelLatency {
            level,
            ns: self.random_lines(buffer),
            buffer: Bytes(buffer),
        }
    }

    /// What loads pay beyond `base` ns, the latency of `second`, when they go through pages
    /// `stride` apart, for more and more pages; each time through other lines of them, so that
    /// `second` has all of them and `first` none.
    pub fn translation(
        &mut self,
        stride: Bytes,
        base: f64,
        first: Geometry,
        second: Geometry,
    ) -> Translation {
        let most = (self.arena.length() / stride.0).min(second.size.0 / second.line.0 / 2);
        let too_many_for_first = 4 * first.size.0 / self.line;
        let counts = (5..).flat_map(|power| [1 << power, 3 << (power - 1)]);
        let price = |pages: u64| {
            let rounds = too_many_for_first.div_ceil(pages);
            if rounds > SMALL_PAGE / self.line {
                return (pages, 0.0);
            }
            let chain = self.page_chain(pages, stride.0, rounds);
            (pages, (self.time(&chain) - base).max(0.0))
        };
        let table = counts
            .take_while(|pages| *pages <= most)
            .map(price)
            .collect();
        Translation { stride, table }
    }

    /// `rounds` times all of `pages` pages in one random order, in each round another line.
    fn page_chain(&self, pages: u64, stride: u64, rounds: u64) -> Vec<u64> {
        let lines_in_page = SMALL_PAGE / self.line;
        let mut random = self.seed.stream("pages");
        let mut order: Vec<(u64, u64)> = (0..pages)
            .map(|page| (page * stride, random.below(lines_in_page)))
            .collect();
        random.shuffle(&mut order);
        let round = |round: u64| {
            let line = move |first: u64| (first + round) % lines_in_page * self.line;
            order.iter().map(move |(page, first)| page + line(*first))
        };
        (0..rounds).flat_map(round).collect()
    }

    fn time(&mut self, offsets: &[u64]) -> f64 {
        let mut ring = self.arena.link(offsets, 8);
        let stops = Stops {
            count: offsets.len() as u64,
            lines: 1,
            line: self.line,
        };
        let times: Vec<f64> = (0..REPETITIONS)
            .map(|_| timing::time(&mut ring, stops, MIN_NS).ns_per_step)
            .collect();
        Spread::of(&times).map_or(0.0, |spread| spread.median)
    }
}
