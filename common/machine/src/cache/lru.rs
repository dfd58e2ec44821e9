//! The same cache as `Cache`, seen by code that was compiled for its number of ways.

use super::ways::{close_up_fixed, move_to_front_fixed, position_fixed, push_front_fixed};
use super::{Cache, Caches, Line, LineState, TAG};

/// A view of a cache with LRU, `WAYS` ways and a power of two of sets.
pub(crate) struct Lru<'cache, const WAYS: usize> {
    sets: &'cache mut [[u32; WAYS]],
    cache: &'cache Cache,
}

/// A line that fell out.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) line: Line,
    pub(crate) state: LineState,
}

/// A way that holds a line.
pub(crate) struct Word<'cache>(&'cache mut u32);

impl Word<'_> {
    /// The state of the line.
    #[inline(always)]
    pub(crate) fn state(&self) -> LineState {
        super::state_of(*self.0)
    }

    /// Makes the line shared. What it was before.
    #[inline(always)]
    pub(crate) fn share(self) -> LineState {
        let before = self.state();
        *self.0 = *self.0 & TAG | LineState::Shared as u32;
        before
    }

    /// Makes the line exclusive, if it was shared.
    #[inline(always)]
    pub(crate) fn own(self) {
        if self.state() == LineState::Shared {
            *self.0 = *self.0 & TAG | LineState::Exclusive as u32;
        }
    }

    /// Makes the line modified if `modified`, without a branch on that.
    #[inline(always)]
    pub(crate) fn modify_if(self, modified: bool) {
        *self.0 |= u32::from(modified) * LineState::Modified as u32;
    }
}

impl Cache {
    /// Whether [`Caches::lru`] may be asked for a view of `ways` ways.
    pub(crate) fn is_lru_of(&self, ways: usize) -> bool {
        self.marks.is_none() && self.ways == ways && self.sets_are_power_of_two
    }

    /// Whether the other one has the same sets and ways.
    pub(crate) fn is_like(&self, other: &Cache) -> bool {
        self.sets == other.sets && self.ways == other.ways
    }
}

impl Caches {
    /// The cache, which [`Cache::is_lru_of`] said has `WAYS` ways.
    #[inline(always)]
    pub(crate) fn lru<const WAYS: usize>(&mut self, cache: usize) -> Lru<'_, WAYS> {
        let (cache, words) = self.parts(cache);
        debug_assert!(cache.is_lru_of(WAYS), "a view of another shape");
        Lru {
            sets: words.as_chunks_mut().0,
            cache,
        }
    }
}

impl<'cache, const WAYS: usize> Lru<'cache, WAYS> {
    #[inline(always)]
    fn set_and_key(self, line: Line) -> (&'cache mut [u32; WAYS], u32) {
        let set = line.0 as usize & (self.cache.sets as usize - 1);
        let key = self.cache.key(line);
        (&mut self.sets[self.cache.start_of(set) / WAYS], key)
    }

    /// Uses `line`: the word of its way, if it is here.
    #[inline(always)]
    pub(crate) fn hit(self, line: Line) -> Option<Word<'cache>> {
        let (set, key) = self.set_and_key(line);
        move_to_front_fixed(set, key).then_some(Word(&mut set[0]))
    }

    /// Finds `line` without using it.
    #[inline(always)]
    pub(crate) fn find(self, line: Line) -> Option<Word<'cache>> {
        let (set, key) = self.set_and_key(line);
        Some(Word(&mut set[position_fixed(set, key)? % WAYS]))
    }

    /// Takes in `line`, which is not held. If the set was full, the line that left is the answer.
    #[inline(always)]
    pub(crate) fn insert(self, line: Line, state: LineState) -> Option<Taken> {
        let (shift, last) = (self.cache.tag_shift, self.cache.sets - 1);
        let (set, key) = self.set_and_key(line);
        let left = push_front_fixed(set, key | state as u32);
        (left != 0).then(|| Taken {
            line: Line(u64::from((left >> 2) - 1) << shift | line.0 & last),
            state: super::state_of(left),
        })
    }

    /// Gives up `line`: its state, if it was held.
    #[inline(always)]
    pub(crate) fn remove(self, line: Line) -> Option<LineState> {
        let (set, key) = self.set_and_key(line);
        let word = close_up_fixed(set, key);
        (word != 0).then(|| super::state_of(word))
    }
}
