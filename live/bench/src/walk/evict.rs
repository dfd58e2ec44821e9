//! Does reading these pages throw that one out of the cache? Asked of the real cache.
#![allow(unsafe_code)]

use super::arena::{Arena, SMALL_PAGE};
use super::groups::Oracle;

/// Trials of which the majority decides: whatever else runs may evict a page, or make room.
const TRIALS: usize = 5;

/// Reads of a trial, at least. The evicting pages are read over and over until then: a cache that
/// does not replace in strict order throws the victim out only after a while.
const READS: usize = 500;

/// How often the evicting pages are read in a trial, at least.
const FEWEST_PASSES: usize = 2;

/// Pages that are read to be sure that whatever was in the cache no longer is.
const MANY: u32 = 2048;

/// Times reads of the first line of an arena's pages.
pub struct Evictor<'arena> {
    arena: &'arena Arena,
    /// Ticks from which on a read counts as a miss.
    slow: u64,
}

impl<'arena> Evictor<'arena> {
    /// Learns how long a hit and a miss take. `None` where this CPU has no clock that is fine
    /// enough to tell them apart.
    pub fn new(arena: &'arena Arena) -> Option<Evictor<'arena>> {
        let mut evictor = Evictor { arena, slow: 0 };
        let hit = evictor.median_read(|_, _| ())?;
        let miss = evictor.median_read(|evictor, page| {
            (0..evictor.pages().min(MANY))
                .filter(|other| *other != page)
                .for_each(|other| {
                    evictor.read(other);
                });
        })?;
        evictor.slow = hit.midpoint(miss);
        (miss > hit + hit / 4).then_some(evictor)
    }

    fn pages(&self) -> u32 {
        (self.arena.length() / SMALL_PAGE) as u32
    }

    fn median_read(&self, before: impl Fn(&Evictor<'_>, u32)) -> Option<u64> {
        let mut ticks = Vec::new();
        for page in 0..15 {
            self.read(page);
            before(self, page);
            ticks.push(self.timed_read(page)?);
        }
        ticks.sort_unstable();
        Some(ticks[ticks.len() / 2])
    }

    fn read(&self, page: u32) {
        assert!(page < self.pages(), "page {page} is outside the arena");
        let address = (self.arena.start() + u64::from(page) * SMALL_PAGE) as *const u64;
        // SAFETY: the page lies in the arena as asserted; all of that is mapped, aligned on a page,
        // and any bits are a u64.
        unsafe { address.read_volatile() };
    }

    /// Reads `victim`, then `pages` so many times, and tells whether `victim` is gone.
    fn trial(&self, pages: &[u32], victim: u32, passes: usize) -> bool {
        self.read(victim);
        for _ in 0..passes {
            pages.iter().for_each(|page| self.read(*page));
        }
        self.timed_read(victim)
            .is_some_and(|ticks| ticks >= self.slow)
    }

    /// Ticks for one read.
    #[cfg(target_arch = "x86_64")]
    fn timed_read(&self, page: u32) -> Option<u64> {
        use std::arch::x86_64::{_mm_lfence, _rdtsc};
        // SAFETY: both instructions are part of every x86-64 with SSE2, and change no memory. The
        // fences keep the read between the two looks at the clock.
        unsafe {
            _mm_lfence();
            let start = _rdtsc();
            _mm_lfence();
            self.read(page);
            _mm_lfence();
            Some(_rdtsc() - start)
        }
    }

    /// Other CPUs let no program read a clock this fine.
    #[cfg(not(target_arch = "x86_64"))]
    fn timed_read(&self, _page: u32) -> Option<u64> {
        None
    }
}

impl Oracle for Evictor<'_> {
    fn evicts(&mut self, pages: &[u32], victim: u32) -> bool {
        let passes = READS.div_ceil(pages.len().max(1)).max(FEWEST_PASSES);
        let (mut gone, mut kept) = (0, 0);
        while gone.max(kept) * 2 < TRIALS {
            let counter = if self.trial(pages, victim, passes) {
                &mut gone
            } else {
                &mut kept
            };
            *counter += 1;
        }
        gone > kept
    }

    fn evicts_at_once(&mut self, pages: &[u32], victim: u32) -> bool {
        (0..2 * TRIALS).all(|_| self.trial(pages, victim, FEWEST_PASSES))
    }
}
